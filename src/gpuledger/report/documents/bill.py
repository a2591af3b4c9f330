"""What does a bill or a list of machines show by itself? What is read of it, and what it takes to use it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from gpuledger.cost.inventories.kinds import OWN
from gpuledger.cost.inventories.summary import BillSummary
from gpuledger.encode import encode
from gpuledger.report.document import Document, KeyFigure, Prose
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Row, Table, figure, make_table
from gpuledger.report.written import amount, capital, gpus, number, period, rate, usd, whole
from gpuledger.units import Unknown

NAME = "bill"


@document_for(BillSummary)
def bill_document(found: BillSummary) -> Document:
    """The document of a bill, a list of machines, or a table of prices."""
    table = _table(found)
    return Document(
        name=NAME,
        kind="Bill",
        title=capital(found.format),
        headline=f"{found.format}: {', '.join(_headline(found))}.",
        facts=list(_facts(found)),
        notes=[
            *([Prose(f"Not counted: {found.passed_over}.", "warning")] if found.skipped else []),
            Prose(f"By itself it prices no GPU time. Next: {found.next_step}", "note"),
        ],
        figures=list(_figures(found)),
        summary=[table],
        screen=[table],
        data=lambda: encode(NAME, found),
        main_table="by_machine",
    )


def _headline(found: BillSummary) -> Iterator[str]:
    priced = ("device", "devices") if found.kind == OWN else ("machine with GPUs", "machines with GPUs")
    yield amount(whole(found.machines), *priced)
    if not isinstance(found.gpus, Unknown):
        yield gpus(found.gpus)
    if not isinstance(found.usd, Unknown):
        yield usd(found.usd)


def _facts(found: BillSummary) -> Iterator[str]:
    yield f"{amount(whole(found.rows), 'row')}, {whole(found.rows_read)} read"
    if found.start_ms is not None and found.end_ms is not None:
        yield period(found.start_ms, found.end_ms)


def _figures(found: BillSummary) -> Iterator[KeyFigure]:
    for label, value in (("Dollars", found.usd), ("GPUs", found.gpus)):
        if isinstance(value, Unknown):
            yield KeyFigure(label, "unknown", "", value.why, unknown=True)
        else:
            yield KeyFigure(label, usd(value) if isinstance(value, Decimal) else whole(value))


def _table(found: BillSummary) -> Table:
    """A line for each machine, the one with the most dollars first."""
    heads = ("Machine", "Instance", "Region", "GPUs", "Hours", "Dollars", "$/h")
    rows: list[Row] = [
        [
            one.name, one.instance or "-", one.region or "-", figure(one.gpus, whole), figure(one.hours, number),
            figure(one.usd, usd), figure(one.usd_per_h, rate),
        ]
        for one in found.by_machine
    ]  # fmt: skip
    shown = [i for i in range(len(heads)) if i < 1 or any(_says(row[i]) for row in rows)]
    more = found.machines - len(rows)
    note = f"The {whole(len(rows))} with the most dollars; {whole(more)} more are not shown." if more else ""
    return make_table(
        "machines", f"By machine; {amount(whole(found.machines), 'machine')}", [heads[i] for i in shown],
        "".join("wwwnnnn"[i] for i in shown), ([row[i] for i in shown] for row in rows), note=note,
        empty="No row is for a machine with GPUs.",
    )  # fmt: skip


def _says(cell: object) -> bool:
    """Whether a cell says anything."""
    return cell != "-" and not getattr(cell, "unknown", False)
