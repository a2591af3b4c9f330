"""What would each rule have cost on the past?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.spot.backtest import PLANNED
from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, along, by_kind, by_name, layered, rows_of, says
from gpuledger.report.written import amount, percent, usd

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.spot.statement import SpotPlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, ROW_HEIGHT = 460, 40


@chart_of("spot_backtest", document="spot", section="backtest")
def draw(plan: SpotPlan, theme: Theme) -> Drawing | None:
    """A bar for each rule with its interval, and how many deadlines it missed."""
    if plan.backtest is None:
        return None
    rows: list[Row] = []
    for r in plan.backtest.rules:
        missed = f"{amount(str(r.misses), 'deadline')} missed" if r.misses else "none missed"
        rows.append(
            {
                "rule": r.rule, "usd": r.mean_usd, "low": r.mean_low_usd, "high": r.mean_high_usd,
                "words": f"{usd(r.mean_usd)}, {missed}", "label": f"{r.rule}: {usd(r.mean_usd)}, {missed}",
                "kind": "planned" if r.rule == PLANNED else "late" if r.misses else "simple",
            }
        )  # fmt: skip
    p = theme.palette
    colour = by_kind(alt.Color, "kind", {"planned": p.target, "simple": p.moderate, "late": p.inefficient})
    scale = alt.Scale(domain=[0, 1.02 * max(r["high"] for r in rows)])
    y = by_name("rule", sort=[str(r["rule"]) for r in rows], gaps=(0.4, 0.2))
    base = alt.Chart(rows_of(rows)).encode(y=y)
    bars = base.mark_bar().encode(x=along("usd", scale), color=colour, **says())
    ranges = base.mark_rule(strokeWidth=2, color=p.ink, aria=False).encode(x=along("low", scale), x2=alt.X2("high:Q"))
    words = base.mark_text(align="left", dx=8).encode(x=along("high", scale), text=alt.Text("words:N"))
    ours = next(r for r in plan.backtest.rules if r.rule == PLANNED)
    title = f"On the past: {usd(ours.mean_usd)} per job, {percent(ours.median_regret_pct)} above knowing the future"
    subtitle = f"Mean over {plan.backtest.starts} starts with its 95 % interval; capacity drawn from the reclaim bands."
    said = "; ".join(str(r["label"]) for r in rows)
    drawn = layered(bars, ranges, words, width=WIDTH, height=alt.Step(ROW_HEIGHT))
    return Drawing(title, subtitle, f"Bars. {said}.", drawn)
