"""What became of the inventory: rows that fit no GPU, prices that contradict each other, paid and listed prices?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from gpuledger.cost.inventories.findings import InventoryUse, PriceConflict, Skipped, Source, Unmatched, Why
from gpuledger.cost.inventories.unused import has_dollars_left, next_file, not_used
from gpuledger.cost.paid_prices import ListedBy, PaidPrice, PaidPrices
from gpuledger.encode import encode, plain
from gpuledger.plain_text import csv_text
from gpuledger.report.document import Document, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, gpus, number, percent, period
from gpuledger.units import Unknown, utc_day

EXAMPLES = 3
NO_DOLLARS = Unknown("the row has no price, or an open end")
WHY = {
    Why.NO_SUCH_HOST: "no host or GPU of the lake has this name",
    Why.SEVERAL_HOSTS: "hosts of several clusters have this name",
    Why.NOT_SEEN_THEN: "its GPUs were not seen in that period",
    Why.OUTSIDE_LAKE: "before the first or after the last sample",
    Why.NEGATIVE: "credits above the charge",
    Why.NOTHING_CHARGED: "the machine ran for $0, so it is paid for elsewhere",
}
NEXT = {
    Why.NO_SUCH_HOST: "add the list that links the names (kubectl get nodes -o json) as another --inventory, or import "
    "the samples of those machines",
    Why.SEVERAL_HOSTS: "write a table of your own with CLUSTER/HOST as the device",
    Why.NOT_SEEN_THEN: "import the samples of that time",
    Why.NEGATIVE: "give the bill of the period the credits are for, too",
    Why.NOTHING_CHARGED: "export amortized costs, or give the price of those machines in a table of your own",
    Why.OUTSIDE_LAKE: "",
}
SOURCES = {
    Source.GPU_ROW: "inventory row of the GPU", Source.HOST_ROW: "inventory row of the host", Source.BILL: "bill",
    Source.LIST: "list price or own rate", Source.GIVEN: "--price or [prices]",
}  # fmt: skip


def inventory_warnings(use: InventoryUse | None) -> list[Prose]:
    """What is paid but not in the bill, and contradicting prices: the first thing to read."""
    return [] if use is None else [Prose(text, "warning") for text in _warnings(use)]


def _warnings(use: InventoryUse) -> Iterator[str]:
    for file in use.unused:
        step = next_file(file, use)
        yield f"{file.path}: no row was used: {not_used(file, use)}.{f' Next: {step}.' if step else ''}"
    for why in (w for w in Why if w is not Why.OUTSIDE_LAKE):
        rows = [u for u in use.missed if u.why is why]
        if not rows:
            continue
        total = sum(u.rows for u in rows)
        dollars = sum((u.usd for u in rows if u.usd is not None), Decimal(0))
        worth = f" (${dollars:,.2f})" if any(u.usd is not None for u in rows) else ""
        verb = "is" if total == 1 else "are"
        what = f"{amount(number(total), 'row')} of the inventory{worth} {verb} not in this bill"
        more = f" and {number(len(rows) - EXAMPLES)} more" if len(rows) > EXAMPLES else ""
        examples = ", ".join(_example(u) for u in rows[:EXAMPLES])
        yield f"{what}: {WHY[why]}: {examples}{more}. Next: {NEXT[why]}."
    for file in use.files:
        if file not in use.unused and has_dollars_left(file, use):
            yield f"{file.path}: {not_used(file, use)}: not in this bill."
    if use.conflicts:
        first = max(use.conflicts, key=lambda c: c.gpu_h * float(abs(c.used_usd_per_h - c.other_usd_per_h)))
        rest = len(use.conflicts) - 1
        more = f"; {amount(number(rest), 'more conflict')} below" if rest else ""
        yield f"Two prices for {_conflict(first)}{more}."


def _example(row: Unmatched) -> str:
    facts = [row.instance] if row.instance else []
    facts += [f"${row.usd:,.2f}"] if row.usd is not None else []
    return f"{row.name} ({', '.join(facts)})" if facts else row.name


def _conflict(one: PriceConflict) -> str:
    used = f"${one.used_usd_per_h:,.2f} per GPU-hour by {_from(one.used, one.used_from)} is used"
    other = f"${one.other_usd_per_h:,.2f} by {_from(one.other, one.other_from)} is not"
    return f"{gpus(one.gpus)} ({one.gpu_model or 'no model name'}): {used}, {other}"


def _from(source: Source, file: str) -> str:
    return f"{SOURCES[source]} ({file})" if file and source is not Source.GIVEN else SOURCES[source]


def inventory_sections(use: InventoryUse | None) -> list[Section]:
    """The files, every row that fits no GPU, every pair of prices."""
    if use is None or (not use.unmatched and not use.conflicts and {file.kind for file in use.files} == {"own"}):
        return []
    tables = [
        *([unmatched_table(use)] if use.unmatched else []),
        *([_conflicts(use)] if use.conflicts else []),
        _files(use),
    ]
    return [Section("inventory", "The inventory", tables)]


def unmatched_table(use: InventoryUse) -> Table:
    """Machines that are paid for and fit no GPU of the lake, the most dollars first."""
    rows: list[Row] = []
    for u in sorted(use.unmatched, key=lambda u: (u.why is Why.OUTSIDE_LAKE, -(u.usd or Decimal(0)), u.name)):
        paid = figure(NO_DOLLARS if u.usd is None else u.usd, lambda usd: f"${usd:,.2f}")
        start, end = ("open" if t is None else utc_day(t) for t in (u.start_ms, u.end_ms))
        rows.append([u.name, u.instance or "-", number(u.rows), paid, f"{start} to {end}", WHY[u.why], u.file])
    heads = ("Name", "Instance", "Rows", "Dollars", "Period", "Why", "File")
    return make_table("unmatched", "Rows that fit no GPU of the lake", heads, "wwnnwwW", rows)


def _conflicts(use: InventoryUse) -> Table:
    rows: list[Row] = []
    for c in use.conflicts:
        prices = (cell(f"${usd:,.4f}", usd) for usd in (c.used_usd_per_h, c.other_usd_per_h))
        names = (_from(c.used, c.used_from), _from(c.other, c.other_from))
        both = [part for pair in zip(prices, names, strict=True) for part in pair]
        rows.append([c.gpu_model or "no model name", str(c.gpus), number(c.gpu_h, 1), *both])
    heads = ("GPU", "GPUs", "GPU-hours", "Used $/h", "From", "Other $/h", "From")
    return make_table("price-conflicts", "Two prices for the same GPUs", heads, "wnnnwnw", rows)


def _files(use: InventoryUse) -> Table:
    rows: list[Row] = []
    for file in use.files:
        passed = file.skipped
        rows.append(
            [
                file.path, file.kind, number(file.rows), number(passed.get(Skipped.NO_GPU, 0)),
                number(sum(n for why, n in passed.items() if why is not Skipped.NO_GPU)),
            ]
        )  # fmt: skip
    heads = ("File", "Kind", "Rows", "No GPU", "Not a machine's price")
    return make_table("inventory-files", "Files", heads, "wwnnn", rows)


LISTED = {
    ListedBy.INSTANCE_IN_REGION: "", ListedBy.INSTANCE: "any region", ListedBy.MARKET: "market median", None: "",
}  # fmt: skip
COLUMNS = (
    "gpu_model", "cloud", "instance", "region", "purchase_option", "gpus", "gpu_h", "paid_usd", "paid_usd_per_h",
    "list_usd_per_h", "listed_by", "listed", "difference_pct", "saved_usd_per_month",
)  # fmt: skip


@document_for(PaidPrices)
def paid_prices_document(found: PaidPrices) -> Document:
    """The prices, what they save, and the rows that fit no GPU."""
    table = _table(found)
    return Document(
        name="paid_prices",
        kind="Prices",
        title="Paid and listed prices",
        headline=_headline(found),
        facts=[period(found.start_ms, found.end_ms), gpus(found.gpus), f"${found.paid_usd:,.2f} paid"],
        notes=[*inventory_warnings(found.inventory), *_unpriced(found)],
        summary=[table],
        sections=inventory_sections(found.inventory),
        screen=[table],
        data=lambda: encode("paid_prices", found),
        files={"paid_prices.csv": lambda: csv_text(_csv(found))},
        main_table="prices",
    )


def _headline(found: PaidPrices) -> str:
    hours = sum((Decimal(str(p.gpu_h)) for p in found.prices), Decimal(0))
    paid = f"${found.paid_usd / hours:,.2f} per GPU-hour paid on average" if hours else "Nothing paid"
    saved = found.saved_usd_per_month
    if isinstance(saved, Unknown):
        return f"{paid}; compared with list prices: {saved}"
    if not saved:
        return f"{paid}, as listed"
    side = "below" if saved > 0 else "above"
    return f"{paid}: ${abs(saved):,.2f} per month {side} list prices"


def _unpriced(found: PaidPrices) -> list[Prose]:
    if not found.gpus_without_price:
        return []
    lacking = f"{gpus(found.gpus_without_price)} of {number(found.gpus)} without a price in the inventory"
    return [Prose(f"{lacking}: not in this table.", "warning")]


def _table(found: PaidPrices) -> Table:
    rows: list[Row] = []
    for p in found.prices:
        where = ", ".join(text for text in (p.instance, p.region, p.purchase_option.replace("_", "-")) if text)
        rows.append(
            [
                p.gpu_model or "no model name", where, str(p.gpus), _usd(p.paid_usd_per_h, 4),
                _usd(p.list_usd_per_h, 4), figure(p.difference_pct, _signed), _usd(p.saved_usd_per_month, 2),
                cell(number(p.gpu_h, 1), p.gpu_h), _list(p),
            ]
        )  # fmt: skip
    heads = ("GPU", "Bought as", "GPUs", "Paid $/h", "List $/h", "Differs", "Saved $/month", "GPU-hours", "Listed")
    caption = f"By GPU model and instance, dollars per GPU-hour; {amount(str(len(rows)), 'price')}"
    note = "Listed: on-demand, the same instance and region unless noted. A month is 720 h of the GPUs in the window."
    return make_table("paid-prices", caption, heads, "wwnnnnnNW", rows, screen_rows=len(rows), note=note)


def _signed(pct: float) -> str:
    return ("+" if pct >= 0.05 else "") + percent(pct)


def _list(p: PaidPrice) -> str:
    return ", ".join(text for text in (p.listed or "", LISTED[p.listed_by]) if text) or "-"


def _usd(value: Decimal | Unknown, places: int) -> Any:
    return figure(value, lambda usd: number(usd, places))


def _csv(found: PaidPrices) -> Iterable[Sequence[Any]]:
    """Unrounded; a cell is empty where the figure is unknown."""
    yield COLUMNS
    for p in found.prices:
        yield [plain(getattr(p, name)) for name in COLUMNS]
