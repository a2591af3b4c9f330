"""What does the comparison of paid with listed prices show?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from gpuledger.cost.paid_prices import ListedBy, PaidPrice, PaidPrices
from gpuledger.encode import encode, plain
from gpuledger.plain_text import csv_text
from gpuledger.report.document import Document, Prose
from gpuledger.report.documents import document_for
from gpuledger.report.documents.inventory import inventory_sections, inventory_warnings
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, gpus, number, percent, period
from gpuledger.units import Unknown

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
