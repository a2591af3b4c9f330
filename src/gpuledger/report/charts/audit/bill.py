"""Where did the money go? From all that was paid down to what did work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.cost.judged import NO_PRICE, at_least, bucket_h, known_waste
from gpuledger.cost.money import rounded
from gpuledger.report.adding import places_for, shares_adding_up
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, along, alt, by_name, empty, layered, rows_of, says
from gpuledger.report.tables import UNKNOWN
from gpuledger.report.written import amount, money, percent, tenth, usd
from gpuledger.units import MS_PER_HOUR, Unknown

if TYPE_CHECKING:
    from gpuledger.advice.statement import AuditStatement
    from gpuledger.cost.statement import Bucket
    from gpuledger.report.theme import Theme

WIDTH, ROW_HEIGHT = 560, 38
# The widest bar leaves room for its words.
ROOM = 1.34


def _amounts(audit: AuditStatement) -> dict[Bucket, tuple[float, str]]:
    """Dollars by bucket, or GPU-hours without a price: how long the bar is, and its words."""
    dollars = audit.cost.dollars
    if isinstance(dollars, Unknown):
        hours = bucket_h(audit.cost.times)
        return {b: (0.0, UNKNOWN) if isinstance(h, Unknown) else (h, f"{tenth(h)} h") for b, h in hours.items()}
    places = places_for(dollars.paid_usd)
    # Rounded as in the table, so that the words add up too.
    cells = rounded(dollars.each(), places)
    shares = shares_adding_up({b: dollars.pct(v) for b, v in dollars.each().items()})
    out = {b: (float(v), f"{usd(cells[b], places)}  ({percent(shares[b])})") for b, v in dollars.each().items()}
    missing = {b: v for b, v in audit.cost.buckets.items() if isinstance(v, Unknown)}
    return out | {b: (0.0, "no known price" if why is NO_PRICE else UNKNOWN) for b, why in missing.items()}


def _steps(amounts: dict[Bucket, tuple[float, str]], paid: str, theme: Theme) -> list[Row]:
    """One bar a bucket, each beginning where the one above it ends; what did work is what remains."""
    left = whole = sum(amount for amount, _ in amounts.values())
    rows: list[Row] = [
        {"name": "Paid", "low": 0.0, "high": whole, "colour": theme.palette.utilization, "words": paid}
        | {"label": f"Paid: {paid}"}
    ]
    for kind in reversed(bucket_kinds()):
        amount, words = amounts[kind.name]
        low = 0.0 if kind.name == "productive" else left - amount
        bar: Row = {"name": kind.title, "low": low, "high": left, "colour": theme.colour(kind.role), "words": words}
        rows.append(bar | {"label": f"{kind.title}: {words}. {kind.meaning}"})
        left = low
    return rows


def _title(audit: AuditStatement) -> tuple[str, str]:
    """The finding, and the whole in words."""
    dollars, times = audit.cost.dollars, audit.cost.times
    if isinstance(dollars, Unknown):
        paid, lost = f"{tenth(times.paid_h)} h", known_waste(times)
        if isinstance(lost, Unknown):
            return f"How much of {amount(tenth(times.paid_h), 'paid GPU-hour')} was put to use is unknown", paid
        return (
            f"{tenth(lost / MS_PER_HOUR)} of {amount(tenth(times.paid_h), 'paid GPU-hour')} were not put to use",
            paid,
        )
    paid, known = money(dollars.paid_usd), known_waste(dollars)
    if isinstance(known, Unknown):
        return f"How much of {paid} was put to use is unknown", paid
    least = "At least " if at_least(dollars) else ""
    return f"{least}{money(known)} of {paid} was not put to use", paid


@chart_of("bill", document="audit", section="bill", order=1)
def draw(audit: AuditStatement, theme: Theme) -> Drawing:
    """The bill as steps down from paid to productive."""
    amounts = _amounts(audit)
    whole = sum(amount for amount, _ in amounts.values())
    subtitle = "Each bar takes its part off what is left above it; the last is the part that did work."
    if not whole:
        return Drawing("Nothing was paid", subtitle, "Nothing was paid.", empty(theme, "not known: nothing was paid"))
    title, paid = _title(audit)
    rows = _steps(amounts, paid, theme)
    y = by_name(
        "name", sort=[str(r["name"]) for r in rows], gaps=(0.32, 0.12), labelLimit=180, labelFontSize=theme.text_px + 1
    )
    scale = alt.Scale(domain=[0, whole * ROOM], nice=False)
    base = alt.Chart(rows_of(rows)).encode(y=y)
    layers = (
        base.mark_bar().encode(
            x=along("low", scale), x2=alt.X2("high:Q"), color=alt.Color("colour:N", scale=None, legend=None), **says()
        ),
        base.mark_text(align="left", dx=8).encode(x=along("high", scale), text=alt.Text("words:N")),
    )
    listed = "; ".join(f"{r['name']}: {r['words']}" for r in rows)
    body = layered(*layers, width=WIDTH, height=alt.Step(ROW_HEIGHT))
    return Drawing(title, subtitle, f"Steps from what was paid to what did work. {listed}.", body)
