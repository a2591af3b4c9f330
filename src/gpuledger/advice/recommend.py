"""What should be done first? Findings of one rule become one recommendation, the largest saving first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from gpuledger.advice.findings import Finding
from gpuledger.advice.statement import MonthlyEnergy, MonthlyUsd, Recommendation, Target
from gpuledger.advice.totals import CENT_PLACES, NO_PRICE, Combined
from gpuledger.cost.money import usd
from gpuledger.cost.savings import CASES, Spread
from gpuledger.ledger.read.scope import namespace_name
from gpuledger.units import Unknown


class Scale:
    """How a window's figures become a month's, and what percentages are of."""

    def __init__(self, paid: Decimal | Unknown, paid_ms: int, month: Fraction) -> None:
        self.priced = not isinstance(paid, Unknown)
        self.whole = Fraction(paid) if not isinstance(paid, Unknown) else Fraction(paid_ms)
        self.month = month

    def usd(self, found: Finding) -> MonthlyUsd | Unknown:
        """What a finding saves a month, by itself."""
        dollars = found.case.dollars
        if isinstance(dollars, Unknown):
            return dollars
        paid = Fraction(dollars.paid_usd) * self.month
        return MonthlyUsd(*(round(usd(Fraction(getattr(found.alone, c)) * paid), CENT_PLACES) for c in CASES))

    def share(self, found: Finding) -> list[Fraction]:
        """What a finding saves in percent of all that is paid; without a price nothing of a priced fleet."""
        if self.priced and isinstance(found.case.dollars, Unknown):
            return [Fraction(0)] * len(CASES)
        paid = Fraction(sum(found.case.weights.values(), Decimal(0)))
        parts = (Fraction(getattr(found.alone, c)) * paid * 100 for c in CASES)
        return [part / self.whole if self.whole else Fraction(0) for part in parts]


def recommend(
    findings: Sequence[Finding], combined: Mapping[str, Combined], scale: Scale
) -> tuple[Recommendation, ...]:
    """One recommendation a rule, by dollars saved a month (by GPU-hours, without prices), then by effort."""
    by_rule: dict[str, list[Finding]] = {}
    for found in findings:
        by_rule.setdefault(found.rule.id, []).append(found)
    made = [_one(members, combined, scale) for members in by_rule.values()]
    return tuple(sorted(made, key=_first))


def _first(r: Recommendation) -> tuple[Decimal, Decimal, float, str]:
    dollars = Decimal(0) if isinstance(r.month, Unknown) else r.month.middle_usd
    return -dollars, -r.saving.middle_pct, r.effort.hours, r.id


def _one(members: Sequence[Finding], combined: Mapping[str, Combined], scale: Scale) -> Recommendation:
    ordered = sorted(members, key=lambda f: (-scale.share(f)[1], -f.alone.middle, -f.case.gpus, f.case.name))
    top, rule = ordered[0], ordered[0].rule
    shares = [sum(parts, Fraction(0)) for parts in zip(*(scale.share(f) for f in ordered), strict=True)]
    months = [scale.usd(f) for f in ordered]
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
        month=_sum(months) if rule.lever else Unknown("it claims no dollars of the bill"),
        saving=Spread(*(usd(s) for s in shares)),
        energy=_energy(ordered, scale),
        targets=tuple(_target(f, m, combined.get(f.case.name)) for f, m in zip(ordered, months, strict=True)),
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
    words = combined.words(id_) if combined and found.lever else "it claims no dollars of the bill"
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
        month=month if found.lever else Unknown("it claims no dollars of the bill"),
        gain_words=found.reason.gain_words or found.gain.source,
        counted=counted,
        words=words,
    )


def _energy(ordered: Sequence[Finding], scale: Scale) -> MonthlyEnergy | None:
    """Energy a month that a rule saves, for the cases whose energy is known."""
    kwh = [0.0, 0.0, 0.0]
    prices = {f.case.usd_per_kwh for f in ordered}
    known = [f for f in ordered if f.reason.energy is not None and not isinstance(f.case.energy_kwh, Unknown)]
    for found in known:
        energy, used = found.reason.energy, found.case.energy_kwh
        if energy is None or isinstance(used, Unknown):
            continue
        for i, c in enumerate(CASES):
            kwh[i] += float(getattr(energy, c)) * used * float(scale.month)
    if not known:
        return None
    price = prices.pop() if len(prices) == 1 else None
    cost = Unknown("no price per kWh was given") if price is None else round(usd(Fraction(kwh[1]) * Fraction(price)), 2)
    return MonthlyEnergy(kwh[0], kwh[1], kwh[2], cost)
