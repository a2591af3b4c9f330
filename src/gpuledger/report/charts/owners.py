"""Who pays for what: which owner's dollars did work, and which did not?"""

from __future__ import annotations

import altair as alt

from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.statement import CostRow, Dollars
from gpuledger.ledger.read.owners import By
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import SAYS, Row, along, by_name, clip, empty, layered, rows_of
from gpuledger.report.theme import Theme
from gpuledger.report.written import money, percent
from gpuledger.units import Unknown

MOST = 15
WIDTH, ROW_HEIGHT = 560, 44
ROOM = 1.22


def _priced(audit: AuditStatement) -> list[tuple[CostRow, Dollars]]:
    rows = [(row, row.dollars) for row in audit.cost.by_asked]
    return [(row, d) for row, d in rows if not isinstance(d, Unknown) and d.paid_usd]


def _title(found: list[tuple[CostRow, Dollars]]) -> str:
    row, dollars = max(found, key=lambda pair: pair[1].waste_usd)
    share = percent(dollars.pct(dollars.waste_usd))
    if len(found) == 1:
        return f"{clip(row.name)} paid {money(dollars.paid_usd)}; {share} was not put to use"
    return f"{clip(row.name)} loses most: {money(dollars.waste_usd)}, {share} of what it pays"


def _rows(found: list[tuple[CostRow, Dollars]]) -> list[Row]:
    out: list[Row] = []
    for row, dollars in found:
        left = 0.0
        for place, kind in enumerate(bucket_kinds()):
            amount = dollars.each()[kind.name]
            label = f"{row.name}: {kind.title.lower()} {money(amount)}, {percent(dollars.pct(amount))}"
            out.append(
                {
                    "name": clip(row.name),
                    "bucket": kind.title,
                    "place": place,
                    "low": left,
                    "high": left + float(amount),
                    "label": label,
                }
            )
            left += float(amount)
    return out


@chart_of("owners", document="audit", section="who", order=3)
def draw(audit: AuditStatement, theme: Theme) -> Drawing:
    """Paid dollars of each owner, by namespace if nothing else was asked for, and by bucket."""
    found, by = _priced(audit), (audit.cost.by or By.NAMESPACE).value
    subtitle = f"Dollars paid in the window by {by} and bucket, the most expensive first."
    if not found:
        title = f"What each {by} paid is not known"
        return Drawing(title, subtitle, f"{title}.", empty(theme, f"not known: no {by} has a price"))
    more = f" The {MOST} most expensive of {len(found)}." if len(found) > MOST else ""
    title, shown = _title(found), found[:MOST]
    order = [clip(row.name) for row, _ in shown]
    y = by_name("name", sort=order, labelLimit=190)
    scale = alt.Scale(domain=[0, float(max(d.paid_usd for _, d in shown)) * ROOM], nice=False)
    kinds = bucket_kinds()
    names = [k.title for k in kinds]
    colour = alt.Color(
        "bucket:N",
        scale=alt.Scale(domain=names, range=[theme.colour(k.role) for k in kinds]),
        legend=alt.Legend(orient="top", symbolType="square", columns=len(names)),
    )
    totals = [{"name": clip(row.name), "high": float(d.paid_usd), "words": money(d.paid_usd)} for row, d in shown]
    x = along("low", scale)
    bars = (
        alt.Chart(rows_of(_rows(shown)))
        .mark_bar(stroke=theme.palette.background, strokeWidth=1)
        .encode(y=y, x=x, x2="high:Q", color=colour, **SAYS)
    )
    words = (
        alt.Chart(rows_of(totals))
        .mark_text(align="left", dx=8, fontWeight="bold")
        .encode(y=y, x=along("high", scale), text="words:N")
    )
    listed = "; ".join(
        f"{row.name}: {money(d.paid_usd)}, {percent(d.pct(d.waste_usd))} not put to use" for row, d in shown
    )
    body = layered(bars, words, width=WIDTH, height=alt.Step(ROW_HEIGHT))
    return Drawing(title, subtitle + more, f"Stacked bars by {by}. {listed}.", body)
