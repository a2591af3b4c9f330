"""How good is each option, measured on seven things and weighed by what the reader cares about?

Each measure lies between 0 and 1, 1 the best. Dollars and throughput are ratios to the best option there is, so that a
price list in another currency, or a unit of work of another size, ranks the same. A measure that is not known is no
number: the score is the mean of the others, their shares scaled up to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.plan.guide.facts import MEASURES, Measure, migrate_facts
from gpuledger.plan.guide.schema import Weights
from gpuledger.plan.guide.statement import Option
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Best:
    """The best figures among all options that can do the job."""

    price_usd: Decimal
    rate: float
    link_bytes_per_s: float


def scored(options: Sequence[Option], weights: Weights, *, serves: bool, enough: float | None = None) -> list[Option]:
    """The options with their scores, best first; a tie goes to the cheaper, then to the name.

    `serves`: dollars are of the hours of a month; else of a unit of work. `enough`: work a second above which more is
    no better, where the work does not end sooner for it.
    """
    if not options:
        return []
    best = Best(
        min(price(o, serves=serves) for o in options),
        min(max((r for o in options if (r := _rate(o)) is not None), default=0.0), _most(enough)),
        max(link_bytes_per_s(o) for o in options),
    )
    made = [_score(option, measures(option, best, serves=serves), weights) for option in options]
    return sorted(made, key=lambda o: (-o.score, o.monthly_usd, o.candidate.id))


def _most(enough: float | None) -> float:
    return float("inf") if enough is None else enough


def price(option: Option, *, serves: bool) -> Decimal:
    """Dollars for a month of a server, or for a million units of work that ends."""
    if serves or isinstance(option.usd_per_million, Unknown):
        return option.monthly_usd
    return option.usd_per_million


def measures(option: Option, best: Best, *, serves: bool) -> dict[Measure, float]:
    """The measures of one option that are known, of seven."""
    facts, zones, own = migrate_facts(), option.candidate.zones, price(option, serves=serves)
    rate = _rate(option)
    found: dict[Measure, float | None] = {
        "dollars": float(best.price_usd / own) if own else 1.0,
        "throughput": min(1.0, rate / best.rate) if rate is not None and best.rate else None,
        "headroom": min(1.0, max(0.0, option.placement.headroom_ratio) / facts.limits.headroom_full_ratio),
        "interconnect": _interconnect(option, best),
        "availability": None if zones is None else min(1.0, zones / facts.limits.zones_wide),
        "risk": max(0.0, 1 - option.risk.amount / facts.risks.most_points),
        "effort": max(0.0, 1 - option.effort.amount / facts.efforts.most_hours),
    }
    return {name: value for name, value in found.items() if value is not None}


def _rate(option: Option) -> float | None:
    return None if isinstance(option.placement.rate, Unknown) else option.placement.rate.middle


def link_bytes_per_s(option: Option) -> float:
    """The slowest link the work crosses; none is needed where every copy sits on one GPU."""
    gpu = option.candidate.gpu
    if isinstance(gpu, Unknown) or gpu.link is None:
        return 0.0
    return gpu.link.bytes_per_s.value / option.candidate.nodes


def _interconnect(option: Option, best: Best) -> float:
    if option.placement.gpus_per_copy == 1:
        return 1.0
    return link_bytes_per_s(option) / best.link_bytes_per_s if best.link_bytes_per_s else 0.0


def mean(found: Mapping[Measure, float], shares: Mapping[Measure, float]) -> float | None:
    """The mean of some measures by their shares, over those that are known; None where none is."""
    weight = sum(share for name, share in shares.items() if name in found)
    return sum(found[name] * share for name, share in shares.items() if name in found) / weight if weight else None


def _score(option: Option, found: dict[Measure, float], weights: Weights) -> Option:
    scores = migrate_facts().scores
    parts = {name: mean(found, getattr(scores, name)) for name in ("cost", "performance", "reliability")}
    known = {name: value for name, value in parts.items() if value is not None}
    weight = sum(getattr(weights, name) for name in known)
    total = sum(getattr(weights, name) * value for name, value in known.items())
    return replace(
        option,
        measures={str(name): value for name, value in found.items()},
        not_scored=tuple(name for name in MEASURES if name not in found),
        cost_score=_or_unknown(parts["cost"]),
        performance_score=_or_unknown(parts["performance"]),
        reliability_score=_or_unknown(parts["reliability"]),
        score=total / weight if weight else 0.0,
    )


def _or_unknown(value: float | None) -> float | Unknown:
    return Unknown("none of its measures is known") if value is None else value
