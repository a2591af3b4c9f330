"""What is expected of a pool and of all pools together: price, reclaims, outages, and the work they lose?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuledger.plan.spot.checkpoints import billed_per_work_h, exact_h
from gpuledger.plan.spot.replay import Terms
from gpuledger.plan.spot.value import Market

LEAST_PER_H = 1e-6
GRID, RATE_GRID, UP_GRID = 1.05, 1.25, 20


@dataclass(frozen=True)
class Belief:
    """What is expected of a pool: its price for the whole job, how often it is reclaimed, how long it is out then.

    `weight`: the number of reclaims the rate rests on; with few, the job's own experience changes it soon. `rates`:
    where it is only known to lie in a range, the rates it may have, all as likely; the expected one is their mean.
    """

    usd_h: float
    reclaims_per_h: float
    outage_h: float
    region: str = ""
    weight: float = 0.5
    rates: tuple[float, ...] = ()

    @property
    def available(self) -> float:
        """The share of time in which it has capacity."""
        return 1 / (1 + self.reclaims_per_h * self.outage_h)

    def after(self, reclaims: int, hours: float) -> Belief:
        """The same with the job's own experience added."""
        if self.rates:
            rates = np.array(self.rates)
            log_odds = reclaims * np.log(rates) - rates * hours
            odds = np.exp(log_odds - log_odds.max())
            return replace(self, reclaims_per_h=float((odds * rates).sum() / odds.sum()))
        rate = (self.weight + reclaims) / (self.weight / max(self.reclaims_per_h, LEAST_PER_H) + hours)
        return replace(self, reclaims_per_h=rate)


def interval_of(belief: Belief, terms: Terms) -> float:
    """The best hours of work between checkpoints in a pool."""
    if terms.checkpoint_h is None:
        return math.inf
    return min(max(exact_h(terms.checkpoint_h, max(belief.reclaims_per_h, LEAST_PER_H)), 1 / 60), terms.work_h)


def billed(belief: Belief, terms: Terms) -> float:
    """Hours paid per hour of work in a pool."""
    if terms.checkpoint_h is None:
        return 1.0
    every = interval_of(belief, terms)
    return billed_per_work_h(every, terms.checkpoint_h, max(belief.reclaims_per_h, LEAST_PER_H), terms.restart_h)


def market_of(
    beliefs: Sequence[Belief], on_demand_usd_h: float, terms: Terms, same_region: float, other_region: float
) -> Market:
    """Many pools as a market in two states: the cheapest that has capacity is used."""
    order = sorted(beliefs, key=lambda b: b.usd_h * billed(b, terms))
    order = [b for b in order if b.usd_h * billed(b, terms) < on_demand_usd_h] or order[:1]
    first = order[0]
    out, price, rate, every = 1.0, 0.0, 0.0, 0.0
    for at, b in enumerate(order):
        tied = 0.0 if at == 0 else same_region if b.region == first.region else other_region
        down = (1 - b.available) + tied * b.available if at else 1 - b.available
        share = out * (1 - down)
        price, rate = price + share * b.usd_h, rate + share * b.reclaims_per_h
        every += share * interval_of(b, terms)
        out *= down
    up = max(1 - out, 1e-9)
    others, back = 1.0, 1 / first.outage_h
    for b in order[1:]:
        tied = same_region if b.region == first.region else other_region
        others *= 1 - b.available * (1 - tied)
        back += (1 - tied) / b.outage_h
    return Market(price / up, on_demand_usd_h, rate / up, 1 - others, back, every / up)


def rounded(market: Market) -> Market:
    """Prices and rates on a grid: worlds that are nearly alike share a value."""
    whole = market.on_demand_usd_h
    return Market(
        spot_usd_h=whole * _on_grid(market.spot_usd_h / whole, GRID),
        on_demand_usd_h=whole,
        reclaims_per_h=_on_grid(market.reclaims_per_h, RATE_GRID),
        other_up=round(market.other_up * UP_GRID) / UP_GRID,
        back_per_h=_on_grid(market.back_per_h, RATE_GRID),
        interval_h=_on_grid(market.interval_h, RATE_GRID),
    )


def _on_grid(value: float, grid: float) -> float:
    return float(grid ** round(math.log(value) / math.log(grid)))
