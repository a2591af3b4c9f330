"""Where should the job run in the next tick? The planned rule: value of time, price of the moment, and a hard deadline.

Of the pools with capacity the one with the lowest price per hour of work is looked at (reclaims make an hour of work
longer). The job moves between pools only where the saving over the time it will stay is more than the move. Then
waiting, on-demand and that pool are compared at the prices of the moment, plus what the rest will cost from there.
Spot is only taken while on-demand could still meet the deadline if the pool were reclaimed at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.plan.spot.checkpoints import billed_per_work_h, exact_h
from gpuledger.plan.spot.replay import ON_DEMAND, WAIT, Terms, World
from gpuledger.plan.spot.value import DEMAND_OUT, DEMAND_UP, IDLE_OUT, IDLE_UP, SPOT, Market, Value, value_of

LONGEST_STAY_H = 48.0
LEAST_PER_H = 1e-6


@dataclass(frozen=True)
class Belief:
    """What is expected of a pool: its price for the whole job, how often it is reclaimed, how long it is out then."""

    usd_h: float
    reclaims_per_h: float
    outage_h: float
    region: str = ""

    @property
    def available(self) -> float:
        """The share of time in which it has capacity."""
        return 1 / (1 + self.reclaims_per_h * self.outage_h)


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


class PlannedRule:
    """The planned rule for a world: it looks at prices and capacity of the present tick only."""

    def __init__(self, world: World, terms: Terms, beliefs: Sequence[Belief], value: Value) -> None:
        self.world, self.terms, self.value = world, terms, value
        self._every = [interval_of(b, terms) for b in beliefs]
        self._rates = [b.reclaims_per_h for b in beliefs]
        self._billed = [billed(b, terms) for b in beliefs]
        score = np.where(world.up, world.spot * np.array(self._billed), np.inf)
        self._best = score.argmin(axis=1).tolist() if score.shape[1] else [WAIT] * world.ticks
        self._lost = [-math.expm1(-r * world.step_h) for r in self._rates]

    def interval_h(self, pool: int) -> float:
        """The best interval at the pool's reclaim rate."""
        return self._every[pool]

    def choose(self, tick: int, saved_h: float, unsaved_h: float, mode: int) -> int:
        """The cheapest of waiting, on-demand and the best pool that keeps the deadline safe."""
        t, step = self.terms, self.world.step_h
        at_risk = t.work_h - saved_h
        left = at_risk - unsaved_h
        ahead = t.deadline_h - (tick + 1) * step
        pool = self._pool(tick, left, mode)
        after = max(math.floor(ahead / step + 1e-9), 0)
        up = pool != WAIT
        save = t.save_h if mode != WAIT else 0.0
        prices = self.world.on_demand_row[tick]
        startup = 0.0 if mode == ON_DEMAND else t.restart_h + save
        place = DEMAND_UP if up else DEMAND_OUT
        best = ON_DEMAND
        lowest = prices * min(step, startup + left) + self.value.at(after, place, left - step + startup)
        if ahead >= left + t.restart_h and mode != ON_DEMAND and not (mode >= 0 and mode == pool):
            waiting = self.value.at(after, IDLE_UP if up else IDLE_OUT, left)
            if waiting <= lowest:
                best, lowest = WAIT, waiting
        safe = ahead >= (left if pool != mode else at_risk) + t.restart_h + t.save_h
        if up and safe and self._spot(tick, pool, left, at_risk, after, mode) <= lowest:
            best = pool
        return best

    def _spot(self, tick: int, pool: int, left: float, at_risk: float, after: int, mode: int) -> float:
        """Dollars of this tick in a pool and of the rest."""
        t, step = self.terms, self.world.step_h
        every = self._every[pool]
        rate = every / (every + t.save_h) if math.isfinite(every) else 1.0
        startup = 0.0 if pool == mode else t.restart_h + (t.save_h if mode != WAIT else 0.0)
        lost = self._lost[pool]
        stays = self.value.at(after, SPOT, left - rate * (step - startup))
        goes = self.value.at(after, IDLE_OUT, at_risk if pool == mode else left)
        price: float = self.world.spot_rows[tick][pool]
        return price * min(step, startup + left / rate) + (1 - lost) * stays + lost * goes

    def _pool(self, tick: int, left: float, mode: int) -> int:
        """The pool to look at: the best one, or the present one where a move would not pay."""
        best: int = self._best[tick]
        if best == WAIT or not self.world.up_rows[tick][best]:
            return WAIT
        if mode < 0 or mode == best or not self.world.up_rows[tick][mode]:
            return best
        prices = self.world.spot_rows[tick]
        saving = prices[mode] * self._billed[mode] - prices[best] * self._billed[best]
        stay = min(left, LONGEST_STAY_H, 1 / max(self._rates[mode], LEAST_PER_H), 1 / max(self._rates[best], LEAST_PER_H))
        move = (self.terms.restart_h + self.terms.save_h) * prices[best]
        return best if saving * stay > move else mode


class StartOverRule:
    """For a job that cannot save its state: an attempt on spot only while on-demand could still do all of it after."""

    def __init__(self, world: World, terms: Terms, beliefs: Sequence[Belief]) -> None:
        self.world, self.terms = world, terms
        score = np.where(world.up, world.spot, np.inf)
        self._best = score.argmin(axis=1).tolist()
        self._beliefs = beliefs

    def interval_h(self, _pool: int) -> float:
        """It never saves."""
        return math.inf

    def choose(self, tick: int, _saved_h: float, _unsaved_h: float, mode: int) -> int:
        """Stay once started; else spot where an attempt may fail, then on-demand."""
        if mode != WAIT:
            return mode
        whole = self.terms.work_h + self.terms.restart_h
        best: int = self._best[tick]
        step = self.world.step_h
        ahead = self.terms.deadline_h - tick * step
        if ahead >= 2 * whole + step and self.world.up_rows[tick][best]:
            return best
        return ON_DEMAND if ahead < 2 * whole + 2 * step else WAIT


def planned_rule(
    world: World, terms: Terms, beliefs: Sequence[Belief], same_region: float, other_region: float
) -> PlannedRule | StartOverRule:
    """The rule for a job in a world, from what is believed of its pools."""
    if terms.checkpoint_h is None:
        return StartOverRule(world, terms, beliefs)
    market = market_of(beliefs, world.on_demand_row[0], terms, same_region, other_region)
    return PlannedRule(world, terms, beliefs, value_of(market, terms, world.step_h))
