"""What does a spot plan show?"""

from __future__ import annotations

from gpuledger.encode import encode
from gpuledger.plan.spot.backtest import PLANNED, Backtest, RuleResult
from gpuledger.plan.spot.options import Rated
from gpuledger.plan.spot.statement import SpotPlan
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Bullets, Chart, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.plan_sections import closing_sections, dollar_figure, refused_few
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, loose, percent, rate, tenth, usd
from gpuledger.units import Range, Unknown, utc

STALE_DAYS = 30
SCREEN_OPTIONS = 6


@document_for(SpotPlan)
def spot_document(plan: SpotPlan) -> Document:
    """The answer, the options, the pools, checkpoints, the back-test, and what it rests on."""
    data = encode("spot", plan)
    options, back = _options(plan), _backtest(plan.backtest)
    sections = [
        *([Section("options", "Options", drawn)] if (drawn := _charts(plan, "options")) else []),
        Section("pools", "Zones of the chosen option", [*_charts(plan, "pools"), _pools(plan)]),
        Section("checkpoints", "Checkpoints", _checkpoints(plan)),
        *([Section("backtest", "On the past", [*_charts(plan, "backtest"), *back])] if back else []),
        Section("unrated", "Other clouds", [_unrated(plan)]),
        *closing_sections(plan, data),
    ]
    return Document(
        name="spot",
        kind="Spot plan",
        title="A job on spot instances",
        headline=plan.headline,
        facts=_facts(plan),
        notes=_notes(plan),
        figures=_figures(plan),
        summary=[options],
        sections=sections,
        screen=[options, *back[:1], *_every(plan), *refused_few(plan.refused)],
        data=lambda: data,
        main_table="options",
    )


def _charts(plan: SpotPlan, section: str) -> list[Block]:
    return [Chart(name, plan) for name in chart_names("spot", section)]


def _facts(plan: SpotPlan) -> list[str]:
    age = f", {amount(str(plan.price_age_days), 'day')} old" if plan.price_age_days > 0 else ""
    starts = utc(plan.start_ms).date()
    return [
        f"prices of {plan.prices_dated}{age}", f"starts {starts}", f"deadline in {loose(plan.job.deadline_h)} h",
    ]  # fmt: skip


def _notes(plan: SpotPlan) -> list[Prose]:
    out = [Prose(words, "warning") for words in plan.notes]
    if plan.price_age_days > STALE_DAYS:
        age = amount(str(plan.price_age_days), "day")
        out.append(Prose(f"The prices are {age} old; --history FILE plans with newer ones.", "warning"))
    return out


def _figures(plan: SpotPlan) -> list[KeyFigure]:
    chosen = plan.chosen
    saved = 100 * (1 - chosen.cost.middle_usd / plan.on_demand_usd) if plan.on_demand_usd else 0
    return [
        dollar_figure("Expected cost", chosen.cost, "mean; 10th to 90th percentile of simulated runs"),
        KeyFigure("Against on-demand", f"{percent(-float(saved))}", "", f"on-demand {usd(plan.on_demand_usd)}"),
        KeyFigure("Done after", f"{tenth(chosen.finish_h.middle)} h", _ends(chosen.finish_h), "from the start"),
        KeyFigure("On time", percent(chosen.on_time_pct), "", f"{plan.job.confidence_pct:g} % are asked for"),
        KeyFigure("Interruptions", tenth(chosen.reclaims), "", "on average"),
        _interval(plan),
    ]


def _interval(plan: SpotPlan) -> KeyFigure:
    if isinstance(plan.intervals, Unknown):
        return KeyFigure("Checkpoint every", "none", "", plan.intervals.why)
    return KeyFigure("Checkpoint every", f"{minutes(plan.pools[0].interval_min)}", "", "more often near the deadline")


def minutes(value: float | Unknown) -> str:
    """Minutes, or hours from two on."""
    if isinstance(value, Unknown):
        return "unknown"
    return f"{value:,.0f} min" if value < 120 else f"{value / 60:,.1f} h"


def _ends(value: Range) -> str:
    return f"{tenth(value.low)} to {tenth(value.high)} h"


def _every(plan: SpotPlan) -> list[Block]:
    if isinstance(plan.intervals, Unknown):
        return []
    every, found = minutes(plan.pools[0].interval_min), plan.chosen
    words = f"Checkpoint every {every} of work; {tenth(found.reclaims)} interruptions are expected."
    return [Prose(words)]


def _options(plan: SpotPlan) -> Table:
    several = len({o.gpu for o in plan.options}) > 1
    rows: list[Row] = []
    for o in sorted(plan.options, key=lambda o: o != plan.chosen):
        name = f"{o.gpu}: {o.name}" if several else o.name
        rows.append(
            [
                f"{'> ' if o == plan.chosen else ''}{name}", cell(usd(o.cost.middle_usd), o.cost.middle_usd),
                f"{usd(o.cost.low_usd)} to {usd(o.cost.high_usd)}", cell(tenth(o.finish_h.middle), o.finish_h.middle),
                _ends(o.finish_h), cell(percent(o.on_time_pct), o.on_time_pct), cell(tenth(o.reclaims), o.reclaims),
                cell(tenth(o.on_demand_h), o.on_demand_h),
            ]
        )  # fmt: skip
    heads = ("Option", "Cost", "Range", "Done, h", "Range, h", "On time", "Interruptions", "On-demand h")
    note = "> is the chosen one. Spot falls back to on-demand when no more time can be lost, unless it says otherwise."
    return make_table("options", "Ways to run the job", heads, "wnnnNnNN", rows, note=note, screen_rows=SCREEN_OPTIONS)


def _pools(plan: SpotPlan) -> Table:
    rows: list[Row] = [
        [
            p.instance, f"{p.region} {p.zone}", str(p.instances), cell(rate(p.spot_usd_h), p.spot_usd_h),
            figure(p.on_demand_usd_h, rate), p.band,
            cell(loose(p.reclaims_per_day.middle), p.reclaims_per_day.middle),
            f"{loose(p.reclaims_per_day.low)} to {loose(p.reclaims_per_day.high)}",
            figure(p.interval_min, minutes),
        ]
        for p in plan.pools
    ]  # fmt: skip
    heads = (
        "Instance", "Zone", "Instances", "Spot/h", "On-demand/h", "Reclaimed/month", "Reclaims/day", "Range/day",
        "Checkpoint",
    )  # fmt: skip
    caption = f"Prices of {plan.prices_dated} for all instances of the job"
    return make_table("pools", caption, heads, "wwNnNWnNn", rows, empty="No spot is used.")


def _checkpoints(plan: SpotPlan) -> list[Block]:
    found = plan.intervals
    if isinstance(found, Unknown):
        return [Prose(f"No interval: {found.why}.")]
    rows: list[Row] = [
        ["Young, sqrt(2 C / r)", minutes(60 * found.young_h)],
        ["Daly, higher order", minutes(60 * found.daly_h)],
        ["Exact for a constant rate (Lambert W)", minutes(60 * found.exact_h)],
    ]
    table = make_table("intervals", "Work between checkpoints", ("Formula", "Interval"), "wn", rows)
    words = (
        "The exact interval is used, but never longer than the job; close to the deadline it is shorter, so that a "
        "reclaim cannot cost more time than is left."
    )
    return [table, Prose(words)]


def _backtest(back: Backtest | None) -> list[Block]:
    if back is None:
        return []
    words = f"{back.starts} starts; {back.left_out} more were left out (not observed, or nothing on offer)."
    table = _rules(back.rules, "back", "What each rule would have cost", f"Mean per job with 95 % interval. {words}")
    windows = _rules(back.windows, "windows", "By half-year", "")
    if back.beaten:
        beaten = [f"{b.window}: {b.rule} {usd(b.usd)} against {usd(b.planned_usd)}" for b in back.beaten]
    else:
        beaten = ["In no half-year was a simple rule cheaper without missing more deadlines."]
    return [table, windows, Bullets(beaten, "Where a simple rule did better")]


def _rules(rows: tuple[RuleResult, ...], name: str, caption: str, note: str) -> Table:
    """Rules in their order; the half-year first where there are several."""
    several = len({r.window for r in rows}) > 1
    made: list[Row] = []
    for r in rows:
        mine: Row = [
            f"{'> ' if r.rule == PLANNED else ''}{r.rule}", cell(usd(r.mean_usd), r.mean_usd),
            f"{usd(r.mean_low_usd)} to {usd(r.mean_high_usd)}", cell(str(r.misses), r.misses),
            cell(percent(r.median_regret_pct), r.median_regret_pct),
            f"{tenth(r.regret_low_pct)} to {percent(r.regret_high_pct)}",
        ]  # fmt: skip
        made.append([r.window, *mine] if several else mine)
    heads = ["Rule", "Mean cost", "95 %", "Missed", "Regret", "95 %"]
    heads, kinds = (["Half-year", *heads], "wwnnnnN") if several else (heads, "wnnnnN")
    more = "Regret: median above a lower bound of what knowing the future would cost."
    return make_table(name, caption, heads, kinds, made, note=f"{note} {more}".strip())


def _unrated(plan: SpotPlan) -> Table:
    rows: list[Row] = [
        [u.cloud, u.instance, u.region, cell(rate(u.usd_h), u.usd_h), str(u.dated)]
        for u in plan.unrated
    ]  # fmt: skip
    heads = ("Cloud", "Instance", "Where", "Spot/h", "Price of")
    note = "No history of these prices ships, so they are not rated; --history FILE rates your own."
    return make_table("unrated", "Spot listed elsewhere", heads, "wwwnw", rows, note=note, empty="None is listed.")


def shown_options(plan: SpotPlan) -> list[Rated]:
    """The options as charts show them: cheapest first."""
    return sorted(plan.options, key=lambda o: o.cost.middle_usd)
