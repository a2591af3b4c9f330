"""What are the first lines: the money, the first thing to do, and what cannot be rated?"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gpuledger.advice.statement import AuditSavings, Recommendation
from gpuledger.cost.statement import CostStatement
from gpuledger.units import Unknown

# A change that saves less than this share of what the largest saves is not the first thing to do, however quick.
WORTHWHILE = Decimal("0.25")
RECORD = "record-pipes"


def headline(
    cost: CostStatement,
    savings: AuditSavings | Unknown,
    recommendations: Sequence[Recommendation],
    sizable_ratio: float = 0.0,
) -> tuple[str, str]:
    """The money; the first thing to do. `sizable_ratio`: from where on the unrated share is named with the money."""
    return _money(cost, savings, sizable_ratio), _first(recommendations)


def unrated_note(cost: CostStatement, recommendations: Sequence[Recommendation], sizable_ratio: float) -> str:
    """One sentence where a sizable part of the bill cannot be rated, with the next step; else empty."""
    ratio = _unrated_ratio(cost)
    if not ratio or ratio < sizable_ratio:
        return ""
    if isinstance(cost.dollars, Unknown):
        what = f"{100 * ratio:.0f} % of the paid GPU-hours is unrated"
    else:
        what = f"{100 * ratio:.0f} % of the bill (${cost.dollars.unrated_usd:,.2f}) is unrated"
    step = next((r for r in recommendations if r.id == RECORD), None)
    todo = "" if step is None else f" Next step: {step.title[:1].lower()}{step.title[1:]}; {step.why}."
    return f"{what}: busy, but the evidence does not show whether it did work.{todo}"


def _unrated_ratio(cost: CostStatement) -> float:
    if isinstance(cost.dollars, Unknown):
        return cost.times.unrated_ms / cost.times.paid_ms if cost.times.paid_ms else 0.0
    return cost.dollars.pct(cost.dollars.unrated_usd) / 100


def _money(cost: CostStatement, savings: AuditSavings | Unknown, sizable_ratio: float) -> str:
    gpus = f"{cost.gpus:,} GPU{'s' * (cost.gpus != 1)}"
    if isinstance(cost.dollars, Unknown) or isinstance(cost.projection, Unknown):
        why = cost.dollars.why if isinstance(cost.dollars, Unknown) else str(cost.projection)
        head = f"What {gpus} cost is not known: {why}"
        if isinstance(savings, Unknown):
            return f"{head}."
        return f"{head}. About {savings.combined_pct:.0f} % of the paid GPU-hours could be saved."
    rate, dollars = cost.projection, cost.dollars
    used = 100 * dollars.productive_usd / dollars.paid_usd if dollars.paid_usd else 0
    ratio = _unrated_ratio(cost)
    unrated = f", {100 * ratio:.0f} % unrated" if ratio and ratio >= sizable_ratio else ""
    head = (
        f"${rate.monthly_usd:,.2f} a month for {_priced(cost, gpus)} (${rate.hourly_usd:,.2f} an hour), "
        f"{used:.0f} % of it put to use{unrated}"
    )
    if rate.projection_basis.sparse:
        # A rate that rests on an assumption must not stand without it.
        head = f"{rate.projection_basis.words}; {used:.0f} % of what was seen put to use{unrated}"
    if isinstance(savings, Unknown) or isinstance(savings.combined_month, Unknown):
        return f"{head}."
    month, spread = savings.combined_month, savings.combined
    could = (
        f"about ${month.middle_usd:,.0f} a month ({savings.combined_pct:.0f} %; {spread.low_pct:.0f} to "
        f"{spread.high_pct:.0f} %) could be saved"
    )
    if savings.with_rate_pct > savings.combined_pct:
        could += f", {savings.with_rate_pct:.0f} % with lower prices on top"
    return f"{head}; {could}."


def _priced(cost: CostStatement, gpus: str) -> str:
    """Whose dollars these are: those of all GPUs, or of as many as have a price."""
    without = sum(row.gpus for row in cost.unpriced)
    if not without:
        return gpus
    return f"{max(cost.gpus - without, 0):,} of {gpus}, the price of {without:,} not known"


def first_to_do(recommendations: Sequence[Recommendation]) -> Recommendation | None:
    """The most saved for an hour of work, among the larger savings; a lower price comes after using less."""
    counted = [r for r in recommendations if any(t.counted for t in r.targets)]
    usage = [r for r in counted if r.lever not in {None, "rate"}]
    pool = usage or [r for r in counted if r.lever] or list(recommendations)
    if not pool:
        return None
    most = max(_worth(r) for r in pool)
    return max((r for r in pool if _worth(r) >= WORTHWHILE * most), key=lambda r: float(_worth(r)) / r.effort.hours)


def first_on_top(recommendations: Sequence[Recommendation]) -> tuple[Recommendation, ...]:
    """The first thing to do, then the rest in the order given."""
    top = first_to_do(recommendations)
    return tuple(sorted(recommendations, key=lambda r: r is not top))


def _worth(r: Recommendation) -> Decimal:
    return r.saving.middle_pct


def _first(recommendations: Sequence[Recommendation]) -> str:
    top = first_to_do(recommendations)
    if top is None:
        return "Nothing to change first: no rule finds waste it can act on."
    names = list(dict.fromkeys(t.namespace or t.workload or t.owner for t in top.targets))
    where = f"{', '.join(names[:3])}{' and others' * (len(names) > 3)}"
    gpus = f"{top.gpus:,} GPU{'s' * (top.gpus != 1)}"
    if isinstance(top.month, Unknown):
        worth = f"about {top.saving.middle_pct:.0f} % of the paid GPU-hours" if top.saving.middle_pct else top.month.why
    else:
        low, high = f"${top.month.low_usd:,.0f}", f"${top.month.high_usd:,.0f}"
        worth = f"about ${top.month.middle_usd:,.0f} a month ({low} to {high})"
    return f"First: {top.title}, for {where} ({gpus}): {worth}; effort {top.effort.words}."
