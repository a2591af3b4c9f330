"""What does the comparison of two periods show?"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gpuledger.advice.change import Change, OwnerChange
from gpuledger.encode import encode
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.document import Bullets, Document, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import MINUS, number, percent, period, points, tenth, usd
from gpuledger.units import Unknown

SHOWN = 8


@document_for(Change)
def change_document(found: Change) -> Document:
    """Both periods next to each other, the owners behind the change, each bucket."""
    periods, owners = _periods(found), _owners(found)
    return Document(
        name="change",
        kind="Change",
        title=f"Change since the period before, {period(found.now.start_ms, found.now.end_ms)}",
        headline=headline(found),
        facts=[
            period(found.now.start_ms, found.now.end_ms),
            f"compared with {period(found.before.start_ms, found.before.end_ms)}",
        ],
        notes=[Prose(f"{note}.", "warning") for note in found.notes],
        summary=[periods, owners],
        sections=[
            Section("buckets", "By bucket", [_buckets(found), Bullets(found.comparison.words)]),
            Section("assumptions", "Assumptions", [Bullets(found.assumptions)]),
        ],
        screen=[periods, owners],
        data=lambda: encode("change", found),
        main_table="owners",
    )


def headline(found: Change) -> str:
    """Dollars and waste, and the owner behind most of it."""
    now, before = found.now, found.before
    if isinstance(now.paid_usd, Unknown) or isinstance(before.paid_usd, Unknown):
        why = next(x.why for x in (now.paid_usd, before.paid_usd) if isinstance(x, Unknown))
        return f"What changed in dollars is unknown: {why}."
    paid = f"{usd(now.paid_usd, 0)}, {_signed(now.paid_usd - before.paid_usd)} against {usd(before.paid_usd, 0)} before"
    waste = ""
    if not isinstance(now.waste_usd, Unknown) and not isinstance(before.waste_usd, Unknown):
        waste = f"; waste {usd(now.waste_usd, 0)}, {_signed(now.waste_usd - before.waste_usd)}"
    first = found.owners[0] if found.owners else None
    most = f" Most of it: {first.owner}, {reason(first)}." if first is not None and first.cause != "none" else ""
    return f"{paid}{waste}.{most}"


def reason(row: OwnerChange) -> str:
    """Why an owner's dollars changed, in words."""
    if row.cause == "new":
        return f"new: {usd(row.after_usd, 0)}"
    if row.cause == "gone":
        return f"gone: {usd(row.before_usd, 0)} less"
    if row.cause == "volume":
        more = "more" if row.volume_usd > 0 else "fewer"
        return f"{more} GPU-hours ({_signed(row.volume_usd)})"
    if row.cause == "rate":
        return f"{'higher' if row.rate_usd > 0 else 'lower'} price ({_signed(row.rate_usd)})"
    if row.cause == "efficiency":
        way = "into" if row.efficiency_usd > 0 else "out of"
        return f"{usd(abs(row.efficiency_usd), 0)} moved {way} waste"
    return "no change"


def _signed(amount: Decimal) -> str:
    return f"{MINUS if amount < 0 else '+'}{usd(abs(amount), 0)}"


def _periods(found: Change) -> Table:
    now, before = found.now, found.before

    def row(name: str, field: str, form: Callable[[Any], str], change: Callable[[Any], str]) -> Row:
        new, old = getattr(now, field), getattr(before, field)
        unknown = next((x for x in (new, old) if isinstance(x, Unknown)), None)
        moved = "unknown" if unknown is not None else ("+" if new > old else "") + change(new - old)
        return [name, figure(old, form), figure(new, form), cell(moved, unknown or None)]

    whole: Callable[[Any], str] = lambda value: usd(value, 0)  # noqa: E731  (one of several forms)
    rows = [
        row("Paid", "paid_usd", whole, whole),
        row("Waste", "waste_usd", whole, whole),
        row("Waste share", "waste_pct", percent, points),
        row("GPUs", "gpus", number, number),
        row("Paid GPU-hours", "paid_h", tenth, tenth),
        row("Idle GPU-hours", "idle_h", tenth, tenth),
        row("Utilization", "util_pct", percent, points),
        row("RFU by power", "rfu_power_pct", percent, points),
        row("RFU by counters", "rfu_counters_pct", percent, points),
    ]
    note = "RFU: realized FLOPS utilization."
    heads = ("", "Before", "Now", "Change")
    return make_table("periods", "The two periods", heads, "wnnn", rows, note=note, screen_rows=len(rows))


def _owners(found: Change) -> Table:
    rows: list[Row] = [
        [
            o.owner, cell(usd(o.before_usd, 0), o.before_usd), cell(usd(o.after_usd, 0), o.after_usd),
            cell(_signed(o.change_usd), o.change_usd), figure(o.waste_change_usd, _signed),
            cell(f"{o.gpus_before} to {o.gpus_after}", float(o.gpus_after)), reason(o),
        ]
        for o in found.owners
    ]  # fmt: skip
    heads = ("Owner", "Before", "Now", "Change", "Waste", "GPUs", "Why")
    caption = "By owner, the largest change first"
    return make_table("owners", caption, heads, "wnnnnNw", rows, screen_rows=SHOWN, empty="No owner has dollars.")


def _buckets(found: Change) -> Table:
    effects = {e.bucket: e for e in found.comparison.by_bucket}
    rows: list[Row] = []
    for kind in bucket_kinds():
        shown = effects[kind.name].shown
        amounts = [figure(shown[name], usd) for name in ("before_usd", "after_usd")]
        parts = [figure(shown[name], _signed) for name in ("change_usd", "volume_usd", "rate_usd", "efficiency_usd")]
        rows.append([kind.title, *amounts, *parts])
    heads = ("Bucket", "Before", "Now", "Change", "By volume", "By rate", "By efficiency")
    return make_table("buckets", "Each bucket", heads, "wnnnnnn", rows, screen_rows=len(rows))
