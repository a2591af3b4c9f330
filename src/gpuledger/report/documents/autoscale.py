"""What does a plan of autoscaling show? The policy, what it costs and misses, the others, and what to paste."""

from __future__ import annotations

from gpuledger.encode import encode
from gpuledger.plan.autoscale.statement import AutoscalePlan, PolicyRow
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Bullets, Chart, Code, Document, Heading, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.plan_sections import closing_sections, dollar_figure, refused_few
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import instant, number, percent, tie, usd
from gpuledger.units import Unknown

SHOWN = 1_000
ABOUT = {
    "hpa.yaml": "HorizontalPodAutoscaler (target utilization)",
    "keda.yaml": "KEDA ScaledObject",
    "karpenter.yaml": "Karpenter NodePool",
}


@document_for(AutoscalePlan)
def autoscale_document(plan: AutoscalePlan) -> Document:
    """The document of a plan."""
    data = encode("autoscale", plan)
    table = policies_table(plan)
    notes = [
        *plan.trace.notes,
        *(["no price: compared by GPU-hours"] if isinstance(plan.prices_dated, Unknown) else []),
    ]
    return Document(
        name="autoscale",
        kind="Autoscaling plan",
        title=f"Autoscaling for {plan.trace.source}",
        headline=tie(plan.headline),
        facts=_facts(plan),
        notes=[Prose(f"{note[:1].upper()}{note[1:]}.", "note") for note in notes],
        figures=_figures(plan),
        summary=[*_charts(plan, "replicas"), table],
        sections=[
            Section("policies", "Cost and misses", [*_charts(plan, "policies"), learned_table(plan)]),
            Section("manifests", "What to paste", _manifests(plan)),
            Section("demand", "Demand", [Bullets([*plan.trace.read_as, *plan.price_words], "Read as")]),
            *closing_sections(plan, data),
        ],
        screen=[table, *refused_few(plan.refused), _next(plan)],
        data=lambda: data,
        files={name: (lambda text=text: text) for name, text in plan.manifests.items()},  # type: ignore[misc]
        main_table="policies",
    )


def _charts(plan: AutoscalePlan, section: str) -> list[Block]:
    return [Chart(name, plan) for name in chart_names("autoscale", section)]


def _facts(plan: AutoscalePlan) -> list[str]:
    t = plan.trace
    start = "" if isinstance(t.start_ms, Unknown) else f" from {instant(t.start_ms)} UTC"
    return [
        f"{number(t.requests)} requests in {number(t.hours, 1)} h{start}",
        f"{t.mean_per_s:,.3g} requests/s on average, {t.peak_per_s:,.3g} at most",
        f"replica: {plan.service.words}",
        plan.slo.words,
        *([] if isinstance(plan.prices_dated, Unknown) else [f"prices of {plan.prices_dated}"]),
    ]


def _figures(plan: AutoscalePlan) -> list[KeyFigure]:
    chosen, static = plan.chosen, plan.static
    made = []
    if chosen is not None:
        made += [
            dollar_figure(f"{chosen.title}, per month", chosen.usd_per_month, "range: of the price, and over seeds"),
            KeyFigure(
                "Requests over the wait", _pct(chosen.missed_pct), _span(chosen), f"{_allowed(plan)} % may wait longer"
            ),
            KeyFigure(
                "GPU-hours per month",
                number(chosen.gpu_h_per_month),
                "",
                f"{number(chosen.over_gpu_h_per_month)} beyond need",
            ),
        ]
    if static is not None and static is not chosen:
        made.append(dollar_figure("Static peak, per month", static.usd_per_month, static.says))
    made.append(
        KeyFigure(
            "Knowing the demand",
            f"{number(plan.clairvoyant_gpu_h_per_month)} GPU-h",
            "",
            "per month, the goal met in every step, no cold starts",
        )
    )
    return made


def _allowed(plan: AutoscalePlan) -> str:
    return f"{100 * plan.slo.missed_ratio:.3g}"


def _pct(value: float) -> str:
    return percent(value) if value >= 0.1 or value == 0 else f"{value:.1g} %" if value >= 0.01 else "< 0.01 %"


def _span(row: PolicyRow) -> str:
    same = _pct(row.missed_low_pct) == _pct(row.missed_high_pct)
    return "" if same else f"{_pct(row.missed_low_pct)} to {_pct(row.missed_high_pct)}"


def _verdict(plan: AutoscalePlan, row: PolicyRow) -> str:
    return "chosen" if row == plan.chosen else "meets" if row.meets else "misses"


def policies_table(plan: AutoscalePlan) -> Table:
    """The policies on the time they were not tuned on, cheapest of those that meet the goal first."""
    order = [*([plan.chosen] if plan.chosen else []), *plan.runners_up, *(r for r in plan.policies if not r.meets)]
    rows: list[Row] = [
        [
            row.title, row.says, figure(row.usd_per_month, lambda u: usd(u.middle_usd, 0)),
            cell(_pct(row.missed_pct), row.missed_pct), cell(f"{row.mean_wait_s:,.2f}", row.mean_wait_s),
            cell(number(row.gpu_h_per_month), row.gpu_h_per_month),
            cell(number(row.over_gpu_h_per_month), row.over_gpu_h_per_month),
            cell(number(row.most_replicas), row.most_replicas), _verdict(plan, row),
        ]
        for row in order
    ]  # fmt: skip
    heads = ("Policy", "Tuned to", "$/month", "Over wait", "Mean wait, s", "GPU-h/month", "Beyond need", "Most", "Goal")
    note = (
        f"Over wait: requests that waited longer than {plan.slo.wait_s:g} s ({_allowed(plan)} % may). Beyond need: "
        "GPU-hours paid beyond what a planner takes that knows the demand. Most: replicas at once."
    )
    caption = "Policies on the rest of the trace"
    return make_table("policies", caption, heads, "wWnnNnnNw", rows, note=note, screen_rows=SHOWN)


def learned_table(plan: AutoscalePlan) -> Table:
    """How each policy did where it was tuned, and after."""
    rows: list[Row] = [
        [
            row.title, row.says, cell(_pct(row.learned_missed_pct), row.learned_missed_pct),
            cell(_pct(row.missed_pct), row.missed_pct), _span(row) or "none",
            cell(number(row.learned_gpu_h_per_month), row.learned_gpu_h_per_month),
            cell(number(row.gpu_h_per_month), row.gpu_h_per_month),
            cell(number(row.short_gpu_h_per_month), row.short_gpu_h_per_month),
        ]
        for row in plan.policies
    ]  # fmt: skip
    heads = (
        "Policy", "Tuned to", "Over wait, tuning", "Over wait, after", "Range over seeds", "GPU-h/month, tuning",
        "GPU-h/month, after", "Missing GPU-h",
    )  # fmt: skip
    caption = f"Tuned on the first {number(plan.trace.learned_hours, 1)} h, judged on the rest"
    return make_table("learned", caption, heads, "wWnnNnnN", rows, screen_rows=SHOWN)


def _manifests(plan: AutoscalePlan) -> list[Block]:
    out: list[Block] = []
    for name, text in plan.manifests.items():
        out += [Heading(f"{ABOUT.get(name, name)}: {name}"), Code(text, "yaml")]
    return out


def _next(plan: AutoscalePlan) -> Block:
    return Prose(f"To paste: {', '.join(plan.manifests)} (written with --out DIR, shown with --full).", "dim")
