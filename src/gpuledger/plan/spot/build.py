"""How does a job become a spot plan? Offers of the day, drawn worlds, the cheapest way that is sure enough."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices.history import S_PER_H, PriceHistory
from gpuledger.errors import InputError
from gpuledger.plan.outcome import Refused
from gpuledger.plan.planners import Stage, silent
from gpuledger.plan.spot.backtest import Backtest, Case, summed, walk
from gpuledger.plan.spot.belief import LEAST_PER_H, billed, interval_of
from gpuledger.plan.spot.checkpoints import Intervals, intervals
from gpuledger.plan.spot.judging import judged, short_enough
from gpuledger.plan.spot.options import Bounds, Rated, rated
from gpuledger.plan.spot.pools import Candidate, Choice, Wanted, choice
from gpuledger.plan.spot.replay import Terms
from gpuledger.plan.spot.statement import Job, PastPrices, PoolRow, SpotPlan
from gpuledger.plan.spot.unrated import unrated_offers
from gpuledger.plan.spot.words import Known, assumptions, headline, notes
from gpuledger.plan.spot.worlds import DrawnWorlds, within
from gpuledger.units import Unknown

PAST_DAYS = 90
RUNNERS_UP = 3
BACKTEST_STARTS = 48
CHART_POOLS = 6


@dataclass(frozen=True)
class Asked:
    """A job with all it may use.

    `at_s`: the prices known then are used. `start_s`: when the job starts, where that is later. `one_length`: one
    figure of hours was given for several GPUs.
    """

    gpu_hours: tuple[tuple[Gpu, float], ...]
    gpus: int
    checkpoint_h: float | None
    restart_h: float
    deadline_h: float
    deadline_given: bool
    budget_usd: Decimal | None
    confidence_pct: float
    regions: tuple[str, ...]
    zones: tuple[str, ...]
    reclaims_per_day: float | None
    at_s: int
    draws: int
    seed: int
    backtest: bool
    start_s: int | None = None
    one_length: bool = False

    @property
    def starts_s(self) -> int:
        """When the job starts."""
        return self.at_s if self.start_s is None else self.start_s

    def wanted(self, gpu: Gpu) -> Wanted:
        """What is looked for of a GPU."""
        return Wanted(gpu, self.gpus, self.regions, self.zones, self.reclaims_per_day)

    def terms(self, hours: float) -> Terms:
        """The job on a GPU that takes this many hours."""
        return Terms(hours, self.checkpoint_h, self.restart_h, self.deadline_h)


@dataclass(frozen=True)
class _Kind:
    """All about one kind of GPU."""

    gpu: Gpu
    terms: Terms
    choice: Choice
    ways: Sequence[Rated]
    moves: bool


def plan_spot(asked: Asked, history: PriceHistory, today: dt.date, stage: Stage = silent) -> SpotPlan:
    """The plan of a job."""
    kinds: list[_Kind] = []
    refused: list[Refused] = []
    for gpu, hours in asked.gpu_hours:
        terms = asked.terms(hours)
        if asked.deadline_h < hours + asked.restart_h:
            why = f"needs {hours + asked.restart_h:,.1f} h, and the deadline is in {asked.deadline_h:,.1f} h"
            refused.append(Refused(gpu.name, why, "a later deadline, or more GPUs with fewer hours"))
            continue
        found = choice(history, asked.wanted(gpu), asked.at_s)
        kept, too_long = short_enough(found, terms)
        refused = [*too_long, *refused, *found.refused]
        worlds = DrawnWorlds(history, kept, asked.at_s, within(terms).deadline_h)
        tick = stage(f"Simulating {gpu.name}", asked.draws)
        budget = None if asked.budget_usd is None else float(asked.budget_usd)
        ways = rated(worlds, gpu.name, terms, Bounds(budget, asked.confidence_pct), asked.draws, asked.seed, tick)
        kinds.append(_Kind(gpu, terms, kept, ways, worlds.moves))
    if not kinds:
        hint = "give a later deadline, or more GPUs and fewer hours"
        raise InputError(f"no GPU can do the job in time: {refused[0].what} {refused[0].why}", hint=hint)
    every = [w for k in kinds for w in k.ways]
    good, more = judged(every, asked.confidence_pct, asked.budget_usd, asked.draws)
    chosen = good[0]
    mine = next(k for k in kinds if chosen in k.ways)
    return _statement(asked, history, today, kinds, mine, good, [*more, *refused], stage)


def _statement(
    asked: Asked, history: PriceHistory, today: dt.date, kinds: Sequence[_Kind], mine: _Kind, good: Sequence[Rated],
    refused: Sequence[Refused], stage: Stage,
) -> SpotPlan:  # fmt: skip
    chosen = good[0]
    pools = [mine.choice.candidates[i] for i in chosen.pools]
    day = dt.datetime.fromtimestamp(asked.at_s, dt.UTC).date()
    demand = min(w.cost.middle_usd for w in mine.ways if w.way == "on-demand")
    job = Job(
        asked.gpus, tuple((g.name, h) for g, h in asked.gpu_hours),
        None if asked.checkpoint_h is None else asked.checkpoint_h * S_PER_H, asked.restart_h * S_PER_H,
        asked.deadline_h, asked.deadline_given, asked.budget_usd, asked.confidence_pct,
    )  # fmt: skip
    used = within(mine.terms).deadline_h
    known = Known(
        history.source, day, asked.starts_s, (asked.at_s - history.first_s) / S_PER_H / 24, all(k.moves for k in kinds),
        used if used < asked.deadline_h else None,
    )  # fmt: skip
    back = _backtest(asked, history, mine, stage) if asked.backtest else None
    return SpotPlan(
        headline=headline(job, chosen, demand, day, _spot_unrated(mine)),
        notes=notes(job, known, asked.one_length),
        job=job,
        chosen=chosen,
        runners_up=tuple(good[1 : RUNNERS_UP + 1]),
        options=tuple(sorted((w for k in kinds for w in k.ways), key=lambda w: w.cost.middle_usd)),
        on_demand_usd=demand,
        intervals=_intervals(asked, pools),
        pools=tuple(_row(c, mine.terms) for c in pools),
        refused=tuple(refused),
        assumptions=assumptions(job, known, asked.reclaims_per_day, asked.draws),
        start_ms=asked.starts_s * 1000,
        prices_dated=day,
        price_age_days=(today - day).days,
        price_source=history.source,
        past=_past(history, pools[:CHART_POOLS], asked.at_s),
        unrated=unrated_offers(mine.gpu, asked.gpus),
        backtest=back,
    )


def _spot_unrated(kind: _Kind) -> bool:
    """Whether spot is on offer, but how often it is reclaimed is known of no zone."""
    return not kind.choice.candidates and kind.choice.without_rate > 0


def _intervals(asked: Asked, pools: Sequence[Candidate]) -> Intervals | Unknown:
    if asked.checkpoint_h is None:
        return Unknown("the job has no checkpoints")
    if not pools:
        return Unknown("on-demand is not reclaimed")
    return intervals(asked.checkpoint_h, max(pools[0].belief().reclaims_per_h, LEAST_PER_H))


def _row(c: Candidate, terms: Terms) -> PoolRow:
    rate, belief = c.reclaims_per_h, c.belief()
    every = interval_of(belief, terms)
    per_day = type(rate)(24 * rate.low, 24 * rate.middle, 24 * rate.high, rate.evidence, rate.note)
    on_demand = c.on_demand_usd_h
    return PoolRow(
        c.pool.instance, c.pool.region, c.pool.zone, c.instances, Decimal(f"{c.spot_usd_h:.4f}"),
        on_demand if isinstance(on_demand, Unknown) else Decimal(f"{on_demand:.4f}"), rate.note, per_day,
        60 * every if math.isfinite(every) else Unknown("no checkpoints"), billed(belief, terms),
    )  # fmt: skip


def _past(history: PriceHistory, pools: Sequence[Candidate], at_s: int) -> tuple[PastPrices, ...]:
    day = 24 * S_PER_H
    at = np.arange(at_s - PAST_DAYS * day, at_s + 1, day, dtype=np.int64)
    out = []
    for c in pools:
        usd = history.prices(c.pool, at)[0] * c.instances
        values = tuple(None if math.isnan(v) else float(v) for v in usd)
        out.append(PastPrices(c.pool.name, tuple(dt.datetime.fromtimestamp(int(s), dt.UTC).date() for s in at), values))
    return tuple(out)


def past_starts(history: PriceHistory, terms: Terms, at_s: int) -> list[int]:
    """The starts a job is tested at: even steps, each observed to its end before the plan."""
    until = at_s - int((1.5 * within(terms).deadline_h + 25) * S_PER_H)
    first = history.first_s
    step = max((until - first) // BACKTEST_STARTS, 24 * S_PER_H)
    return list(range(first + int(step), until, int(step))) if until > first else []


def _backtest(asked: Asked, history: PriceHistory, mine: _Kind, stage: Stage) -> Backtest:
    """The job at many starts before the plan."""
    if asked.checkpoint_h is None:
        raise InputError("a job without checkpoints cannot be tested on the past", hint="leave backtest out")
    starts = past_starts(history, mine.terms, asked.at_s)
    tick: Callable[[int], None] = stage("Testing on the past", len(starts))
    found = walk(history, asked.wanted(mine.gpu), mine.terms, starts, asked.seed, tick)
    cases = [c for c in found if isinstance(c, Case)]
    if not cases:
        why = next((c.why for c in found if isinstance(c, Unknown)), "the history is too short")
        raise InputError(f"the past cannot be tested: {why}", hint="leave backtest out, or give a longer history")
    return summed(cases, len(found) - len(cases), asked.seed)
