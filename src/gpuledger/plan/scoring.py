"""How good is each option, measured on seven things and weighed by what the reader cares about?

Each measure lies between 0 and 1, 1 the best. Dollars and throughput are ratios to the best option there is, so that a
price list in another currency, or a unit of work of another size, ranks the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.plan.migrate_facts import Measure, migrate_facts
from gpuledger.plan.migrate_schema import Weights
from gpuledger.plan.migrate_statement import Option
from gpuledger.units import Unknown

NOT_LISTED = 0.5  # where the price lists do not say how widely an instance is offered


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
        min(max(_rate(o) for o in options), float("inf") if enough is None else enough),
        max(link_bytes_per_s(o) for o in options),
    )
    made = [_score(option, measures(option, best, serves=serves), weights) for option in options]
    return sorted(made, key=lambda o: (-o.score, o.monthly_usd, o.candidate.id))


def price(option: Option, *, serves: bool) -> Decimal:
    """Dollars for a month of a server, or for a million units of work that ends."""
    if serves or isinstance(option.usd_per_million, Unknown):
        return option.monthly_usd
    return option.usd_per_million


def measures(option: Option, best: Best, *, serves: bool) -> dict[Measure, float]:
    """The seven measures of one option."""
    facts, zones, own = migrate_facts(), option.candidate.zones, price(option, serves=serves)
    return {
        "dollars": float(best.price_usd / own) if own else 1.0,
        "throughput": min(1.0, _rate(option) / best.rate) if best.rate else 0.0,
        "headroom": min(1.0, max(0.0, option.placement.headroom_ratio) / facts.limits.headroom_full_ratio),
        "interconnect": _interconnect(option, best),
        "availability": NOT_LISTED if zones is None else min(1.0, zones / facts.limits.zones_wide),
        "risk": max(0.0, 1 - option.risk.amount / facts.risks.most_points),
        "effort": max(0.0, 1 - option.effort.amount / facts.efforts.most_hours),
    }


def _rate(option: Option) -> float:
    return 0.0 if isinstance(option.placement.rate, Unknown) else option.placement.rate.middle


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


def mean(found: Mapping[Measure, float], shares: Mapping[Measure, float]) -> float:
    """The mean of some measures by their shares."""
    return sum(found[name] * share for name, share in shares.items()) / sum(shares.values())


def _score(option: Option, found: dict[Measure, float], weights: Weights) -> Option:
    scores = migrate_facts().scores
    cost, performance = mean(found, scores.cost), mean(found, scores.performance)
    reliability = mean(found, scores.reliability)
    total = weights.cost * cost + weights.performance * performance + weights.reliability * reliability
    return replace(
        option,
        measures={str(name): value for name, value in found.items()},
        cost_score=cost,
        performance_score=performance,
        reliability_score=reliability,
        score=total,
    )
