"""What would the planned rule have cost on the past, against simple rules and against knowing the future?

Walk forward: at each start the pools, prices and rates are those of that day; the replay then uses the prices that
followed. Capacity is not in the price history: it is drawn from the reclaim bands, with a seed, and all rules meet the
same. Starts whose time until the deadline was not observed are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.catalog.prices.history import S_PER_H, PriceHistory, load_history
from gpuledger.catalog.prices.reclaim import facts
from gpuledger.errors import InputError
from gpuledger.lake.engines.mapping import mapped
from gpuledger.plan.spot.belief import Belief, interval_of
from gpuledger.plan.spot.clairvoyant import least_usd
from gpuledger.plan.spot.pools import Choice, Wanted, choice
from gpuledger.plan.spot.replay import Outcome, Terms, World, replay
from gpuledger.plan.spot.rule import planned_rule
from gpuledger.plan.spot.simple_rules import simple_rules
from gpuledger.plan.spot.worlds import capacity, drawn_rates, instants, past_prices, step_of, ticks_of, within
from gpuledger.units import Unknown

PLANNED = "planned"
RESAMPLES = 1000


@dataclass(frozen=True)
class Case:
    """One start: what each rule came to, and a lower bound of what was possible."""

    start_ms: int
    window: str
    least_usd: float
    outcomes: Mapping[str, Outcome]

    def regret(self, rule: str) -> float:
        """How far above the least, as a ratio."""
        return self.outcomes[rule].usd / self.least_usd - 1


@dataclass(frozen=True)
class RuleResult:
    """A rule over all starts of a window: mean dollars, misses, and regret with 95 % intervals."""

    window: str
    rule: str
    starts: int
    mean_usd: float
    mean_low_usd: float
    mean_high_usd: float
    misses: int
    median_regret_pct: float
    regret_low_pct: float
    regret_high_pct: float


@dataclass(frozen=True)
class Beaten:
    """A simple rule that was cheaper than the planned one in a window, without more misses."""

    window: str
    rule: str
    usd: float
    planned_usd: float


@dataclass(frozen=True)
class Backtest:
    """All starts, each rule by window and over all of them, and where the planned rule was beaten."""

    starts: int
    left_out: int
    rules: tuple[RuleResult, ...]
    windows: tuple[RuleResult, ...]
    beaten: tuple[Beaten, ...]


def run_rules(world: World, terms: Terms, beliefs: Sequence[Belief]) -> dict[str, Outcome]:
    """What each rule comes to in a world."""
    near = facts().correlation
    rule = planned_rule(world, terms, beliefs, near.same_region, near.other_region)
    every = [interval_of(b, terms) for b in beliefs]
    out = {PLANNED: replay(world, terms, rule)}
    for name, make in simple_rules(world, terms, every).items():
        out[name] = replay(world, terms, make())
    return out


def past_case(history: PriceHistory, wanted: Wanted, terms: Terms, at_s: int, seed: int) -> Case | Unknown:
    """One start on the past; unknown where it was not observed or nothing was on offer."""
    terms = within(terms)
    step = step_of(terms.deadline_h)
    ticks = ticks_of(terms.deadline_h, step)
    until = instants(at_s, ticks, step)
    if until[-1] > history.last_s or not history.observed(until).all():
        return Unknown("not observed until after the deadline")
    try:
        found = choice(history, wanted, at_s)
    except InputError as error:
        return Unknown(error.message)
    if not found.candidates:
        return Unknown("no spot offer")
    world = past_world(history, found, at_s, ticks, step, np.random.default_rng([seed, at_s]))
    outcomes = run_rules(world, terms, [c.belief() for c in found.candidates])
    day = int(at_s // (24 * S_PER_H)) * 24 * S_PER_H
    return Case(at_s * 1000, window_of(day), least_usd(world, terms), outcomes)


def past_world(
    history: PriceHistory, found: Choice, at_s: int, ticks: int, step_h: float, random: np.random.Generator
) -> World:
    """The prices that followed, with drawn capacity; a pool whose offer is gone or above on-demand has none."""
    spot, on_demand = past_prices(history, found, at_s, ticks, step_h)
    rates = drawn_rates(found.candidates, random)
    up = capacity([c.pool.region for c in found.candidates], rates, ticks, step_h, random)
    up &= np.nan_to_num(spot, nan=np.inf) < on_demand[:, None]
    return World(step_h, np.nan_to_num(spot, nan=np.inf), up, on_demand)


def window_of(at_s: int) -> str:
    """The half-year of an instant."""
    import datetime as dt

    day = dt.datetime.fromtimestamp(at_s, dt.UTC)
    return f"{day.year} H{1 if day.month <= 6 else 2}"


def walk(
    history: PriceHistory, wanted: Wanted, terms: Terms, starts_s: Sequence[int], seed: int,
    tick: Callable[[int], None] = lambda _: None,
) -> list[Case | Unknown]:  # fmt: skip
    """Every start, in order, on the engine in use."""
    shipped = history is load_history()
    return mapped(_start, (None if shipped else history, wanted, terms, seed), starts_s, tick)


def _start(common: tuple[PriceHistory | None, Wanted, Terms, int], at_s: int) -> Case | Unknown:
    """One start; without a history on that which is shipped."""
    history, wanted, terms, seed = common
    return past_case(history or load_history(), wanted, terms, at_s, seed)


def summed(cases: Sequence[Case], left_out: int, seed: int) -> Backtest:
    """The results of all rules by window and over all."""
    names = list(cases[0].outcomes) if cases else []
    windows = sorted({c.window for c in cases})
    rows = [_result(w, n, [c for c in cases if c.window == w], seed) for w in windows for n in names]
    whole = [_result("all", n, cases, seed) for n in names]
    beaten = [b for w in ("all", *windows) for b in _beaten([r for r in (*rows, *whole) if r.window == w])]
    return Backtest(len(cases), left_out, tuple(whole), tuple(rows), tuple(beaten))


def _beaten(rows: Sequence[RuleResult]) -> Iterator[Beaten]:
    ours = next(r for r in rows if r.rule == PLANNED)
    for row in rows:
        if row.rule != PLANNED and row.misses <= ours.misses and row.mean_usd < ours.mean_usd * (1 - 1e-9):
            yield Beaten(row.window, row.rule, row.mean_usd, ours.mean_usd)


def _result(window: str, rule: str, cases: Sequence[Case], seed: int) -> RuleResult:
    usd = np.array([c.outcomes[rule].usd for c in cases])
    regret = np.array([100 * c.regret(rule) for c in cases])
    draws = np.random.default_rng(seed).integers(0, len(cases), (RESAMPLES, len(cases)))
    low, high = np.quantile(usd[draws].mean(axis=1), [0.025, 0.975])
    r_low, r_high = np.quantile(np.median(regret[draws], axis=1), [0.025, 0.975])
    return RuleResult(
        window, rule, len(cases), float(usd.mean()), float(low), float(high),
        sum(not c.outcomes[rule].met for c in cases), float(np.median(regret)), float(r_low), float(r_high),
    )  # fmt: skip
