"""What do all changes save together, and what would adding them up have claimed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, along, alt, by_name, empty, fixed, halo, layered, rows_of, says
from gpuledger.report.written import percent, round_percent
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.advice.statement import AuditSavings, AuditStatement
    from gpuledger.report.theme import Theme

WIDTH, ROW_HEIGHT = 520, 46
ROOM = 1.3


def _rows(s: AuditSavings, theme: Theme) -> list[Row]:
    p = theme.palette
    together, priced = s.combined, s.with_rate
    given = (
        ("Naive sum", s.naive_pct, None, None, p.idle),
        ("Most there is to act on", s.cap_pct, None, None, p.rule),
        ("Saved together", s.combined_pct, together.low_pct, together.high_pct, p.efficient),
        ("With lower prices on top", s.with_rate_pct, priced.low_pct, priced.high_pct, p.moderate),
    )
    rows: list[Row] = []
    for name, value, low, high, colour in given:
        span = "" if low is None or high is None else f"  ({float(low):.0f} to {round_percent(float(high))})"
        words = f"{percent(float(value))}{span}"
        rows.append(
            {
                "name": name,
                "value": float(value),
                "low": None if low is None else float(low),
                "high": None if high is None else float(high),
                "edge": float(max(value, high or value)),
                "colour": colour,
                "words": words,
                "label": f"{name}: {words} of {s.of}",
            }
        )
    return rows


@chart_of("savings", document="audit", section="savings", order=2)
def draw(audit: AuditStatement, theme: Theme) -> Drawing:
    """The naive sum next to what is really there, in percent of the bill."""
    s = audit.savings
    subtitle = "Percent of the bill. The line through a bar runs from the cautious to the bold case."
    if isinstance(s, Unknown):
        title = f"What could be saved is {s}"
        return Drawing(title, subtitle, f"{title}.", empty(theme, str(s)))
    naive, honest = round_percent(float(s.naive_pct)), round_percent(float(s.combined_pct))
    title = f"Together the changes save {honest} of {s.of}"
    title += f", not {naive}" if naive != honest else ""
    rows = _rows(s, theme)
    top = max(100.0, *(float(r["edge"]) for r in rows)) * ROOM
    scale = alt.Scale(domain=[0, top], nice=False)
    y = by_name("name", gaps=(0.42, 0.2), labelLimit=200, labelFontSize=theme.text_px + 1)
    base = alt.Chart(rows_of(rows)).encode(y=y)
    whole = alt.Chart(rows_of([{"at": 100.0, "words": "the whole bill"}]))
    layers = (
        base.mark_bar().encode(x=along("value", scale), color=alt.Color("colour:N", scale=None, legend=None), **says()),
        base.mark_rule(color=theme.palette.bottlenecked, strokeWidth=3, aria=False).encode(
            x=along("low", scale), x2=alt.X2("high:Q")
        ),
        whole.mark_rule(color=theme.palette.target, strokeDash=[4, 4], aria=False).encode(x=along("at", scale)),
        whole.mark_text(color=theme.palette.target, align="center").encode(
            x=along("at", scale), y=fixed(alt.YValue, -8), text=alt.Text("words:N")
        ),
        halo(
            theme,
            base.encode(x=along("edge", scale), text=alt.Text("words:N")),
            align="left",
            dx=8,
            fontWeight="bold",
        ),
    )
    listed = "; ".join(str(r["label"]) for r in rows)
    return Drawing(title, subtitle, f"Bars. {listed}.", layered(*layers, width=WIDTH, height=alt.Step(ROW_HEIGHT)))
