"""What do price lookups show? The lowest prices, how far apart clouds are, what spot saves, and your own rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.catalog.prices.rows import Order, PriceRow, Prices
from gpuledger.catalog.prices.spread import GpuSpread, PriceComparison, SpotSaving, Spread
from gpuledger.encode import encode
from gpuledger.report.document import Block, Document, Prose
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, capital, number
from gpuledger.units import Unknown

KIND = "Prices"
LOWEST = {"gpu": "Lowest", "instance": "Lowest per instance", "tflops": "Lowest per TFLOPS", "gb": "Lowest per GB"}
EXTRA = {"tflops": "$/TFLOPS", "gb": "$/GB"}
REASONS = 4
NOTHING = "No price matches"


def prices_document(prices: Prices, order: Order, limit: int | None) -> Document:
    """The lowest prices, up to `limit` rows, and what the table leaves out."""
    shown = prices.rows[:limit]
    omitted = ", ".join(f"{name} ({n})" for name, n in prices.not_gpus)
    notes = [f"Omitted, because they are not GPUs: {omitted}. Ask for an instance type to see it."] if omitted else []
    headline = capital(prices.none_why) or NOTHING
    blocks: list[Block] = []
    facts: list[str] = []
    if shown:
        best, limits = shown[0], prices.stale_after_days
        size = f"{_gpus(best)}, {best.cloud} {best.instance}".rstrip()
        price = figure(best.usd_per_gpu_h, lambda usd: f"${usd:,.3f} per GPU-hour").text
        where = f"{_place(best)}, {_buy(best.purchase)}, listed {_count(best.age_days, 'day')} ago"
        headline = f"{LOWEST[order]}: {price}, {size} in {where}"
        rest = len(prices.rows) - len(shown)
        old = f"over {limits['on_demand']} days on-demand, {limits['spot']} days spot"
        facts = [
            f"{_count(len(prices.rows), 'row')} from {_count(prices.offers, 'offer')}",
            f"{number(prices.stale_rows)} stale, marked ! ({old})",
            *([f"{_count(rest, 'more row')} not shown"] if rest else []),
        ]
        blocks.append(_price_table(shown, order))
        notes = [*_notes(shown), *notes]
    if prices.replaced_by_yours:
        notes.append(f"{_count(prices.replaced_by_yours, 'listed offer')} replaced by your own rates.")
    blocks += [Prose("\n".join(notes), "note")] if notes else []
    cut = replace(prices, rows=prices.rows[:limit])
    return Document("prices", KIND, KIND, headline, facts, summary=blocks, data=lambda: encode("prices", cut))


def _price_table(rows: Sequence[PriceRow], order: Order) -> Table:
    """The rows; what all share is in the caption, so that every figure fits 80 columns."""
    shared = len({(row.gpu_name, row.gpus) for row in rows}) == 1
    one_gpu = len({row.gpu_name for row in rows}) == 1
    extra = order in EXTRA
    heads = [
        "Cloud", "Instance", *([] if shared else ["GPUs"]), "Cheapest at", "Buy", "$/GPU-h", "$/inst-h",
        *([EXTRA[order]] if extra else []), "Listed",
    ]  # fmt: skip
    made: list[Row] = []
    for row in rows:
        more = f" +{row.places - 1}" if row.places > 1 else ""
        made.append(
            [
                f"{row.cloud} (yours)" if row.yours else row.cloud, row.instance or "-",
                *([] if shared else [f"{float(row.gpus):g}" if one_gpu else _gpus(row)]),
                f"{_place(row)}{more}", _buy(row.purchase),
                *_both(row.usd_per_gpu_h, row.usd_per_instance_h, row.price_scope),
                *([_usd(getattr(row, f"usd_per_{order}_h"), 5)] if extra else []), _age(row.age_days, row.stale),
            ]
        )  # fmt: skip
    words = f"{'ww' if shared else 'www'}wnnn{'n' if extra else ''}n"
    caption = _gpus(rows[0]) if shared else rows[0].gpu_name if one_gpu else ""
    return make_table("prices", caption, heads, words, made, screen_rows=len(made))


def _gpus(row: PriceRow) -> str:
    return f"{float(row.gpus):g} x {row.gpu_name}"


def _place(row: PriceRow) -> str:
    return row.zone or row.region or "any region"


def _buy(purchase: str) -> str:
    return purchase.replace("_", "-")


def _age(days: int, stale: bool) -> Cell:
    return cell(f"{days} d{' !' if stale else ''}", days)


def _usd(value: Decimal | Unknown, places: int = 2) -> Cell:
    return figure(value, lambda usd: f"{usd:,.{places}f}")


def _both(per_gpu: Decimal | Unknown, whole: Decimal | Unknown, scope: str) -> Row:
    """The price of a GPU and of the instance; a mark where it is the published one."""
    if isinstance(per_gpu, Unknown):
        return [_usd(per_gpu), _usd(per_gpu)]
    stars = {"gpu": ("*", " "), "instance": (" ", "*")}.get(scope, (" ", "+"))
    one, all_ = f"{_usd(per_gpu, 3).text}{stars[0]}", f"{_usd(whole).text}{stars[1]}"
    return [cell(one, per_gpu), cell(all_, whole)]


def _notes(shown: Sequence[PriceRow]) -> list[str]:
    """How to read the table, and what is odd about its rows."""
    out = ["* the published price; the other is calculated. +N: offered in N more places, at this price or above."]
    if any(row.price_scope == "accelerator" for row in shown):
        out.append("+ the accelerator's published price and its host VM's, added up.")
    unknown = (row.usd_per_instance_h.why for row in shown if isinstance(row.usd_per_instance_h, Unknown))
    out += [f"Unknown ({_count(n, 'row')}): {words}" for words, n in Counter(unknown).most_common(REASONS)]
    flags = (flag for row in shown for flag in (*row.flags, *((row.apart,) if row.apart else ())))
    return out + [f"{_count(n, 'row')}: {words}" for words, n in Counter(flags).most_common(REASONS)]


def _count(value: int, one: str) -> str:
    return amount(number(value), one)


def comparison_document(found: PriceComparison) -> Document:
    """One GPU in full, or a row for each."""
    blocks: list[Block] = []
    headline = NOTHING
    if len(found.gpus) == 1:
        (one,) = found.gpus
        headline, blocks = _saving(one.gpu_name, one.saving), [_clouds(one), _spreads(one)]
        blocks += _claim(one.saving)
    elif found.gpus:
        headline, blocks = _saving("all of these", found.saving), [_all(found.gpus), *_claim(found.saving)]
    if total := sum(n for _, n in found.left_out):
        why = "; ".join(f"{words} ({n})" for words, n in found.left_out[:REASONS])
        more = "; ..." if len(found.left_out) > REASONS else ""
        blocks.append(Prose(f"Omitted: {_count(total, 'offer')}: {why}{more}", "dim"))
    return Document("comparison", KIND, KIND, headline, summary=blocks, data=lambda: encode("price_comparison", found))


def _saving(what: str, saving: SpotSaving | Unknown) -> str:
    if isinstance(saving, Unknown):
        return f"Spot compared with on-demand for {what}: {saving}"
    s = saving
    above = f", {_count(s.above_on_demand, 'zone')} with spot above on-demand" if s.above_on_demand else ""
    zones = f"{_count(s.zones, 'zone')} of {_count(s.clouds, 'cloud')}{above}"
    return f"Spot saves {s.p50_pct:.0f} % for {what} (median; p10 {s.p10_pct:.0f} %, p90 {s.p90_pct:.0f} %; {zones})."


def _claim(saving: SpotSaving | Unknown) -> list[Block]:
    if isinstance(saving, Unknown):
        return []
    claim = f"{saving.claim_low_pct:.0f} to {saving.claim_high_pct:.0f} % ({saving.claim_source})"
    return [Prose(f"Claimed: {claim}; true of {saving.within_claim_pct:.0f} % of the zones.")]


def _clouds(one: GpuSpread) -> Table:
    rows: list[Row] = []
    for row in one.clouds:
        on_demand, spot = (
            Cell("-") if isinstance(p, Unknown) else _usd(p, 3) for p in (row.on_demand_usd, row.spot_usd)
        )
        name = f"{row.cloud} (yours)" if row.yours else row.cloud
        rows.append([name, on_demand, row.on_demand_at, spot, row.spot_at, _age(row.age_days, row.stale)])
    heads = ("Cloud", "On-demand", "At", "Spot", "At", "Listed")
    caption = f"{one.gpu_name}: the lowest price of each cloud, dollars per GPU-hour"
    return make_table("clouds", caption, heads, "wnwnwn", rows, screen_rows=len(rows))


def _spreads(one: GpuSpread) -> Table:
    rows: list[Row] = []
    for name, s in (("on-demand", one.on_demand), ("spot", one.spot)):
        if isinstance(s, Unknown):
            rows.append([name, *(figure(s, str) for _ in range(5)), "0", "0", s.why])
            continue
        prices = (s.min_usd, s.p10_usd, s.median_usd, s.p90_usd, s.max_usd)
        ages = f"{s.newest_age_days} to {s.oldest_age_days} d" if s.oldest != s.newest else f"{s.newest_age_days} d"
        rows.append([name, *map(_usd, prices), number(s.offers), str(s.clouds), f"{ages}{', stale' * s.stale}"])
    heads = ("Buy", "Min", "p10", "Median", "p90", "Max", "Offers", "Clouds", "Listed")
    return make_table("spreads", "Spread over all offers, each cloud counting the same", heads, "wnnnnnnnw", rows)


def _all(gpus: Sequence[GpuSpread]) -> Table:
    rows: list[Row] = []
    for one in gpus:
        d, s, cut = one.on_demand, one.spot, one.saving
        prices = [_usd(p) for p in (d.min_usd, d.median_usd, d.max_usd)] if isinstance(d, Spread) else _dashes(3)
        spot = [_usd(s.median_usd)] if isinstance(s, Spread) else _dashes(1)
        cuts = _dashes(3)
        if isinstance(cut, SpotSaving):
            cuts = [cell(f"{pct:.0f} %", pct) for pct in (cut.p10_pct, cut.p50_pct, cut.p90_pct)]
        rows.append([one.gpu_name, *prices, str(len(one.clouds)), *spot, *cuts])
    heads = ("GPU", "Min", "Median", "Max", "Clouds", "Spot", "Saves p10", "p50", "p90")
    return make_table("market", "The market, dollars per GPU-hour", heads, "wnnnnnNnN", rows, screen_rows=len(rows))


def _dashes(count: int) -> list[Cell]:
    return [Cell("-")] * count


def rates_document(rates: Sequence[Rate], doubts: Sequence[str], file: str, removed: bool) -> Document:
    """The stored rates, both prices of each, and what looks odd about them."""
    rows: list[Row] = []
    for rate in rates:
        both = _both(rate.offer.usd_per_gpu_h, rate.offer.usd_per_h, rate.price_scope)
        place = (rate.cloud, rate.instance or "any", rate.gpu, str(rate.count), rate.region or "any")
        rows.append([*place, _buy(rate.purchase), *both, rate.as_of, rate.note])
    heads = ("Cloud", "Instance", "GPU", "n", "Region", "Buy", "$/GPU-h", "$/inst-h", "As of", "Note")
    table = make_table("rates", "", heads, "wwwnwnnnNw", rows, screen_rows=len(rows))
    checks = [f"check: {words}" for words in doubts]
    note = Prose("* as you gave it; the other is calculated from it", "note")
    data = {"rates": rates, "file": file, "removed": removed, "doubts": doubts}
    return Document(
        "rates", KIND, "Your rates", f"{_count(len(rows), 'rate')} of your own" if rows else "No rates of your own",
        summary=[table, note, *(Prose(words, "warning") for words in checks)] if rows else [],
        data=lambda: encode("own_rates", data),
    )  # fmt: skip
