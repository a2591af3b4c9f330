"""What does the list of GPUs to give back show?"""

from __future__ import annotations

from collections import Counter

from gpuledger.advice.idle_gpus import REASONS, GiveBack, IdleGpu, Left, NotJudged
from gpuledger.catalog.gpus import find_gpu
from gpuledger.encode import encode
from gpuledger.plan.move.boards import assumed
from gpuledger.report.document import Block, Bullets, Document, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.documents.inventory import inventory_warnings
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table, whole_usd
from gpuledger.report.written import capital, gpus, instant, money, number, percent, period, tenth, usd
from gpuledger.units import Unknown


@document_for(GiveBack)
def give_back_document(found: GiveBack) -> Document:
    """The GPUs, what shows that they idle, and those that cannot be judged."""
    table = _table(found)
    sections = [Section("evidence", "Evidence", [_evidence(found)])]
    if found.not_judged:
        sections.append(Section("not-judged", "GPUs that cannot be judged", [_not_judged(found.not_judged)]))
    return Document(
        name="give_back",
        kind="GPUs to give back",
        title=f"GPUs to give back, {period(found.start_ms, found.end_ms)}",
        headline=headline(found),
        facts=[period(found.start_ms, found.end_ms), gpus(found.gpus)],
        notes=[*inventory_warnings(found.inventory), *_notes(found)],
        summary=[table],
        sections=[*sections, Section("assumptions", "Assumptions", [Bullets(found.assumptions)])],
        screen=[table],
        data=lambda: encode("give_back", found),
        main_table="give_back",
    )


def headline(found: GiveBack) -> str:
    """How many GPUs, and what is paid for their idle time."""
    if not found.give_back:
        judged = found.gpus - len(found.not_judged)
        return f"No GPU to give back: none of {gpus(judged)} that can be judged idles without being needed."
    some = f"{gpus(len(found.give_back))} to give back"
    more = f" (of {number(found.found)} found)" if found.found > len(found.give_back) else ""
    dollars = found.idle_usd_per_month
    first = found.give_back[0]
    if isinstance(dollars, Unknown) and not isinstance(found.idle_usd, Unknown):
        return f"{some}{more}: {money(found.idle_usd)} of this window is paid for idle time. First: {first.gpu}."
    if isinstance(dollars, Unknown):
        return f"{some}{more}; what they cost is unknown: {dollars.why}."
    return f"{some}{more}: {usd(dollars, 0)} per month is paid for idle time. First: {first.gpu}."


def _notes(found: GiveBack) -> list[Prose]:
    months = [row.usd_per_month for row in found.give_back if not isinstance(row.idle_usd, Unknown)]
    whys = dict.fromkeys(month.why for month in months if isinstance(month, Unknown))
    out = [Prose(f"Dollars per month are unknown: {why}.", "warning") for why in whys]
    if found.not_judged:
        reasons = Counter(row.reason for row in found.not_judged)
        each = [
            f"{f'{count}: ' if len(reasons) > 1 else ''}{REASONS[reason]}" for reason, count in reasons.most_common()
        ]
        out.append(
            Prose(f"{gpus(len(found.not_judged))} cannot be judged, so not listed: {'; '.join(each)}.", "warning")
        )
    models = dict.fromkeys(row.gpu_model for row in found.give_back if row.gpu_model)
    out += [Prose(f"{capital(words)}.", "warning") for words in assumed(find_gpu(model) for model in models)]
    out += _left(
        found.in_use, "idle for much of the time but work in between: schedule or share them (gpuledger audit)"
    )
    out += _left(found.committed, "idle too, but are reserved or owned: giving them back saves nothing")
    return out


def _left(left: Left, what: str) -> list[Prose]:
    if not left.gpus:
        return []
    dollars = left.idle_usd_per_month
    paid = "" if isinstance(dollars, Unknown) else f"; {usd(dollars, 0)} per month for their idle time"
    return [Prose(f"{gpus(left.gpus)} {what}{paid}.", "note")]


def _table(found: GiveBack) -> Table:
    rows: list[Row] = []
    for r in found.give_back:
        others = f" and {r.other_owners} more" if r.other_owners else ""
        rows.append(
            [
                Cell(r.gpu, r.gpu, full=r.gpu_uuid), r.gpu_model or "no model name", f"{r.owner}{others}",
                whole_usd(r.idle_usd_per_month), whole_usd(r.usd_per_month), _since(r),
                cell(percent(_idle_pct(r)), _idle_pct(r)), figure(r.util_pct, percent),
                figure(r.power_w, lambda w: f"{number(w)} W"), r.confidence,
            ]
        )  # fmt: skip
    heads = (
        "GPU",
        "Model",
        "Owner",
        "Idle $/month",
        "Costs $/month",
        "Idle since (UTC)",
        "Idle",
        "Util.",
        "Power",
        "By",
    )
    note = "Idle: share of the paid time, with memory held or not. By: what shows it, activity counters or utilization."
    empty = "No GPU to give back."
    return make_table(
        "give-back", "GPUs to give back, the most dollars for idle time first", heads, "wWwnNwnNNW", rows,
        note=note, empty=empty, screen_rows=len(rows) or 1,
    )  # fmt: skip


def _idle_pct(r: IdleGpu) -> float:
    paid = r.quiet_h + r.worked_h + r.unobserved_h
    return 100 * r.quiet_h / paid if paid else 0.0


def _since(r: IdleGpu) -> Cell:
    if r.since_ms is None:
        return cell("worked at the end", 0.0)
    unseen = f" ({tenth(r.since_unobserved_h)} h unobserved)" if r.since_unobserved_h >= 0.05 else ""
    first = ", its first sample" if r.from_first_sample else ""
    return cell(f"{instant(r.since_ms)}{first}{unseen}", float(r.since_ms))


def _evidence(found: GiveBack) -> Block:
    rows: list[Row] = []
    for r in found.give_back:
        longest = "none"
        if r.longest_start_ms is not None and r.longest_end_ms is not None:
            hours = (r.longest_end_ms - r.longest_start_ms) / 3_600_000
            longest = f"{tenth(hours)} h from {instant(r.longest_start_ms)}"
        memory = "" if r.memory_known else "; memory use is not recorded"
        rows.append(
            [
                Cell(r.gpu, r.gpu, full=r.gpu_uuid), cell(tenth(r.idle_h), r.idle_h),
                cell(tenth(r.idle_held_h), r.idle_held_h), cell(tenth(r.worked_h), r.worked_h),
                cell(tenth(r.unobserved_h), r.unobserved_h), longest, f"{r.why}{memory}", ", ".join(r.rules),
                r.gpu_uuid,
            ]
        )  # fmt: skip
    heads = ("GPU", "Idle h", "Idle-held h", "Worked h", "Unobserved h", "Longest idle", "Why", "Rule", "UUID")
    return make_table("evidence", "What shows it", heads, "wnnnnwwWW", rows, screen_rows=len(rows) or 1)


def _not_judged(rows: tuple[NotJudged, ...]) -> Block:
    shown: list[Row] = [
        [Cell(r.gpu, r.gpu, full=r.gpu_uuid), REASONS[r.reason], cell(tenth(r.paid_h), r.paid_h),
         cell(tenth(r.unobserved_h), r.unobserved_h)]
        for r in rows
    ]  # fmt: skip
    heads = ("GPU", "Why", "Paid h", "Unobserved h")
    return make_table("not-judged", "GPUs whose idleness is unknown", heads, "wwnn", shown, screen_rows=len(shown))
