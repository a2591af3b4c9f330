"""How do the options of a migration plan compare: dollars per month against speed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.guide.words import dollars
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.documents.migrate_rows import mark, shown
from gpuledger.report.marks import Row, alt, by_kind, layered, named_points, rows_of, spread
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.plan.guide.statement import MigrationPlan, Option
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT = 760, 320
LABEL_PX, ROOM_PX = 15, 220


@chart_of("options", document="migrate", section="options")
def draw(plan: MigrationPlan, theme: Theme) -> Drawing | None:
    """A point per option worth looking at; None where there is nothing to compare."""
    rows = [row for o in shown(plan) if (row := _row(plan, o)) is not None]
    if len(rows) < 2:
        return None
    unit, wide, tall = str(rows[0]["unit"]), 1.02 * max(r["usd"] for r in rows), 1.05 * max(r["high"] for r in rows)
    axis = alt.Axis(format="$,.0f", tickCount=6)
    x = alt.X("usd:Q", title="dollars per month", scale=alt.Scale(domain=[0, wide]), axis=axis)
    y = alt.Y("rate:Q", title=f"{unit}s per second", scale=alt.Scale(domain=[0, tall]))
    p = theme.palette
    colour = by_kind(alt.Color, "kind", {"chosen": p.target, "now": p.utilization, "other": p.moderate})
    base = alt.Chart(rows_of(rows)).encode(x=x)
    ranges = base.mark_rule(strokeWidth=2, opacity=0.5, aria=False).encode(
        y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour
    )
    points = base.mark_point(size=90, filled=True, opacity=1).encode(
        y=y, color=colour, description=alt.Description("words:N")
    )
    named = _names(theme, rows, wide, tall)
    chosen = plan.chosen
    title = f"{chosen.candidate.name} among the options" if chosen else "The options"
    subtitle = "Dollars per month against speed with its range; upwards is faster, to the left is cheaper."
    words = "; ".join(str(r["words"]) for r in rows)
    return Drawing(title, subtitle, f"Points. {words}.", layered(ranges, *named, points, width=WIDTH, height=HEIGHT))


def heights(shares: list[float]) -> list[float]:
    """Where names stand, in pixels from the top, for points at these shares of the axis: near them, and apart."""
    return spread([HEIGHT * (1 - share) for share in shares], LABEL_PX, LABEL_PX / 2, HEIGHT - LABEL_PX / 2)


def _names(theme: Theme, rows: list[Row], wide: float, tall: float) -> list[alt.LayerChart]:
    """A name next to each point, apart from each other; to the left of it without room on the right."""
    places = heights([r["rate"] / tall for r in rows])
    placed = [
        r | {"name": r["label"], "at_x": WIDTH * r["usd"] / wide, "at_y": at}
        for r, at in zip(rows, places, strict=True)
    ]
    return named_points(theme, placed, WIDTH, ROOM_PX)


def _row(plan: MigrationPlan, option: Option) -> Row | None:
    rate = option.placement.rate
    if isinstance(rate, Unknown):
        return None
    marked, c = mark(plan, option), option.candidate
    kind = "chosen" if option is plan.chosen else "now" if option.current else "other"
    rate_words = f"{rate.middle:,.0f} {option.placement.unit}s per second"
    short = f"{c.gpus} x {c.gpu_name}{', spot' if c.purchase == 'spot' else ''}"
    return {
        "usd": float(option.monthly_usd), "rate": rate.middle, "low": rate.low, "high": rate.high, "kind": kind,
        "unit": option.placement.unit, "label": f"{marked}: {short}" if marked else short,
        "words": f"{c.name}: {dollars(option.monthly_usd)} per month, {rate_words}",
    }  # fmt: skip
