"""Chart: what was paid for each GPU model, in the section `bill` of the audit."""

import altair as alt

from gpuledger.advice.statement import AuditStatement
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.theme import Theme
from gpuledger.units import Unknown


@chart_of("paid_by_model", document="audit", section="bill", order=9)
def draw(audit: AuditStatement, theme: Theme) -> Drawing | None:
    """One bar per model; nothing where no model has a price."""
    rows = [
        {"model": row.name, "usd": float(row.dollars.paid_usd)}
        for row in audit.cost.by_model
        if not isinstance(row.dollars, Unknown)
    ]
    if not rows:
        return None
    most = max(rows, key=lambda row: row["usd"])
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar(color=theme.palette.moderate)
    body = bars.encode(x=alt.X("usd:Q", title="dollars"), y=alt.Y("model:N", title=None)).properties(width=520)
    words = "; ".join(f"{row['model']}: ${row['usd']:,.0f}" for row in rows)
    return Drawing(f"{most['model']} costs the most", "Dollars paid, by GPU model.", f"Bars. {words}.", body)
