"""Who pays for what: which owner's dollars did work, and which did not?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.cost.judged import known_waste
from gpuledger.ledger.read.owners import By
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, by_name, clip, empty, says, stacked
from gpuledger.report.written import money, percent
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.advice.statement import AuditStatement
    from gpuledger.cost.statement import CostRow, Dollars
    from gpuledger.report.theme import Theme

MOST = 15
WIDTH, ROW_HEIGHT = 560, 44
ROOM = 1.22


def _priced(audit: AuditStatement) -> list[tuple[CostRow, Dollars]]:
    rows = [(row, row.dollars) for row in audit.cost.by_asked]
    return [(row, d) for row, d in rows if not isinstance(d, Unknown) and d.paid_usd]


def _title(found: list[tuple[CostRow, Dollars]]) -> str:
    row, dollars = max(found, key=lambda pair: pair[1].waste_usd)
    if isinstance(known_waste(dollars), Unknown):
        return f"{clip(row.name)} paid {money(dollars.paid_usd)}; how much was put to use is unknown"
    share = percent(dollars.pct(dollars.waste_usd))
    if len(found) == 1:
        return f"{clip(row.name)} paid {money(dollars.paid_usd)}; {share} was not put to use"
    return f"{clip(row.name)} loses most: {money(dollars.waste_usd)}, {share} of what it pays"


def _rows(found: list[tuple[CostRow, Dollars]]) -> list[Row]:
    out: list[Row] = []
    for row, dollars in found:
        high = 0.0
        for kind in bucket_kinds():
            found_usd, amount = row.buckets[kind.name], dollars.each()[kind.name]
            low, high = high, high + float(amount)
            label = f"{row.name}: {kind.title.lower()} {money(amount)}, {percent(dollars.pct(amount))}"
            if isinstance(found_usd, Unknown):
                label = f"{row.name}: {kind.title.lower()} unknown"
            out.append({"name": clip(row.name), "bucket": kind.title, "low": low, "high": high, "label": label})
    return out


def _lost(dollars: Dollars) -> str:
    if isinstance(known_waste(dollars), Unknown):
        return "how much was put to use is unknown"
    return f"{percent(dollars.pct(dollars.waste_usd))} not put to use"


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
    kinds = {kind.title: theme.colour(kind.role) for kind in bucket_kinds()}
    totals: list[Row] = [
        {"name": clip(row.name), "high": float(d.paid_usd), "words": money(d.paid_usd)} for row, d in shown
    ]
    body = stacked(
        theme, _rows(shown), totals, y=by_name("name", sort=[r["name"] for r in totals], labelLimit=190),
        scale=alt.Scale(domain=[0, max(r["high"] for r in totals) * ROOM], nice=False),
        color=by_kind(alt.Color, "bucket", kinds, alt.Legend(orient="top", symbolType="square", columns=len(kinds))),
        size={"width": WIDTH, "height": alt.Step(ROW_HEIGHT)}, **says(),
    )  # fmt: skip
    listed = "; ".join(f"{row.name}: {money(d.paid_usd)}, {_lost(d)}" for row, d in shown)
    return Drawing(title, subtitle + more, f"Stacked bars by {by}. {listed}.", body)
