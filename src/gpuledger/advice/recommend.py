"""What should be done, and first? One recommendation per rule, the largest saving first; and the first lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from gpuledger.advice.findings import Finding
from gpuledger.advice.statement import AuditSavings, MonthlyEnergy, MonthlyUsd, Recommendation, Target
from gpuledger.advice.totals import NO_PRICE, CaseKey, Combined, Scale
from gpuledger.cost.charges import grouped
from gpuledger.cost.judged import known_productive
from gpuledger.cost.money import usd
from gpuledger.cost.savings import CASES, Spread
from gpuledger.cost.statement import CostStatement, Dollars
from gpuledger.ledger.read.scope import namespace_name
from gpuledger.times import short_duration
from gpuledger.units import Unknown

# A change that saves less than this share of what the largest saves is not the first thing to do, however quick.
WORTHWHILE = Decimal("0.25")
RECORD = "record-pipes"
# From here on, dollars of a window are shown to the cent.
CENTS_FROM = Decimal("0.1")
NO_DOLLARS = Unknown("it claims no dollars of the bill")


def recommend(
    findings: Sequence[Finding], combined: Mapping[CaseKey, Combined], scale: Scale
) -> tuple[Recommendation, ...]:
    """One recommendation per rule, the first thing to do on top; the rest by dollars saved, then by effort."""
    made = [_one(members, combined, scale) for members in grouped(findings, lambda f: f.rule.id).values()]
    made.sort(key=_most_first)
    top = first_to_do(made)
    return tuple(sorted(made, key=lambda r: r is not top))


def _most_first(r: Recommendation) -> tuple[Decimal, Decimal, float, str]:
    """By dollars per month; by GPU-hours, without prices."""
    dollars = Decimal(0) if isinstance(r.month, Unknown) else r.month.middle_usd
    return -dollars, -r.share, r.effort.hours, r.id


def _one(members: Sequence[Finding], combined: Mapping[CaseKey, Combined], scale: Scale) -> Recommendation:
    each = [(f, scale.share(f)) for f in members]
    each.sort(key=lambda one: (-one[1][1], -one[0].alone.middle, -one[0].case.gpus, one[0].case.name))
    ordered = [found for found, _ in each]
    top, rule = ordered[0], ordered[0].rule
    shares = [sum(parts, Fraction(0)) for parts in zip(*(share for _, share in each), strict=True)]
    months = [scale.usd(f) for f in ordered]
    month = _sum(months) if rule.lever else NO_DOLLARS
    whys = [f.case.dollars for f in ordered if isinstance(f.case.dollars, Unknown)]
    unpriced = whys[0] if rule.lever and scale.priced and len(whys) == len(ordered) else None
    words = dict.fromkeys(f.reason.gain_words for f in ordered if f.reason.gain_words)
    return Recommendation(
        id=rule.id,
        title=rule.title,
        lever=rule.lever,
        exclusive=rule.exclusive,
        effort=rule.effort,
        change=top.change,
        why=top.reason.why,
        basis=top.gain.basis,
        source="; ".join((top.gain.source, *words)),
        namespaces=tuple(sorted({namespace_name(f.case.namespace) for f in ordered})),
        gpus=_boards(ordered),
        month=month,
        saving=Spread(*(usd(s) for s in shares)) if unpriced is None else unpriced,
        energy=_energy(ordered, scale),
        targets=tuple(_target(f, m, combined.get(f.case.key)) for f, m in zip(ordered, months, strict=True)),
    )


def _devices(found: Finding) -> tuple[str, ...]:
    """The devices a finding is about."""
    return found.reason.devices or found.case.devices


def _boards(findings: Sequence[Finding]) -> int:
    """How many GPUs: one that several owners share, or that is cut into slices, is one."""
    return len({device.partition("/")[0] for f in findings for device in _devices(f)})


def _sum(months: Sequence[MonthlyUsd | Unknown]) -> MonthlyUsd | Unknown:
    known = [m for m in months if not isinstance(m, Unknown)]
    if not known:
        return next((m for m in months if isinstance(m, Unknown)), NO_PRICE)
    fields = ("low_usd", "middle_usd", "high_usd")
    return MonthlyUsd(*(sum((getattr(m, f) for m in known), Decimal(0)) for f in fields))


def _target(found: Finding, month: MonthlyUsd | Unknown, combined: Combined | None) -> Target:
    case, id_ = found.case, found.rule.id
    counted = bool(combined and combined.chosen(id_))
    words = combined.words(id_) if combined and found.lever else NO_DOLLARS.why
    return Target(
        owner=case.owner,
        namespace=case.namespace,
        workload=case.workload,
        gpu_model=case.gpu_model,
        klass=case.klass,
        gpus=_boards([found]),
        devices=_devices(found),
        why=found.reason.why,
        own=Spread(*(usd(Fraction(getattr(found.alone, c)) * 100) for c in CASES)),
        month=month if found.lever else NO_DOLLARS,
        gain_words=found.reason.gain_words or found.gain.source,
        counted=counted,
        words=words,
    )


def _energy(ordered: Sequence[Finding], scale: Scale) -> MonthlyEnergy | Unknown | None:
    """Energy per month that a rule saves, for the cases whose energy is known."""
    found = [
        (f.reason.energy, f.case.energy_kwh, scale.month(f.case))
        for f in ordered
        if f.reason.energy is not None and not isinstance(f.case.energy_kwh, Unknown)
    ]
    if not found:
        return None
    known = [(saves, kwh * float(month)) for saves, kwh, month in found if not isinstance(month, Unknown)]
    if not known:
        return next(month for _, _, month in found if isinstance(month, Unknown))
    kwh = [sum(float(getattr(saves, c)) * used for saves, used in known) for c in CASES]
    prices = {f.case.usd_per_kwh for f in ordered}
    price = prices.pop() if len(prices) == 1 else None
    cost = Unknown("no price per kWh was given") if price is None else round(usd(Fraction(kwh[1]) * Fraction(price)), 2)
    return MonthlyEnergy(kwh[0], kwh[1], kwh[2], cost)


def headline(
    cost: CostStatement,
    savings: AuditSavings | Unknown,
    recommendations: Sequence[Recommendation],
    sizable_ratio: float = 0.0,
) -> tuple[str, str]:
    """The money; the first thing to do. An unrated share of `sizable_ratio` or more is named with the money."""
    return f"{_not_used(cost)}{_money(cost, savings, sizable_ratio)}", _first_line(recommendations, cost)


_PRICES = {"market": "market prices", "instance": "list prices", "given": "the prices given", "yours": "your own rates"}


def _not_used(cost: CostStatement) -> str:
    """That the inventory priced nothing, and what did instead; empty where it priced something, or none was given."""
    unused = cost.inventory.unused if cost.inventory and cost.inventory.all_unused else ()
    if not unused:
        return ""
    what = f"{unused[0].path} was not used" if len(unused) == 1 else f"{len(unused)} files were not used"
    used = " and ".join(dict.fromkeys(_PRICES.get(price.basis, price.basis) for price in cost.prices))
    return f"{what}, so this is at {used}: " if used else f"{what}: "


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
        head = f"What {gpus} cost is unknown: {why}"
        if isinstance(savings, Unknown):
            return f"{head}."
        return f"{head}. About {savings.combined_pct:.0f} % of the paid GPU-hours could be saved."
    rate, dollars = cost.projection, cost.dollars
    if isinstance(rate.monthly_usd, Unknown):
        spent = f"{window_usd(dollars.paid_usd)} in {short_duration(cost.end_ms - cost.start_ms)}"
        head = f"{spent} for {_priced(cost, gpus)} (${rate.hourly_usd:,.2f} per hour), "
        return f"{head}{_used(dollars, 'it', sizable_ratio)}{_could(savings, cost)}."
    paid = f"${rate.monthly_usd:,.2f} per month for {_priced(cost, gpus)} (${rate.hourly_usd:,.2f} per hour), "
    basis, used = rate.projection_basis, _used(dollars, "what was seen", sizable_ratio)
    head = f"{paid}{_used(dollars, 'it', sizable_ratio)}"
    if basis.sparse:
        # A rate that rests on an assumption is shown with it.
        head = f"{basis.words}; {used}"
    elif basis.left_out:
        head = f"{paid}{used}; {cost.months.note}"
    return f"{head}{_could(savings, cost)}."


def _could(savings: AuditSavings | Unknown, cost: CostStatement) -> str:
    """What could be saved: dollars per month, or those of a window that says nothing of a month; percent of either."""
    if isinstance(savings, Unknown) or isinstance(cost.projection, Unknown) or isinstance(cost.dollars, Unknown):
        return ""
    whole, months = cost.projection.monthly_usd, (savings.combined_month, savings.with_rate_month)
    shares, cheaper = savings.combined, savings.with_rate_pct
    if isinstance(whole, Unknown):
        amount = f"{window_usd(cost.dollars.paid_usd * shares.middle_pct / 100)} of it"
    elif isinstance(months[0], Unknown) or isinstance(months[1], Unknown):
        return ""
    else:
        amount = f"${months[0].middle_usd:,.0f} per month"
        shares, cheaper = _of_month(months[0], whole), _of_month(months[1], whole).middle_pct
    if not shares.high_pct:
        return "; no change found saves GPU time" + f", lower prices would save {cheaper:.0f} %" * (cheaper > 0)
    could = (
        f"; about {amount} ({shares.middle_pct:.0f} %; {shares.low_pct:.0f} to {shares.high_pct:.0f} %) could be saved"
    )
    return could + f", {cheaper:.0f} % with lower prices on top" * (cheaper > shares.middle_pct)


def _of_month(saved: MonthlyUsd, whole: Decimal) -> Spread:
    ends = (saved.low_usd, saved.middle_usd, saved.high_usd)
    return Spread(*(100 * end / whole if whole else Decimal(0) for end in ends))


def window_usd(amount: Decimal) -> str:
    """Dollars of a window: to the cent, or with four places where cents say too little."""
    return f"${amount:,.{2 if not amount or amount >= CENTS_FROM else 4}f}"


def _used(dollars: Dollars, whole: str, sizable_ratio: float) -> str:
    """How much of the bill was put to use, as far as that is known."""
    used, unrated = known_productive(dollars), dollars.pct(dollars.unrated_usd)
    if isinstance(used, Unknown):
        return f"how much of {whole} was put to use is unknown" + (f", {unrated:.0f} % unrated" if unrated else "")
    more = f", {unrated:.0f} % unrated" if unrated and unrated / 100 >= sizable_ratio else ""
    return f"{dollars.pct(used):.0f} % of {whole} put to use{more}"


def _priced(cost: CostStatement, gpus: str) -> str:
    """Which GPUs the dollars are of: all, or as many as have a price."""
    without = sum(row.gpus for row in cost.unpriced)
    if not without:
        brief = len(cost.months.left_out) if cost.months.times else 0  # where none is left, nothing is per month
        return f"{cost.gpus - brief:,} of {gpus}" if brief else gpus
    return f"{max(cost.gpus - without, 0):,} of {gpus}, the price of {without:,} unknown"


def first_to_do(recommendations: Sequence[Recommendation]) -> Recommendation | None:
    """The most saved per hour of work, among the larger savings; a lower price comes after using less."""
    counted = [r for r in recommendations if any(t.counted for t in r.targets)]
    usage = [r for r in counted if r.lever not in {None, "rate"}]
    pool = usage or [r for r in counted if r.lever] or list(recommendations)
    if not pool:
        return None
    least = WORTHWHILE * max(r.share for r in pool)
    large = (r for r in pool if r.share >= least)
    return max(large, key=lambda r: float(r.share) / r.effort.hours)


def _first_line(recommendations: Sequence[Recommendation], cost: CostStatement) -> str:
    top = first_to_do(recommendations)
    if top is None:
        return "Nothing to change first: no rule finds waste it can act on."
    names = list(dict.fromkeys(t.namespace or t.workload or t.owner for t in top.targets))
    where = f"{', '.join(names[:3])}{' and others' * (len(names) > 3)}"
    gpus = f"{top.gpus:,} GPU{'s' * (top.gpus != 1)}"
    paid = cost.paid_usd
    if isinstance(top.month, Unknown) and top.share and not isinstance(paid, Unknown):
        worth = f"about {window_usd(paid * top.share / 100)} in this window ({top.share:.0f} % of the bill)"
    elif isinstance(top.month, Unknown):
        worth = f"about {top.share:.0f} % of the paid GPU-hours" if top.share else top.month.why
    else:
        low, high = f"${top.month.low_usd:,.0f}", f"${top.month.high_usd:,.0f}"
        worth = f"about ${top.month.middle_usd:,.0f} per month ({low} to {high})"
    return f"First: {top.title}, for {where} ({gpus}): {worth}; effort {top.effort.words}."
