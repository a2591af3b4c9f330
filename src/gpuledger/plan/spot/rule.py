"""Where should the job run in the next tick? The planned rule: value of time, price of the moment, and a hard deadline.

Of the pools with capacity the one with the lowest price per hour of work is looked at (reclaims make an hour of work
longer). The job moves between pools only where the saving over the time it will stay is more than the move. Then
waiting, on-demand and that pool are compared at the prices of the moment, plus what the rest will cost from there.
Waiting is only weighed where the pool costs more than one that may come back: prices are taken to stay, so time in
which the job does not run saves nothing else. Spot is only taken for a tick while on-demand could still meet the
deadline if the pool were reclaimed at the worst instant of it, just before a checkpoint. How often the state is saved
follows from what lost time would cost: more often where little of it is left. How often a pool is reclaimed is known as
a range; the job's own hours there narrow it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuledger.plan.spot.belief import LEAST_PER_H, Belief, billed, interval_of, market_of, rounded
from gpuledger.plan.spot.replay import ON_DEMAND, WAIT, Terms, World
from gpuledger.plan.spot.value import (
    DEMAND_OUT,
    DEMAND_UP,
    IDLE_OUT,
    IDLE_UP,
    SPOT,
    Market,
    least_interval_h,
    longest_interval_h,
    value_of,
)

LONGEST_STAY_H = 48.0
LEAST_QUIET_H, QUIET_SHARE = 1.0, 0.5  # hours without a reclaim after which the rate is updated
REVALUE, RERATE = 1.25, 1.25  # prices and rates that moved by this much ask for a new value
WORTH_WAITING = 1.05  # from here on, waiting for the cheapest pool pays


class PlannedRule:
    """The planned rule for a world: it looks at prices and capacity of the present tick only.

    Prices are assumed to stay where they are: the rule does not wait because all prices rose. It may wait when the
    cheapest pool is out of capacity.
    """

    def __init__(self, world: World, terms: Terms, beliefs: Sequence[Belief], near: tuple[float, float]) -> None:
        self.world, self.terms, self._near = world, terms, near
        self._first = self._beliefs = list(beliefs)
        self._hours, self._reclaims = [0.0] * len(beliefs), [0] * len(beliefs)
        self._slack, self._before = math.inf, WAIT
        self._starting = 0.0  # hours of a start that are left
        self._after, self._left = 0, terms.work_h
        self._quiet, self._learned = 0.0, False
        self._believe()
        self._valued(0)

    def _believe(self) -> None:
        """What follows from the reclaim rates."""
        world, terms = self.world, self.terms
        self._every = [interval_of(b, terms) for b in self._beliefs]
        self._rates = [max(b.reclaims_per_h, LEAST_PER_H) for b in self._beliefs]
        self._billed = [billed(b, terms) for b in self._beliefs]
        self._lost = [-math.expm1(-r * world.step_h) for r in self._rates]
        posted = world.spot * np.array(self._billed)
        self._best = np.where(world.up, posted, np.inf).argmin(axis=1).tolist()
        self._posted = posted.min(axis=1).tolist()

    def _learn(self, mode: int) -> None:
        """Update the reclaim rate of a pool after a reclaim, or after a while without one."""
        last = self._before
        if last < 0:
            return
        self._hours[last] += self.world.step_h
        self._quiet += self.world.step_h
        if mode == WAIT or self._quiet > max(LEAST_QUIET_H, QUIET_SHARE * self._hours[last]):
            self._reclaims[last] += mode == WAIT
            self._quiet, self._learned = 0.0, True
            learned = self._first[last].after(self._reclaims[last], self._hours[last])
            self._beliefs = [learned if i == last else b for i, b in enumerate(self._beliefs)]
            self._believe()

    def _market(self, tick: int) -> Market:
        """The market at the prices of a tick."""
        prices = self.world.spot_rows[tick]
        now = [replace(b, usd_h=p) for b, p in zip(self._beliefs, prices, strict=True) if math.isfinite(p)]
        return market_of(now or self._beliefs, self.world.on_demand_row[tick], self.terms, *self._near)

    def _rates_moved(self, tick: int) -> bool:
        """Whether what was learned of reclaims asks for a new value."""
        if not self._learned:
            return False
        self._learned = False
        return not 1 / RERATE < self._market(tick).reclaims_per_h / self.value.market.reclaims_per_h < RERATE

    def _valued(self, tick: int) -> None:
        """The value at the prices of a tick."""
        market = self._market(tick)
        near = rounded(market)
        self.value = value_of(near, self.terms, self.world.step_h)
        self._base = self._posted[tick] * near.spot_usd_h / market.spot_usd_h

    def interval_h(self, pool: int) -> float:
        """The best interval at the pool's reclaim rate, shorter where little time can be lost."""
        found = self.value.interval_h(self._after + 1, self._left, self._rates[pool])
        longest = longest_interval_h(self._slack - self._starting, self.terms)
        return max(min(found, self._every[pool], longest), least_interval_h(self.terms))

    def choose(self, tick: int, saved_h: float, unsaved_h: float, mode: int) -> int:
        """The cheapest of waiting, on-demand and the best pool that keeps the deadline safe."""
        self._learn(mode)
        started = max(self._starting - self.world.step_h, 0.0)
        self._before = self._chosen(tick, saved_h, unsaved_h, mode, started)
        self._starting = started if self._before == mode else self._startup(mode)
        return self._before

    def _startup(self, mode: int) -> float:
        """Hours before another place does work: the state is saved first where the job runs."""
        return self.terms.restart_h + (self.terms.save_h if mode != WAIT else 0.0)

    def _chosen(self, tick: int, saved_h: float, unsaved_h: float, mode: int, started: float) -> int:
        t, step = self.terms, self.world.step_h
        at_risk = t.work_h - saved_h
        left = at_risk - unsaved_h
        ahead = t.deadline_h - (tick + 1) * step
        self._slack = ahead + step - left - t.restart_h
        level = self._posted[tick] / self._base if math.isfinite(self._posted[tick] / self._base) else 1.0
        if ahead > 0 and (not 1 / REVALUE < level < REVALUE or self._rates_moved(tick)):
            self._valued(tick)
            level = 1.0
        pool = self._pool(tick, left, mode)
        after = max(math.floor(ahead / step + 1e-9), 0)
        self._after, self._left = after, left
        up = pool != WAIT
        startup = 0.0 if mode == ON_DEMAND else self._startup(mode)
        best, price = ON_DEMAND, self.world.on_demand_row[tick]
        place = DEMAND_UP if up else DEMAND_OUT
        lowest = price * min(step, startup + left) + self.value.at(after, place, left - step + startup)
        self._starting = started if pool == mode else self._startup(mode)
        safe = up and self._safe(pool, unsaved_h if pool == mode else 0.0)
        if (
            self._slack >= step
            and mode != ON_DEMAND
            and (mode == WAIT or mode != pool)
            and not (safe and self._cheap(tick, pool))
        ):
            waiting = self.value.at(after, IDLE_UP if up else IDLE_OUT, left)
            if waiting <= lowest:
                best, lowest = WAIT, waiting
        if safe and self._spot(tick, pool, left, at_risk, after, mode, level) <= lowest:
            best = pool
        return best

    def _safe(self, pool: int, unsaved_h: float) -> bool:
        """Whether on-demand can still meet the deadline after a reclaim at any instant of this tick, and after it."""
        save_h, every = self.terms.save_h, self.interval_h(pool)
        works = self.world.step_h - min(self._starting, self.world.step_h)
        first = max(every - unsaved_h, 0.0)
        if works <= first:
            saves, most = 0, unsaved_h + works
        else:
            saves, most = 1 + math.floor((works - first) / (every + save_h)), max(unsaved_h, every)
        return self._slack - min(self._starting, self.world.step_h) - saves * save_h >= most + save_h

    def _cheap(self, tick: int, pool: int) -> bool:
        """Whether no pool, with capacity or without, does an hour of work for much less."""
        mine = self.world.spot_rows[tick][pool] * self._billed[pool]
        return mine <= WORTH_WAITING * self._posted[tick]

    def _spot(self, tick: int, pool: int, left: float, at_risk: float, after: int, mode: int, level: float) -> float:
        """Dollars of this tick in a pool, at the level of prices the value was made for, and of the rest."""
        t, step = self.terms, self.world.step_h
        every = self.interval_h(pool)
        rate = every / (every + t.save_h)
        startup = 0.0 if pool == mode else t.restart_h + (t.save_h if mode != WAIT else 0.0)
        lost = self._lost[pool]
        stays = self.value.at(after, SPOT, left - rate * (step - startup))
        goes = self.value.at(after, IDLE_OUT, at_risk if pool == mode else left)
        price: float = self.world.spot_rows[tick][pool] / level
        return price * min(step, startup + left / rate) + (1 - lost) * stays + lost * goes

    def _pool(self, tick: int, left: float, mode: int) -> int:
        """The pool to look at: the best one, or the present one where a move would not pay."""
        best: int = self._best[tick]
        if not self.world.up_rows[tick][best]:
            return WAIT
        if mode < 0 or mode == best:
            return best
        prices = self.world.spot_rows[tick]
        saving = prices[mode] * self._billed[mode] - prices[best] * self._billed[best]
        stay = min(left, LONGEST_STAY_H, 1 / self._rates[mode], 1 / self._rates[best])
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
    return PlannedRule(world, terms, beliefs, (same_region, other_region))
