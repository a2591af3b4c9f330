"""Which ways are there to run the job, and how does each do in the drawn worlds?

on-demand        never spot
zone             one pool, on-demand when no more time can be lost
region           the zones of a region, moving between them, on-demand when no more time can be lost
regions          all zones allowed, in the same way
spot only        all zones allowed, waiting instead of on-demand
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Literal

import numpy as np

from gpuledger.catalog.prices.reclaim import facts
from gpuledger.plan.outcome import UsdRange
from gpuledger.plan.spot.belief import Belief, interval_of
from gpuledger.plan.spot.pools import Choice
from gpuledger.plan.spot.replay import Floats, Outcome, Rule, Terms, World, replay
from gpuledger.plan.spot.rule import planned_rule
from gpuledger.plan.spot.simple_rules import CheapestNow, OnDemand
from gpuledger.plan.spot.worlds import DrawnWorlds, within
from gpuledger.units import Range

Way = Literal["on-demand", "zone", "region", "regions", "spot only"]
BEST_ZONES, BEST_REGIONS = 3, 3
CENT = Decimal("0.01")
TOGETHER = 10  # worlds that a way is rated in before the next way is: it meets the same markets again
ONE_SIDED = 1.28


@dataclass(frozen=True)
class Candidacy:
    """A way to run the job, and the pools it uses by their place in the choice."""

    way: Way
    where: str
    pools: tuple[int, ...]


@dataclass(frozen=True)
class Bounds:
    """What a way has to keep: dollars at most, in this percent of all runs."""

    budget_usd: float | None
    confidence_pct: float


@dataclass(frozen=True)
class Rated:
    """What a way comes to: dollars and hours (10th to 90th percentile of the worlds), and how sure it is.

    `safe_budget_usd`: the least budget that it keeps surely enough.
    """

    gpu: str
    way: Way
    where: str
    zones: int
    cost: UsdRange
    finish_h: Range
    on_time_pct: float
    in_budget_pct: float
    safe_budget_usd: Decimal
    reclaims: float
    moves: float
    spot_h: float
    on_demand_h: float
    pools: tuple[int, ...]

    @property
    def name(self) -> str:
        """What a person would call it."""
        if self.way == "on-demand":
            return f"on-demand, {self.where}"
        if self.way == "spot only":
            return f"spot without fallback, {self.where}"
        return f"spot, {self.where}"

    def as_json(self) -> dict[str, object]:
        """Without the places of its pools."""
        return {k: v for k, v in vars(self).items() if k != "pools"} | {"name": self.name}


def ways(choice: Choice) -> Iterator[Candidacy]:
    """The ways worth rating."""
    yield Candidacy("on-demand", choice.on_demand_at.name, ())
    found = choice.candidates
    regions = list(dict.fromkeys(c.pool.region for c in found))
    for at, c in enumerate(found[:BEST_ZONES]):
        yield Candidacy("zone", c.pool.name, (at,))
    for region in regions[:BEST_REGIONS]:
        mine = tuple(i for i, c in enumerate(found) if c.pool.region == region)
        if len(mine) > 1:
            yield Candidacy("region", f"{len(mine)} zones of {region}", mine)
    every = tuple(range(len(found)))
    if len(regions) > 1:
        yield Candidacy("regions", f"{len(every)} zones of {len(regions)} regions", every)
    if every:
        yield Candidacy("spot only", f"{len(every)} {'zone' if len(every) == 1 else 'zones'}", every)


def rule_of(one: Candidacy, world: World, terms: Terms, beliefs: Sequence[Belief]) -> Rule:
    """The rule a way follows in a world that has only its pools."""
    if one.way == "on-demand":
        return OnDemand()
    if one.way == "spot only":
        return CheapestNow(world, [interval_of(b, terms) for b in beliefs], patient=True)
    near = facts().correlation
    return planned_rule(world, terms, beliefs, near.same_region, near.other_region)


def rated(
    worlds: DrawnWorlds,
    gpu: str,
    terms: Terms,
    bounds: Bounds,
    draws: int,
    seed: int,
    tick: Callable[[int], None],
) -> list[Rated]:
    """Every way in the same worlds."""
    choice = worlds.choice
    candidates = list(ways(choice))
    beliefs = [c.belief() for c in choice.candidates]
    random, used = np.random.default_rng(seed), within(terms)
    outcomes: dict[Candidacy, list[Outcome]] = {one: [] for one in candidates}
    for first in range(0, draws, TOGETHER):
        count = min(TOGETHER, draws - first)
        drawn = [worlds.draw(random) if choice.candidates else _no_spot(worlds) for _ in range(count)]
        for one in candidates:
            mine = [beliefs[i] for i in one.pools]
            for whole in drawn:
                world = whole if len(one.pools) == len(choice.candidates) else whole.only(one.pools)
                outcomes[one].append(replay(world, terms, rule_of(one, world, used, mine)))
        tick(count)
    return [_rated(gpu, one, found, bounds) for one, found in outcomes.items()]


def at_least_pct(pct: float, draws: int) -> float:
    """The lower end of a share seen in some draws: nine times in ten the true one is above."""
    return pct - ONE_SIDED * math.sqrt(pct * (100 - pct) / draws)


def _safe_budget(usd: Floats, confidence_pct: float) -> Decimal:
    """The cost of the cheapest runs of which there are enough, in whole cents."""
    runs = len(usd)
    enough = next(k for k in range(1, runs + 1) if k == runs or at_least_pct(100 * k / runs, runs) >= confidence_pct)
    return Decimal(repr(float(np.sort(usd)[enough - 1]))).quantize(CENT, ROUND_CEILING)


def _no_spot(worlds: DrawnWorlds) -> World:
    nothing = np.zeros((worlds.ticks, 0))
    return World(worlds.step_h, nothing, nothing.astype(bool), np.full(worlds.ticks, worlds.choice.on_demand_usd_h))


def _rated(gpu: str, one: Candidacy, found: Sequence[Outcome], bounds: Bounds) -> Rated:
    usd, finish = np.array([o.usd for o in found]), np.array([o.finish_h for o in found])
    low, high = np.quantile(usd, [0.1, 0.9])
    f_low, f_mid, f_high = np.quantile(finish, [0.1, 0.5, 0.9])
    cost = UsdRange(_usd(low), _usd(float(usd.mean())), _usd(high))
    fits = 100.0 if bounds.budget_usd is None else 100 * float((usd <= bounds.budget_usd).mean())
    return Rated(
        gpu=gpu, way=one.way, where=one.where, zones=len(one.pools), cost=cost,
        finish_h=Range(float(f_low), float(f_mid), float(f_high), "simulated runs"),
        on_time_pct=100 * sum(o.met for o in found) / len(found), in_budget_pct=fits,
        safe_budget_usd=_safe_budget(usd, bounds.confidence_pct),
        reclaims=_mean([o.reclaims for o in found]), moves=_mean([o.moves for o in found]),
        spot_h=_mean([o.spot_h for o in found]), on_demand_h=_mean([o.on_demand_h for o in found]), pools=one.pools,
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _usd(value: float) -> Decimal:
    return Decimal(str(value)).quantize(CENT)
