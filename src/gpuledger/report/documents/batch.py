"""What does a batch plan show? Dollars and deadlines, what queues would do, the pools, and every job's place."""

from __future__ import annotations

from gpuledger.encode import encode
from gpuledger.plan.batching.statement import BatchPlan, Outcome, Placement
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Bullets, Chart, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.plan_sections import closing_sections, dollar_figure
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import instant, number, percent, period, tenth, usd
from gpuledger.units import Unknown

MOST_ROWS = 500
SCREEN_ROWS = 12


@document_for(BatchPlan)
def batch_document(plan: BatchPlan) -> Document:
    """The document of a batch plan."""
    data = encode("batch", plan)
    sections = [
        Section("schedule", "The schedule", [*_charts(plan, "schedule"), schedule_table(plan)]),
        Section("compared", "Compared with queues", [*_charts(plan, "compared"), compared_table(plan)]),
        Section("pools", "The pools", [*_charts(plan, "pools"), pools_table(plan)]),
    ]
    if plan.read_as:
        sections.append(Section("read", "What was read as what", [Bullets(plan.read_as)]))
    facts = [period(plan.start_ms, plan.end_ms), f"steps of {plan.step_min:g} minutes"]
    return Document(
        name="batch",
        kind="Batch plan",
        title="Batch plan",
        headline=plan.headline,
        facts=[*facts, *([f"prices of {plan.prices_dated}"] if plan.prices_dated else [])],
        notes=_notes(plan),
        figures=_figures(plan),
        sections=[*sections, *closing_sections(plan, data)],
        screen=[compared_table(plan), pools_table(plan), schedule_table(plan)],
        data=lambda: data,
        main_table="placements",
    )


def _charts(plan: BatchPlan, section: str) -> list[Block]:
    return [Chart(name, plan) for name in chart_names("batch", section)]


def _notes(plan: BatchPlan) -> list[Prose]:
    out = [Prose(f"{plan.proof_words}.", "note")]
    if plan.chosen.missed:
        late = sorted((p for p in plan.placements if p.late_h), key=lambda p: -p.late_h)
        words = ", ".join(f"{p.job} ({tenth(p.late_h)} h)" for p in late[:5])
        more = f" and {len(late) - 5:,} more" if len(late) > 5 else ""
        out.append(Prose(f"Late: {words}{more}.", "warning"))
    return out


def _figures(plan: BatchPlan) -> list[KeyFigure]:
    mine, fifo = plan.chosen, plan.runners_up[0]
    gap = plan.gap_pct
    return [
        dollar_figure("Cost", plan.usd, "reserved pools included"),
        KeyFigure("Deadlines met", f"{mine.met:,} of {mine.jobs:,}", "", f"FIFO: {fifo.met:,}"),
        dollar_figure("Saved against FIFO", fifo.more_usd),
        KeyFigure(
            "Gap", "unknown" if isinstance(gap, Unknown) else percent(gap), "", plan.proof_words,
            unknown=isinstance(gap, Unknown),
        ),
        KeyFigure("Mean wait", f"{tenth(mine.mean_wait_h)} h", "", f"FIFO: {tenth(fifo.mean_wait_h)} h"),
    ]  # fmt: skip


def compared_table(plan: BatchPlan) -> Table:
    """The plan and the queues: dollars, deadlines missed, wait."""

    def row(one: Outcome) -> Row:
        more = "" if one is plan.chosen else f"+{usd(one.more_usd)}" if one.more_usd > 0 else usd(one.more_usd)
        return [
            one.name, figure(one.usd, usd), cell(more, one.more_usd), cell(number(one.missed), one.missed),
            cell(tenth(one.late_h), one.late_h), cell(tenth(one.mean_wait_h), one.mean_wait_h),
        ]  # fmt: skip

    heads = ("Way to run them", "Cost", "More than the plan", "Missed", "Hours late", "Mean wait, h")
    rows = [row(one) for one in (plan.chosen, *plan.runners_up)]
    return make_table("compared", "The plan and what queues would do", heads, "wnnnNn", rows)


def pools_table(plan: BatchPlan) -> Table:
    """What each pool is used for."""
    rows: list[Row] = [
        [
            p.pool, p.gpu, cell(number(p.gpus), p.gpus), p.terms, figure(p.usd_per_gpu_h, usd),
            cell(number(p.jobs), p.jobs), cell(tenth(p.gpu_h), p.gpu_h), cell(percent(p.used_pct), p.used_pct),
            figure(p.usd, usd),
        ]
        for p in plan.pools
    ]  # fmt: skip
    heads = ("Pool", "GPU", "GPUs", "Terms", "$/GPU-h", "Jobs", "GPU-hours", "Used", "Cost")
    total: Row = ["all", "", "", "", "", number(len(plan.placements)), "", "", usd(plan.chosen.usd)]
    return make_table(
        "pools", "The pools", heads, "wWnwNnNnn", rows, total=tuple(cell(str(c)) for c in total) if rows[1:] else None,
        note="$/GPU-h outside of price windows. A reserved pool costs the same, used or not.",
    )  # fmt: skip


def schedule_table(plan: BatchPlan) -> Table:
    """Every job's place, first start first; the JSON and CSV files have all of a long list."""
    rows = [_row(p) for p in plan.placements[:MOST_ROWS]]
    heads = ("Job", "Pool", "GPUs", "Start", "End", "Deadline", "Pieces", "Late, h", "Cost")
    cut = len(plan.placements) - MOST_ROWS
    note = (
        f"The first {MOST_ROWS} of {len(plan.placements):,} jobs; JSON and CSV have all."
        if cut > 0
        else "Times in UTC."
    )
    words = "wwnwwWNNn" if not plan.chosen.missed else "wwnwwWNnn"
    return make_table("schedule", "The schedule", heads, words, rows, note=note, screen_rows=SCREEN_ROWS)


def _row(p: Placement) -> Row:
    due = "" if p.deadline_ms is None else instant(p.deadline_ms)
    return [
        p.job, p.pool, cell(number(p.gpus), p.gpus), cell(instant(p.start_ms), p.start_ms),
        cell(instant(p.end_ms), p.end_ms), cell(due, p.deadline_ms or 0), cell(number(len(p.pieces)), len(p.pieces)),
        cell(tenth(p.late_h), p.late_h), figure(p.usd, usd),
    ]  # fmt: skip
