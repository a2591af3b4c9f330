"""Which inputs decide between owning and renting, and can one of them alone turn the answer?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.tco.words import number
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, by_name, layered, rows_of, says
from gpuledger.report.written import capital
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.plan.tco.statement import Swing, TcoPlan
    from gpuledger.report.theme import Theme

WIDTH, ROW_HEIGHT, MOST = 560, 30, 12


@chart_of("tco_tornado", document="tco", section="sensitivity")
def draw(plan: TcoPlan, theme: Theme) -> Drawing | None:
    """A bar per input, the widest at the top; None where nothing moves."""
    own, rent = plan.path("own"), plan.path("on-demand")
    if not plan.swings or own is None or rent is None or isinstance(own.usd, Unknown) or isinstance(rent.usd, Unknown):
        return None
    base = float(own.usd.middle_usd - rent.usd.middle_usd)
    shown = plan.swings[:MOST]
    rows = [row for s in shown for row in _bars(s, base)]
    order = [_name(s) for s in shown]
    p = theme.palette
    color = by_kind(alt.Color, "end", {"low": p.moderate, "high": p.utilization},
                    alt.Legend(title="input at its", orient="top"))  # fmt: skip
    x = alt.X("from:Q", title="owning less on demand, dollars (below zero, owning costs less)",
              axis=alt.Axis(format="$,.0f", tickCount=6))  # fmt: skip
    bars = alt.Chart(rows_of(rows)).mark_bar(height=16).encode(
        y=by_name("name", sort=order, labelLimit=330), x=x, x2=alt.X2("to:Q"), color=color, **says()
    )  # fmt: skip
    rules = [
        alt.Chart(rows_of([{"at": at}])).mark_rule(strokeDash=dash, color=p.ink).encode(x=alt.X("at:Q"))
        for at, dash in ((0.0, [1, 0]), (base, [4, 3]))
    ]
    first = capital(shown[0].words)
    title = f"{first} matters most; {len(plan.turning)} of {len(plan.swings)} inputs alone can turn the answer"
    subtitle = (
        "Each input from its low to its high end, the others as they are. Solid line: same cost. Dashed: as planned."
    )
    words = "; ".join(str(r["label"]) for r in rows[:6])
    return Drawing(title, subtitle, f"Bars. {words}.", layered(bars, *rules, width=WIDTH, height=alt.Step(ROW_HEIGHT)))


def _name(swing: Swing) -> str:
    return f"{capital(swing.words)} ({number(round(swing.low, 3))} to {number(round(swing.high, 3))})"


def _bars(swing: Swing, base: float) -> list[Row]:
    ends = (("low", swing.low, swing.low_usd), ("high", swing.high, swing.high_usd))
    return [
        {
            "name": _name(swing), "end": end, "from": base, "to": float(value),
            "label": f"{swing.words} at {number(round(at, 3))}: {value:,.0f} dollars",
        }
        for end, at, value in ends
    ]  # fmt: skip
