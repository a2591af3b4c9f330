"""Which bottleneck is worth most?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, along, alt, by_name, layered, rows_of
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme
    from gpuledger.scaling.statement import ScalingStatement

WIDTH, ROW_HEIGHT = 520, 40


@chart_of("gains", document="scaling", section="bottlenecks", order=5)
def draw(statement: ScalingStatement, theme: Theme) -> Drawing | None:
    """One bar per bottleneck, longest first."""
    known = [(b.name, b.gain_pct) for b in statement.bottlenecks if not isinstance(b.gain_pct, Unknown)]
    if not known:
        return None
    rows: list[Row] = [
        {"name": name, "gain": gain, "words": f"+{gain:.0f} %", "label": f"{name}: +{gain:.0f} % throughput"}
        for name, gain in known
    ]
    scale = alt.Scale(domain=[0, max(g for _, g in known) * 1.2], nice=False)
    y = by_name("name", labelLimit=220)
    base = alt.Chart(rows_of(rows)).encode(y=y, x=along("gain", scale))
    bars = base.mark_bar(color=theme.palette.bottlenecked).encode(description=alt.Description("label:N"))
    words = base.mark_text(align="left", dx=8, fontWeight="bold").encode(text=alt.Text("words:N"))
    title = f"Largest gain: {known[0][0].lower()}"
    alt_text = "; ".join(str(r["label"]) for r in rows)
    body = layered(bars, words, width=WIDTH, height=alt.Step(ROW_HEIGHT))
    subtitle = "Throughput that fixing each would add, by itself; they overlap."
    return Drawing(title, subtitle, f"Bars. {alt_text}.", body)
