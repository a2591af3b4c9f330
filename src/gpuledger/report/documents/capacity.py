"""What does a capacity plan show? GPUs needed by pool and month, what is held and not used, dollars, the back-test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuledger.encode import encode
from gpuledger.plan.capacity.statement import Basis, CapacityPlan, GpuRange, PoolPlan, RightSize, RunsOut
from gpuledger.plan.capacity.words import BASES, is_old, span
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Bullets, Chart, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.documents.capacity_money import invest_table, money_figures, spending_table
from gpuledger.report.plan_sections import closing_sections, refused_few
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import number, tenth, usd
from gpuledger.units import GIB, Unknown, utc

SCREEN_ROWS = 6
MOST_PODS = 40


@document_for(CapacityPlan)
def capacity_document(plan: CapacityPlan) -> Document:
    """The document of a capacity plan."""
    need, months, spend, size = needs_table(plan), months_table(plan), spending_table(plan), rightsize_table(plan)
    meet, data = invest_table(plan), encode("capacity", plan)
    lead: list[Block] = [need, *([meet] if meet.rows else [])]
    return Document(
        name="capacity",
        kind="Capacity plan",
        title="Capacity plan",
        headline=plan.headline,
        facts=[
            f"history {utc(plan.start_ms):%Y-%m-%d} to {utc(plan.end_ms):%Y-%m-%d}",
            f"{plan.weeks} weeks ahead",
            f"covers {plan.cover_pct:g} % of hours, {plan.target_pct:g} % of GPUs taken",
            f"prices: {plan.prices_dated}",
        ],
        notes=[*(Prose(f"{words}.", "note") for words in plan.notes), *_next_to_audit(plan)],
        figures=key_figures(plan),
        summary=[*lead, *_charts(plan, "need")],
        sections=[
            Section("months", "Need by month", [*_charts(plan, "months"), months]),
            Section("forecast", "Demand and forecast", [*_charts(plan, "forecast"), tested_table(plan)]),
            Section("rightsize", "Right-sizing", [*_charts(plan, "rightsize"), size]),
            Section("money", "Spending and budget", [spend, Bullets(plan.price_words, "Prices")]),
            *closing_sections(plan, data),
        ],
        screen=[*_screen_notes(plan), *lead, *_screen(plan, spend), _quality(plan), *refused_few(plan.refused)],
        screen_notes=plan.chosen == "demand",
        data=lambda: data,
        main_table="pools",
    )


def _next_to_audit(plan: CapacityPlan) -> list[Prose]:
    return [Prose(plan.next_to_audit, "note")] if plan.chosen != "demand" else []


def _screen_notes(plan: CapacityPlan) -> list[Prose]:
    """What was noted about a lake; a table's notes say how it was read and stand under the headline."""
    return [Prose(f"{words}.", "note") for words in plan.notes] if plan.chosen != "demand" else []


def _charts(plan: CapacityPlan, section: str) -> list[Chart]:
    """The charts of a section; demand and forecast are drawn once per pool, the largest first."""
    many = plan.pools[:SCREEN_ROWS] if section == "forecast" else ()
    out = []
    for name in chart_names("capacity", section):
        out += [Chart(name, pool, i) for i, pool in enumerate(many)] if many else [Chart(name, plan)]
    return out


def _screen(plan: CapacityPlan, spend: Table) -> list[Block]:
    """What a terminal shows of right-sizing and dollars."""
    out: list[Block] = []
    if plan.rightsize:
        worth = [r for r in plan.rightsize if r.give_back_shared or not isinstance(r.slice_name, Unknown)]
        out.append(replace(rightsize_rows(worth), note="", screen_rows=SCREEN_ROWS) if worth else Prose(NOTHING_BACK))
    priced = [m for m in plan.spending if not isinstance(m.need_usd, Unknown)]
    return [*out, replace(spend, note="", screen_rows=SCREEN_ROWS)] if priced else out


NOTHING_BACK = "Every owner uses the GPUs it holds: none can be given back."


def key_figures(plan: CapacityPlan) -> list[KeyFigure]:
    """GPUs now, GPUs needed on each basis, and what the shortfall costs."""
    now = "unknown" if plan.gpus_now is None else number(plan.gpus_now)
    out = [KeyFigure("GPUs now", now, unknown=plan.gpus_now is None)]
    for basis, need in plan.needs.items():
        if isinstance(need, Unknown):
            out.append(KeyFigure(f"Need, {BASES[basis]}", "unknown", "", need.why, unknown=True))
        else:
            label = "Need" if basis == "demand" else f"Need, {BASES[basis]}"
            out.append(KeyFigure(label, number(need.middle), _ends(need), NOTES[basis]))
    return [*out, *money_figures(plan)]


NOTES: dict[Basis, str] = {
    "held": "GPUs, if owners hold as many as today",
    "working": "GPUs, if idle ones go back to the pool",
    "realized": "GPUs, at the share the better ones reach",
    "demand": "GPUs, the most of any month ahead",
}


def _ends(need: GpuRange) -> str:
    return "" if need.low == need.high else f"{need.low} to {need.high}"


def _need(need: GpuRange | Unknown) -> Cell:
    return cell(span(need), need if isinstance(need, Unknown) else need.middle)


def needs_table(plan: CapacityPlan) -> Table:
    """GPUs now and needed, by pool."""
    bases = list(plan.needs)

    def row(name: str, now: int | None, needs: Iterable[GpuRange | Unknown], out: str) -> Row:
        return [name, cell("unknown") if now is None else cell(number(now), now), *map(_need, needs), out]

    rows = [row(p.name, p.gpus_now, p.needs.values(), _out(p, plan.age_days)) for p in plan.pools]
    total = row("all", plan.gpus_now, plan.needs.values(), "")
    heads = ("Pool", "Now", *(("Need" if b == "demand" else HEADS[b]) for b in bases), "Runs out")
    note = (
        f"GPUs for the most demanding month ahead, with the range that holds {_promised(plan):g} % of the outcomes. "
        "Runs out: the first week whose need passes the GPUs there are."
    )
    return make_table(
        "pools", "GPUs needed", heads, "wn" + "n" * len(bases) + "w", rows, note=note, screen_rows=20,
        total=tuple(c if isinstance(c, Cell) else cell(c) for c in total) if len(rows) > 1 else None,
    )  # fmt: skip


HEADS: dict[Basis, str] = {"held": "As held", "working": "At work", "realized": "Realized", "demand": "Need"}


def _promised(plan: CapacityPlan) -> float:
    return next(t.promised_pct for p in plan.pools for t in p.tested.values())


def _out(pool: PoolPlan, age_days: int | None) -> str:
    """When a pool runs out, with the range of dates."""
    found = pool.runs_out
    if isinstance(found, Unknown):
        return "unknown"
    start = pool.months[0].start_ms
    if found.expected == f"{utc(start):%Y-%m-%d}" and not is_old(age_days):
        return "now"
    if found.expected is None:
        return f"not expected (from {found.earliest} at the earliest)" if found.earliest else "not within the horizon"
    return f"{found.expected}{_around(found)}"


def _around(found: RunsOut) -> str:
    if found.earliest == found.latest:
        return ""
    return f" ({found.earliest} to {found.latest or 'later'})"


def months_table(plan: CapacityPlan) -> Table:
    """GPUs needed month by month."""
    bases = list(plan.needs)
    rows: list[Row] = [
        [p.name, m.name, cell(number(m.days), m.days), *(_need(m.needs[b]) for b in bases)]
        for p in plan.pools
        for m in p.months
    ]
    heads = ("Pool", "Month", "Days", *(HEADS[b] for b in bases))
    return make_table("months", "GPUs needed by month", heads, "wwn" + "n" * len(bases), rows, screen_rows=40)


def rightsize_table(plan: CapacityPlan) -> Table:
    """What owners hold and use: all namespaces, and the pods with most to give back."""
    spaces = [r for r in plan.rightsize if r.kind == "namespace"]
    pods = [r for r in plan.rightsize if r.kind == "pod"]
    made = rightsize_rows([*spaces, *pods[:MOST_PODS]])
    if len(pods) > MOST_PODS:
        return replace(made, note=f"{made.note} The first {MOST_PODS} of {len(pods):,} pods; the JSON file has all.")
    return made


def rightsize_rows(rows: Sequence[RightSize]) -> Table:
    """A line per owner."""
    made: list[Row] = [
        [
            r.name, r.gpu_model or "", cell(tenth(r.held_gpus), r.held_gpus), cell(tenth(r.used_gpus), r.used_gpus),
            cell(tenth(r.working_gpus), r.working_gpus),
            cell(_back(r), r.give_back_shared), figure(r.memory_max_bytes, lambda b: tenth(b / GIB)),
            "" if isinstance(r.slice_name, Unknown) else r.slice_name,
            figure(r.usd_per_month, lambda v: usd(v, 0)),
        ]
        for r in rows
    ]  # fmt: skip
    heads = ("Owner", "GPU", "Held", "Used", "At work", "Give back", "Memory GiB", "MIG slice", "Per month")
    note = (
        "Held and at work: GPUs in the hours to cover (of a pod, over its life); used: the most GPUs that worked in "
        "the same hour (of a pod, those that did in any). Give back: GPUs never used at the same time, and up to how "
        "many if GPUs are shared. Per month: those that work least, each at its own price, held for a whole month. "
        "Memory: the most on any GPU. MIG (Multi-Instance GPU) slice: where memory and activity are known and small."
    )
    empty = "No owner is known: a table of demand does not show who holds what."
    caption = "GPUs held and used"
    return make_table("rightsize", caption, heads, "wWnnnnNWn", made, note=note, empty=empty, screen_rows=40)


def _back(row: RightSize) -> str:
    if row.give_back == row.give_back_shared:
        return str(row.give_back)
    return f"{row.give_back} to {row.give_back_shared}"


def _quality(plan: CapacityPlan) -> Prose:
    """How good the forecast was in the back-test, in one sentence."""
    tested = [(p.name, t) for p in plan.pools for t in (p.tested.get("working") or p.tested[p.basis],)]
    known = [(n, t) for n, t in tested if not isinstance(t.skill_pct, Unknown)]
    if not known:
        return Prose("The demand does not move or is too short to back-test: no forecast skill is known.", "dim")
    skills = [t.skill_pct for _, t in known if not isinstance(t.skill_pct, Unknown)]
    held = [t.coverage_pct for _, t in known if not isinstance(t.coverage_pct, Unknown)]
    first, missed = known[0][1], _missed(min(skills), max(skills))
    return Prose(
        f"Back-test: misses {missed} than repeating the last {first.season}, over {first.origins} origins; "
        f"the {first.promised_pct:g} % range held {number(sum(held) / len(held))} % of hours.",
        "dim",
    )


def _missed(worst_pct: float, best_pct: float) -> str:
    """ "16 to 30 % smaller", "24 % larger"."""
    ends = [f"{number(abs(skill))} % {'larger' if skill < 0 else 'smaller'}" for skill in (worst_pct, best_pct)]
    if ends[0] == ends[1]:
        return ends[0]
    same = (worst_pct < 0) == (best_pct < 0)
    return " to ".join([ends[0].partition(" ")[0] if same else ends[0], ends[1]])


def tested_table(plan: CapacityPlan) -> Table:
    """The walk-forward back-test of each series."""
    rows: list[Row] = []
    for pool in plan.pools:
        for basis, t in pool.tested.items():
            methods = ", ".join(f"{n} {w:.0f}" for n, w in list(t.weights_pct.items())[:3])
            rows.append(
                [
                    pool.name, HEADS[basis], cell(number(t.history_days), t.history_days), t.season,
                    cell(f"{t.origins} x {t.ahead_days:g} d"), figure(t.skill_pct, number), figure(t.mase, _two),
                    figure(t.naive_mase, _two), figure(t.coverage_pct, number), methods,
                ]
            )  # fmt: skip
    heads = ("Pool", "Series", "Days", "Season", "Back-test", "Skill %", "MASE", "Naive", "Covered %", "Methods %")
    note = (
        "Skill: share of the seasonal-naive forecast's miss that is avoided. MASE (mean absolute scaled error), and "
        f"that of seasonal-naive. Covered: how often the {_promised(plan):g} % range held. Methods: largest weights."
    )
    return make_table("tested", "Walk-forward back-test", heads, "wwnWWnnnnW", rows, note=note, screen_rows=40)


def _two(value: float) -> str:
    return number(value, 2)
