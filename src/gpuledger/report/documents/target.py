"""What does the cost of the same work on another GPU show?"""

from __future__ import annotations

from decimal import Decimal

from gpuledger.encode import encode
from gpuledger.plan.move.target import TargetPlan, TargetRow
from gpuledger.plan.outcome import UsdRange
from gpuledger.report.document import Bullets, Document, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table, whole_usd
from gpuledger.report.written import MINUS, gpus, loose, period, usd
from gpuledger.units import Unknown


@document_for(TargetPlan)
def target_document(plan: TargetPlan) -> Document:
    """The answer, each namespace, and what cannot move or is unknown."""
    table, left = _table(plan), _left(plan)
    risks = [f"{r.namespace} on {r.gpu_model}: {'; '.join(r.risks)}." for r in plan.rows if r.risks]
    return Document(
        name="migrate",
        kind="Migration plan",
        title=f"The same work on {plan.to_name}",
        headline=headline(plan),
        facts=[period(plan.start_ms, plan.end_ms), gpus(plan.gpus), f"ages of prices counted to {plan.today}"],
        notes=[Prose(f"{gpus(plan.there)} {'is' if plan.there == 1 else 'are'} {plan.to_name} already.", "note")]
        if plan.there
        else [],
        summary=[table, *([left] if left.rows else [])],
        sections=[
            Section("demand", "What the work needs", [_demand(plan)]),
            Section("risks", "Risks", [Bullets(risks)]),
            Section("assumptions", "Assumptions", [Bullets([*plan.assumptions, plan.price_source])]),
        ],
        screen=[table, *([left] if left.rows else [])],
        data=lambda: encode("migrate_to", plan),
        main_table="rows",
    )


def headline(plan: TargetPlan) -> str:
    """Dollars there against dollars today, with the range, and what is left out."""
    staying = f" {gpus(plan.staying)} cannot move or cannot be judged." if plan.staying else ""
    now, after = plan.now_month_usd, plan.after_month
    if isinstance(now, Unknown) or isinstance(after, Unknown):
        if plan.there and not plan.staying:
            return f"All GPUs are {plan.to_name} already."
        short = next((r.after_month.why for r in plan.rows if r.moved and isinstance(r.after_month, Unknown)), None)
        if short is not None:
            takes = f"The work of {gpus(plan.moving)} takes {plan.gpus_after[1]} x {plan.to_name}"
            return f"{takes}. Dollars per month are unknown: {short}.{staying}"
        why = next((r.why_not for r in plan.rows if r.outcome not in {"moves", "there already"}), "nothing to move")
        return f"The cost of the same work on {plan.to_name} is unknown: {why}."
    side = "more" if after.middle_usd > now else "less"
    off = abs(after.middle_usd - now)
    share = f" ({100 * off / now:.0f} %)" if now else ""
    return (
        f"The work of {gpus(plan.moving)} takes {plan.gpus_after[1]} x {plan.to_name}: {usd(after.middle_usd, 0)} per "
        f"month ({usd(after.low_usd, 0)} to {usd(after.high_usd, 0)}) against {usd(now, 0)} now, {usd(off, 0)} "
        f"{side}{share}.{staying}"
    )


def _table(plan: TargetPlan) -> Table:
    rows: list[Row] = []
    for r in (r for r in plan.rows if r.outcome == "moves"):
        there = r.after_month if isinstance(r.after_month, Unknown) else r.after_month.middle_usd
        count = f"{r.moved} of {r.gpus_now}" if r.moved < r.gpus_now else str(r.moved)
        price = f"${r.price.usd_per_gpu_h:.2f}{', stale' * r.price.stale}" if r.price else ""
        rows.append(
            [
                r.namespace, r.gpu_model or "no model name", count, " / ".join(map(str, r.gpus_after)),
                whole_usd(r.now_month_usd), whole_usd(there), _ends(r.after_month),
                _signed(r.change_month_usd), price,
            ]
        )  # fmt: skip
    heads = ("Namespace", "From", "GPUs", "GPUs there", "Now", "There", "Range", "Change", "$/GPU-h")
    note = "GPUs there: cautious, middle, bold. Range: of the price (p10 to p90) and of how full a GPU is planned."
    caption = f"The same work on {plan.to_name}, dollars per month"
    empty = f"No work can be moved to {plan.to_name} with a known cost."
    return make_table("moves", caption, heads, "wWnnnnnnN", rows, note=note, empty=empty, screen_rows=len(rows) or 1)


def _left(plan: TargetPlan) -> Table:
    rows: list[Row] = [
        [r.namespace, r.gpu_model or "no model name", str(r.gpus_now - r.moved), r.why_not, r.remedy]
        for r in plan.rows
        if r.gpus_now > r.moved and r.outcome != "there already"
    ]
    heads = ("Namespace", "From", "GPUs", "Why", "What would change it")
    return make_table("left", "What cannot move, or is unknown", heads, "wWnwW", rows, screen_rows=len(rows) or 1)


def _demand(plan: TargetPlan) -> Table:
    rows: list[Row] = []
    for r in plan.rows:
        m = r.measured
        memory = m.memory_max_bytes
        rows.append(
            [
                r.namespace, r.gpu_model or "no model name", cell(loose(m.busy_hours_gpus), m.busy_hours_gpus),
                _needs(r), figure(memory, lambda b: f"{b / 1e9:,.0f} GB"),
                figure(r.after_gpu_h_per_month, loose), m.evidence,
            ]
        )  # fmt: skip
    heads = ("Namespace", "From", "Busy as GPUs", "TFLOPS at work", "Peak memory", "GPU-h/month there", "Evidence")
    return make_table("demand", "What was measured", heads, "wWnwnnw", rows, screen_rows=len(rows) or 1)


def _needs(row: TargetRow) -> Cell:
    needs = row.needs_tflops
    if isinstance(needs, Unknown):
        return cell(f"unknown: {needs.why}", needs)
    return cell(", ".join(f"{loose(v)} {p}" for p, v in sorted(needs.items())) or "hardly any")


def _ends(after: UsdRange | Unknown) -> str:
    return "unknown" if isinstance(after, Unknown) else f"{usd(after.low_usd, 0)} to {usd(after.high_usd, 0)}"


def _signed(value: Decimal | Unknown) -> Cell:
    return figure(value, lambda amount: f"{MINUS if amount < 0 else '+'}{usd(abs(amount), 0)}")
