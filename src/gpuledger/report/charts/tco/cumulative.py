"""How does the cash of each path add up month by month, and where do owning and renting cross?"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gpuledger.plan.tco.statement import Path, TcoPlan
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, fixed, halo, layered, rows_of, spread
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT, LABEL_PX, ROOM_PX = 620, 320, 16, 170


@chart_of("tco_cumulative", document="tco", section="summary")
def draw(plan: TcoPlan, theme: Theme) -> Drawing | None:
    """A line per path; None where there is nothing to compare."""
    known = [p for p in plan.paths if isinstance(p.month_usd, Decimal)]
    if len(known) < 2:
        return None
    end = float(plan.months)
    rows = [row for p in known for row in _line(p, end)]
    tall = 1.05 * max(r["usd"] for r in rows)
    x = alt.X("month:Q", title="months of 720 h", scale=alt.Scale(domain=[0, end], nice=False),
              axis=alt.Axis(tickCount=8, grid=False))  # fmt: skip
    y = alt.Y("usd:Q", title="cash spent so far", scale=alt.Scale(domain=[0, tall]), axis=alt.Axis(format="$,.0f"))
    p = theme.palette
    color = alt.condition("datum.name == 'own'", alt.value(p.target), alt.value(p.moderate))
    lines = (
        alt.Chart(rows_of(rows))
        .mark_line(strokeWidth=2.5)
        .encode(x=x, y=y, detail=alt.Detail("name:N"), order=alt.Order("step:Q"), color=color)
    )
    crossings = [_crossing(plan, one) for one in known]
    marks = alt.Chart(rows_of([c for c in crossings if c])).encode(x=x, y=y)
    points = marks.mark_point(size=90, filled=True, color=p.ink, opacity=1).encode(
        description=alt.Description("label:N")
    )
    layers = [lines, points, *_names(theme, known, end, tall)]
    rent = plan.path("on-demand")
    month = rent.break_even_month if rent else None
    title = (
        f"Owning breaks even with on demand in month {month:.1f}" if isinstance(month, Decimal) and month <= plan.months
        else "Before resale, owning does not break even with on demand"
    )  # fmt: skip
    words = "; ".join(f"{n.name} {_at_end(n, end):,.0f} dollars" for n in known)
    again = " and again after its life" if any(one.paid_again for one in known) else ""
    subtitle = (
        f"Cash by month: hardware at the start{again}, resale at the end is not counted. "
        "Dots: where owning is paid back."
    )
    return Drawing(title, subtitle, f"Lines. At the end: {words}.", layered(*layers, width=WIDTH, height=HEIGHT))


def _cash(path: Path, month: float, paid: int) -> float:
    monthly = path.month_usd
    return float(path.upfront_usd) * paid + (0.0 if isinstance(monthly, Unknown) else float(monthly) * month)


def _at_end(path: Path, end: float) -> float:
    return _cash(path, end, 1 + len(path.paid_again))


def _line(path: Path, end: float) -> list[Row]:
    """The ends of the line, with a step in every month in which the hardware is bought again."""
    points = [(0.0, 1)]
    for paid, month in enumerate(map(float, path.paid_again), 1):
        points += [(month, paid), (month, paid + 1)]
    points.append((end, 1 + len(path.paid_again)))
    return [
        {"name": path.name, "month": month, "usd": _cash(path, month, paid), "step": at}
        for at, (month, paid) in enumerate(points)
    ]


def _crossing(plan: TcoPlan, path: Path) -> Row | None:
    month = path.break_even_month
    if not isinstance(month, Decimal) or isinstance(path.month_usd, Unknown) or month > plan.months:
        return None
    return {"month": float(month), "usd": float(month * path.month_usd), "label": f"{path.name}: month {month:.1f}"}


def _names(theme: Theme, paths: list[Path], end: float, tall: float) -> list[alt.LayerChart]:
    """The name and total of each path at the right end of its line, apart from each other."""
    order = sorted(paths, key=lambda p: -_at_end(p, end))
    wanted = [HEIGHT * (1 - _at_end(p, end) / tall) for p in order]
    rows = [
        {"at": at, "name": f"{p.name} ${_at_end(p, end):,.0f}"}
        for p, at in zip(order, spread(wanted, LABEL_PX, LABEL_PX / 2, HEIGHT - LABEL_PX / 2), strict=True)
    ]
    chart = alt.Chart(rows_of(rows)).encode(
        x=fixed(alt.XValue, WIDTH), y=alt.Y("at:Q", scale=None), text=alt.Text("name:N")
    )
    return [halo(theme, chart, align="left", dx=8, baseline="middle", color=theme.palette.ink, limit=ROOM_PX)]
