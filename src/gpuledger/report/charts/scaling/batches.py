"""Where does a larger batch stop being worth it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, fixed, layered, rows_of
from gpuledger.report.written import capital
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme
    from gpuledger.scaling.statement import ScalingStatement

WIDTH, HEIGHT = 640, 280


@chart_of("batches", document="scaling", section="batches", order=4)
def draw(statement: ScalingStatement, theme: Theme) -> Drawing | None:
    """Throughput over batch size, the knee marked."""
    batches = statement.facts.batches
    if len(batches.points) < 2:
        return None
    in_tokens = all(not isinstance(p.tokens_per_s, Unknown) for p in batches.points)
    unit = "tokens per second" if in_tokens else "answers per second"
    rows: list[Row] = []
    for p in batches.points:
        rate = p.tokens_per_s if in_tokens and not isinstance(p.tokens_per_s, Unknown) else p.throughput_per_s
        rows.append({"batch": p.batch, "rate": rate, "label": f"batch {p.batch}: {rate:,.4g} {unit}"})
    scale = alt.Scale(type="log", base=2, nice=False, padding=20)
    x = alt.X(
        "batch:Q",
        title="batch",
        scale=scale,
        axis=alt.Axis(values=[p.batch for p in batches.points], grid=False, format="d"),
    )
    base = alt.Chart(rows_of(rows)).encode(x=x, y=alt.Y("rate:Q", title=unit, scale=alt.Scale(zero=True)))
    layers = [
        base.mark_line(color=theme.palette.efficient, strokeWidth=2.5, aria=False),
        base.mark_point(color=theme.palette.efficient, size=80, filled=True, opacity=1).encode(
            description=alt.Description("label:N")
        ),
    ]
    title = capital(batches.note)
    if not isinstance(batches.knee, Unknown):
        mark = alt.Chart(rows_of([{"batch": batches.knee, "words": f"knee: {batches.knee}"}]))
        layers.append(mark.mark_rule(color=theme.palette.target, strokeDash=[4, 4], aria=False).encode(x=x))
        layers.append(
            mark.mark_text(color=theme.palette.target, align="left", dx=6, baseline="top").encode(
                x=x, y=fixed(alt.YValue, 2), text=alt.Text("words:N")
            )
        )
    alt_text = "; ".join(str(r["label"]) for r in rows)
    subtitle = f"{unit.capitalize()} by batch size. Beyond the knee, doubling the batch gives less than 1.41 times."
    return Drawing(title, subtitle, f"A line. {alt_text}.", layered(*layers, width=WIDTH, height=HEIGHT))
