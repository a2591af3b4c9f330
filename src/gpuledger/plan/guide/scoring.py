"""How good is each option, by seven measures weighed by what the reader cares about?

Each measure lies between 0 and 1, 1 the best. Dollars and throughput are ratios to the best option there is, so that a
price list in another currency, or a unit of work of another size, ranks the same. An unknown measure is not a number:
the score is the mean of the others, their shares scaled up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuledger.plan.guide.facts import MEASURES, Measure, migrate_facts
from gpuledger.plan.guide.schema import Weights
from gpuledger.plan.guide.statement import Option
from gpuledger.units import Unknown

SCORES = ("cost", "performance", "reliability")
UNSCORED = Unknown("none of its measures is known")


def scored(options: Sequence[Option], weights: Weights, *, serves: bool, enough: float | None = None) -> list[Option]:
    """The options with their scores, best first; a tie goes to the cheaper, then to the name.

    `serves`: dollars are for the hours of a month; else for a unit of work. `enough`: work per second above which more
    is not better, where the work does not end sooner for it.
    """
    if not options:
        return []
    best_usd = min(price(o, serves=serves) for o in options)
    best_rate = min(max(o.placement.speed or 0.0 for o in options), math.inf if enough is None else enough)
    best_link = max(link_bytes_per_s(o) for o in options)
    made = []
    for option in options:
        facts, zones, own = migrate_facts(), option.candidate.zones, price(option, serves=serves)
        rate, linked = option.placement.speed, option.placement.gpus_per_copy > 1
        found: dict[Measure, float | None] = {
            "dollars": float(best_usd / own) if own else 1.0,
            "throughput": min(1.0, rate / best_rate) if rate is not None and best_rate else None,
            "headroom": min(1.0, max(0.0, option.placement.headroom_ratio) / facts.limits.headroom_full_ratio),
            "interconnect": (link_bytes_per_s(option) / best_link if best_link else 0.0) if linked else 1.0,
            "availability": None if zones is None else min(1.0, zones / facts.limits.zones_wide),
            "risk": max(0.0, 1 - option.risk.amount / facts.risks.most_points),
            "effort": max(0.0, 1 - option.effort.amount / facts.efforts.most_hours),
        }
        made.append(_score(option, {name: value for name, value in found.items() if value is not None}, weights))
    return sorted(made, key=lambda o: (-o.score, o.monthly_usd, o.candidate.id))


def price(option: Option, *, serves: bool) -> Decimal:
    """Dollars for a month of a server, or for a million units of work that ends."""
    if serves or isinstance(option.usd_per_million, Unknown):
        return option.monthly_usd
    return option.usd_per_million


def link_bytes_per_s(option: Option) -> float:
    """The slowest link the work crosses; none is needed where every copy sits on one GPU."""
    gpu = option.candidate.gpu
    if isinstance(gpu, Unknown) or gpu.link is None:
        return 0.0
    return gpu.link.bytes_per_s.value / option.candidate.nodes


def mean(found: Mapping[Measure, float], shares: Mapping[Measure, float]) -> float | None:
    """The mean of some measures by their shares, over those that are known; None where none is."""
    weight = sum(share for name, share in shares.items() if name in found)
    return sum(found[name] * share for name, share in shares.items() if name in found) / weight if weight else None


def _score(option: Option, found: dict[Measure, float], weights: Weights) -> Option:
    parts = {name: mean(found, getattr(migrate_facts().scores, name)) for name in SCORES}
    known = {name: value for name, value in parts.items() if value is not None}
    weight = sum(getattr(weights, name) for name in known)
    total = sum(getattr(weights, name) * value for name, value in known.items())
    return replace(
        option,
        measures={str(name): value for name, value in found.items()},
        not_scored=tuple(name for name in MEASURES if name not in found),
        cost_score=known.get("cost", UNSCORED),
        performance_score=known.get("performance", UNSCORED),
        reliability_score=known.get("reliability", UNSCORED),
        score=total / weight if weight else 0.0,
    )
