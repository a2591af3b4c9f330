"""Which policy follows this demand for the least, and what should be pasted? The whole plan, from a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.errors import InputError
from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.policies import PolicyKind
from gpuledger.plan.autoscale.prices import ReplicaPrices
from gpuledger.plan.autoscale.replays.clairvoyant import busy_replica_h, by_interval, needed_replicas
from gpuledger.plan.autoscale.replays.replay import Replays
from gpuledger.plan.autoscale.rows import MONTH_H, cost_of, rows_of
from gpuledger.plan.autoscale.setting import Setting
from gpuledger.plan.autoscale.statement import AutoscalePlan, Moment, Point, PolicyRow, TraceFacts
from gpuledger.plan.autoscale.tuning import Tuned, tune
from gpuledger.plan.autoscale.words import assumptions_of, headline_of, pasted, refusals
from gpuledger.units import Unknown

Stage = Callable[[str, int | None], Callable[[int], None]]
SHORTEST_S = 600.0
MOMENTS = 360


@dataclass(frozen=True)
class Asked:
    """A plan to make: the demand, the rules, the prices, and the policies to try."""

    trace: Trace
    setting: Setting
    prices: ReplicaPrices
    kinds: Sequence[PolicyKind]
    split_s: float
    seeds: tuple[int, ...]
    deployment: str


def split_of(trace: Trace, learned_pct: float) -> float:
    """The instant up to which policies learn, at the edge of a step."""
    if not 10 <= learned_pct <= 90:
        hint = "give learned_pct=50 to learn from the first half"
        raise InputError(f"learned_pct={learned_pct:g} is not between 10 and 90", hint=hint)
    if trace.length_s < SHORTEST_S:
        hint = "give a trace of ten minutes or more, better of some days"
        raise InputError(f"the trace is {trace.length_s:,.0f} s long", hint=hint)
    steps = len(trace.rates_per_s)
    return float(min(steps - 1, max(1, round(steps * learned_pct / 100))) * trace.step_s)


def autoscale(asked: Asked, stage: Stage) -> AutoscalePlan:
    """Tune every policy on the first part, replay it on the rest, and take the cheapest that meets the goal."""
    setting = asked.setting
    replays = Replays(asked.trace, setting, asked.split_s, asked.seeds)
    if not replays.by_chance:
        replays = Replays(asked.trace, setting, asked.split_s, asked.seeds[:1])
    cannot = {kind: why for kind in asked.kinds if (why := kind.cannot(setting))}
    able = [kind for kind in asked.kinds if kind not in cannot]
    if not able:
        raise InputError(f"no policy can be tried: {next(iter(cannot.values()))}", hint="try other policies")
    tick = stage("replaying policies", sum(len(kind.tried(setting)) + len(replays.seeds) for kind in able))
    cost = cost_of(asked.prices, setting)
    tuned = [tune(kind, replays, cost, tick) for kind in able]
    needed = by_interval(needed_replicas(asked.trace, setting), asked.trace, setting.interval_s)
    rows = rows_of(tuned, replays, needed, asked.prices)
    fitting = sorted((r for r in rows if r.meets), key=lambda r: (_cost(r), r.missed_pct))
    chosen = fitting[0] if fitting else None
    first = round(asked.split_s / setting.interval_s)
    hours = (len(needed) - first) * setting.interval_s / 3600
    gpus, month = setting.service.gpus, MONTH_H / hours
    return AutoscalePlan(
        headline=headline_of(rows, chosen, setting.slo),
        trace=_trace_facts(asked.trace, replays),
        service=setting.service,
        slo=setting.slo,
        gpu=asked.prices.gpu.name if asked.prices.gpu else Unknown("no GPU is named"),
        chosen=chosen,
        runners_up=tuple(fitting[1:]),
        policies=tuple(rows),
        refused=refusals(rows, cannot, setting, needed[first:]),
        clairvoyant_gpu_h_per_month=float(needed[first:].sum()) * setting.interval_s / 3600 * gpus * month,
        busy_gpu_h_per_month=busy_replica_h(asked.trace, setting, asked.split_s) * gpus * month,
        spot_share_ratio=setting.spot.share_ratio,
        prices_dated=_dated(asked.prices, setting),
        price_words=_price_words(asked.prices, setting),
        assumptions=assumptions_of(asked.trace, replays),
        tried=tuple(_points(tuned, gpus)),
        moments=_moments(asked, tuned, chosen or min(rows, key=lambda r: r.missed_pct), needed),
        manifests=pasted(rows, chosen, setting, asked.deployment, asked.prices.gpu),
    )


def _cost(row: PolicyRow) -> float:
    usd = row.usd_per_month
    return row.gpu_h_per_month if isinstance(usd, Unknown) else float(usd.middle_usd)


def _trace_facts(trace: Trace, replays: Replays) -> TraceFacts:
    return TraceFacts(
        source=trace.source,
        hours=trace.length_s / 3600,
        requests=trace.requests,
        mean_per_s=float(trace.rates_per_s.mean()),
        peak_per_s=float(trace.rates_per_s.max()),
        start_ms=int(trace.clock_s[0] * 1000) if trace.dated else Unknown("the trace has no dates"),
        read_as=trace.read_as,
        notes=trace.notes,
        replay="requests" if replays.request_level else "flow",
        learned_hours=replays.split_s / 3600,
    )


def _dated(prices: ReplicaPrices, setting: Setting) -> str | Unknown:
    used = [prices.on_demand, *([prices.spot] if setting.spot.share_ratio else [])]
    dates = [p.dated for p in used if not isinstance(p, Unknown)]
    return min(dates) if dates else Unknown("no price is used")


def _price_words(prices: ReplicaPrices, setting: Setting) -> tuple[str, ...]:
    used = [("", prices.on_demand), *([("spot: ", prices.spot)] if setting.spot.share_ratio else [])]
    return tuple(f"{what}{p.why if isinstance(p, Unknown) else p.words}" for what, p in used)


def _points(tuned: Sequence[Tuned], gpus: int) -> list[Point]:
    return [
        Point(
            t.kind.name, trial.value, 100 * trial.totals.missed_ratio,
            trial.totals.replica_h * gpus * MONTH_H / trial.totals.hours,
        )
        for t in tuned
        for trial in t.trials
    ]  # fmt: skip


def _moments(asked: Asked, tuned: Sequence[Tuned], shown: PolicyRow, needed: np.ndarray) -> tuple[Moment, ...]:
    """The evaluated time in pieces: replicas as the most of each piece, demand as its mean."""
    step = asked.setting.interval_s
    runs = {t.kind.name: t.runs[0] for t in tuned}
    run, static = runs[shown.policy], runs.get("static-peak")
    first = round(asked.split_s / step)
    starts = np.unique(np.linspace(first, len(needed), min(MOMENTS, len(needed) - first), endpoint=False).astype(int))

    def most(values: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, starts)

    widths = np.diff(np.append(starts, len(needed)))
    rates = np.add.reduceat(run.arrived, starts) / (widths * step)
    paid = most(np.floor(run.paid))
    fixed = most(np.floor(static.paid)) if static is not None else None
    return tuple(
        Moment(
            float(s * step), float(rate), float(need), float(got),
            Unknown("the static peak was not tried") if fixed is None else float(fixed[i]),
        )
        for i, (s, rate, need, got) in enumerate(zip(starts, rates, most(needed), paid, strict=True))
    )  # fmt: skip
