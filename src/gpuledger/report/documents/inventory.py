"""What became of the inventory: which rows fit no GPU, where do two prices contradict each other?"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from gpuledger.cost.inventories.findings import InventoryUse, PriceConflict, Skipped, Source, Unmatched, Why
from gpuledger.report.document import Prose, Section
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, gpus, number
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
