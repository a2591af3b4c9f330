"""How do prices look on a terminal?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from rich.console import RenderableType
from rich.table import Table

from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.catalog.prices.rows import Order, PriceRow, Prices
from gpuledger.catalog.prices.spread import GpuSpread, PriceComparison, SpotSaving, Spread
from gpuledger.cli.figures import NOT_KNOWN, count, percent
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import plain_table
from gpuledger.units import Unknown

_FIGURES: Mapping[str, str] = {"tflops": "$/TFLOPS", "gb": "$/GB"}
REASONS = 4
NAME_WIDTH = 6


def usd(value: Decimal | Unknown, digits: int = 2) -> str:
    """Dollars, or that they are not known."""
    return NOT_KNOWN if isinstance(value, Unknown) else f"{value:,.{digits}f}"


def age(days: int, stale: bool) -> str:
    """How old a price is."""
    return f"[yellow]{days} d ![/yellow]" if stale else f"{days} d"


def price_list(prices: Prices, order: Order, limit: int) -> list[RenderableType]:
    """The lowest prices, then what the table leaves out."""
    if not prices.rows:
        if prices.none_why:
            return [*_left_out(prices), f"{prices.none_why}; next: leave --purchase out"]
        return [*_left_out(prices), "no price matches; next: leave a filter out"]
    # What all rows share is said once, above them: the columns are needed for the rest.
    kinds = {(row.gpu_name, row.gpus) for row in prices.rows[:limit]}
    shared = len(kinds) == 1
    table = plain_table(f"{_number(prices.rows[0].gpus)} x {escape(prices.rows[0].gpu_name)}" if shared else "")
    # Names fold so far that at 80 columns every figure and the age of the price are still there.
    for head in ("cloud", "instance", *(() if shared else ("GPUs",)), "cheapest at"):
        table.add_column(head, overflow="fold", min_width=NAME_WIDTH)
    table.add_column("buy", no_wrap=True)
    for head in ("$/GPU-h", "$/inst-h", *([_FIGURES[order]] if order in _FIGURES else ())):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("listed", no_wrap=True)
    for row in prices.rows[:limit]:
        table.add_row(*_cells(row, order, shared))
    return [table, "", *_notes(prices.rows[:limit], prices, limit), *_left_out(prices)]


def _number(gpus: Decimal) -> str:
    return f"{float(gpus):g}"


def _cells(row: PriceRow, order: Order, shared: bool) -> list[str]:
    scope = row.price_scope
    per_gpu, whole = usd(row.usd_per_gpu_h, 3), usd(row.usd_per_instance_h)
    star = {"gpu": (f"{per_gpu}*", f"{whole} "), "instance": (f"{per_gpu} ", f"{whole}*")}
    more = f" +{row.places - 1}" if row.places > 1 else ""
    name = f"{row.cloud} [green](yours)[/green]" if row.yours else escape(row.cloud)
    gpus = [] if shared else [escape(f"{_number(row.gpus)} x {row.gpu_name}")]
    figures = star.get(scope, (f"{per_gpu} ", f"{whole}+"))
    if isinstance(row.usd_per_gpu_h, Unknown):
        figures = (NOT_KNOWN, NOT_KNOWN)
    extra = [usd(getattr(row, f"usd_per_{order}_h"), 5)] if order in _FIGURES else []
    place = row.zone or row.region or "any region"
    buy = "spot" if row.purchase == "spot" else "on-demand"
    return [
        name, escape(row.instance or "-"), *gpus, escape(f"{place}{more}"), buy, *figures, *extra,
        age(row.age_days, row.stale),
    ]  # fmt: skip


def _notes(shown: Sequence[PriceRow], prices: Prices, limit: int) -> list[str]:
    scopes = {row.price_scope for row in shown}
    out = [
        "* the published price; the other is reckoned from it. +N: offered in N more places, at this price or above."
    ]
    if "accelerator" in scopes:
        out.append("+ the accelerator's published price and its host VM's, added up.")
    for words, n in _counted(
        row.usd_per_instance_h.why for row in shown if isinstance(row.usd_per_instance_h, Unknown)
    ):
        out.append(escape(f"not known ({count(n, 'row')}): {words}"))
    for words, n in _counted(flag for row in shown for flag in (*row.flags, *((row.apart,) if row.apart else ()))):
        out.append(escape(f"{count(n, 'row')}: {words}"))
    limits = prices.stale_after_days
    rest = f"; {count(len(prices.rows) - limit, 'more row')}: --limit 0" if len(prices.rows) > limit else ""
    out.append(
        f"{count(len(prices.rows), 'row')} of {count(prices.offers, 'offer')}, {prices.stale_rows:,} stale, marked ! "
        f"(over {limits['on_demand']} days on-demand, {limits['spot']} days spot){rest}"
    )
    if prices.replaced_by_yours:
        out.append(f"{count(prices.replaced_by_yours, 'listed offer')} replaced by rates of yours")
    return out


def _counted(reasons: Iterable[str]) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for words in reasons:
        found[words] = found.get(words, 0) + 1
    return sorted(found.items(), key=lambda item: -item[1])[:REASONS]


def _left_out(prices: Prices) -> list[str]:
    if not prices.not_gpus:
        return []
    names = ", ".join(f"{name} ({n})" for name, n in prices.not_gpus)
    return [escape(f"left out, for they are no GPUs: {names}; --instance shows them")]


def comparison(found: PriceComparison) -> list[RenderableType]:
    """One GPU in full, or a row for each."""
    if not found.gpus:
        return ["no price matches; next: leave a filter out", *_reasons(found)]
    if len(found.gpus) > 1:
        return [_all(found.gpus), "", *_saving("all of these", found.saving), *_reasons(found)]
    (one,) = found.gpus
    return [_clouds(one), "", _spreads(one), "", *_saving(one.gpu_name, one.saving), *_reasons(found)]


def _clouds(one: GpuSpread) -> Table:
    table = plain_table(f"{one.gpu_name}: the lowest price of each cloud, dollars a GPU-hour")
    table.add_column("cloud", no_wrap=True)
    table.add_column("on-demand", justify="right")
    table.add_column("at", overflow="fold")
    table.add_column("spot", justify="right")
    table.add_column("at", overflow="fold")
    table.add_column("listed", no_wrap=True)
    for row in one.clouds:
        name = f"{row.cloud} [green](yours)[/green]" if row.yours else row.cloud
        prices = ("-" if isinstance(p, Unknown) else usd(p, 3) for p in (row.on_demand_usd, row.spot_usd))
        on_demand, spot = prices
        cells = (name, on_demand, escape(row.on_demand_at), spot, escape(row.spot_at), age(row.age_days, row.stale))
        table.add_row(*cells)
    return table


def _spreads(one: GpuSpread) -> Table:
    table = plain_table("Spread over all offers, each cloud counting the same")
    for head in ("buy", "min", "p10", "median", "p90", "max", "offers", "clouds", "listed"):
        table.add_column(head, justify="left" if head in {"buy", "listed"} else "right")
    for name, s in (("on-demand", one.on_demand), ("spot", one.spot)):
        if isinstance(s, Spread):
            figures = (usd(p) for p in (s.min_usd, s.p10_usd, s.median_usd, s.p90_usd, s.max_usd))
            ages = f"{s.newest_age_days} to {s.oldest_age_days} d" if s.oldest != s.newest else f"{s.newest_age_days} d"
            table.add_row(name, *figures, f"{s.offers:,}", str(s.clouds), f"{ages}{', stale' * s.stale}")
        else:
            table.add_row(name, *[NOT_KNOWN] * 5, "0", "0", escape(s.why))
    return table


def _all(gpus: Sequence[GpuSpread]) -> Table:
    table = plain_table("The market, dollars a GPU-hour")
    table.add_column("GPU", no_wrap=True)
    for head in ("min", "median", "max", "clouds", "spot median", "spot saves p10", "p50", "p90"):
        table.add_column(head, justify="right")
    for one in gpus:
        d, s, cut = one.on_demand, one.spot, one.saving
        prices = [usd(d.min_usd), usd(d.median_usd), usd(d.max_usd)] if isinstance(d, Spread) else ["-"] * 3
        spot = usd(s.median_usd) if isinstance(s, Spread) else "-"
        cuts = (
            [percent(c, 0) for c in (cut.p10_pct, cut.p50_pct, cut.p90_pct)]
            if isinstance(cut, SpotSaving)
            else ["-"] * 3
        )
        table.add_row(escape(one.gpu_name), *prices, str(len(one.clouds)), spot, *cuts)
    return table


def _saving(what: str, saving: SpotSaving | Unknown) -> list[str]:
    if isinstance(saving, Unknown):
        return [escape(f"spot against on-demand: {saving}")]
    s = saving
    above = f", {count(s.above_on_demand, 'zone')} with spot above on-demand" if s.above_on_demand else ""
    spread = f"p10 {s.p10_pct:.0f} %, p90 {s.p90_pct:.0f} %"
    seen = f"{count(s.zones, 'zone')} of {count(s.clouds, 'cloud')}{above}"
    claim = f"Claimed: {s.claim_low_pct:.0f} to {s.claim_high_pct:.0f} % ({escape(s.claim_source)})"
    return [
        f"Spot saves {s.p50_pct:.0f} % for {escape(what)} (median; {spread}; {seen}).",
        f"{claim}; true of {s.within_claim_pct:.0f} % of the zones.",
    ]


def _reasons(found: PriceComparison) -> list[str]:
    total = sum(n for _, n in found.left_out)
    shown = "; ".join(f"{why} ({n})" for why, n in found.left_out[:REASONS])
    more = "; ..." if len(found.left_out) > REASONS else ""
    return [escape(f"left out: {count(total, 'offer')}: {shown}{more}")] if total else []


def own_rates(rates: Sequence[Rate]) -> list[RenderableType]:
    """The stored rates, both prices of each."""
    table = plain_table("Your rates")
    for head in ("cloud", "instance", "GPU", "n", "region", "buy", "$/GPU-h", "$/inst-h", "as of", "note"):
        table.add_column(head, justify="right" if head in {"n", "$/GPU-h", "$/inst-h"} else "left", overflow="fold")
    for rate in rates:
        offer = rate.offer
        per_gpu, whole = usd(offer.usd_per_gpu_h, 3), usd(offer.usd_per_h)
        stars = (f"{per_gpu}*", f"{whole} ") if rate.price_scope == "gpu" else (f"{per_gpu} ", f"{whole}*")
        buy = "spot" if rate.purchase == "spot" else "on-demand"
        cells = (rate.cloud, rate.instance or "any", rate.gpu, str(rate.count), rate.region or "any", buy)
        table.add_row(*map(escape, cells), *stars, rate.as_of, escape(rate.note))
    return [table, "* as you gave it; the other is reckoned from it"]
