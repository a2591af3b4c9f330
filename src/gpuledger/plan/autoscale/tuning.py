"""With which value does a policy meet the goal for the least, and how does it do on what comes after?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import PolicyKind
from gpuledger.plan.autoscale.replays.replay import Replays
from gpuledger.plan.autoscale.replays.run import Run, Totals

Cost = Callable[[Totals], float]
Tick = Callable[[int], None]


@dataclass(frozen=True)
class Trial:
    """A policy with one value on the first part of the trace."""

    value: float
    totals: Totals


@dataclass(frozen=True)
class Tuned:
    """A policy with the value chosen on the first part; `runs` and `totals`: on the rest, one for each seed.

    `hindsight`: where that misses the goal, the next value that would have met it on the rest, if one would.
    """

    kind: PolicyKind
    chosen: Trial
    trials: tuple[Trial, ...]
    runs: tuple[Run, ...]
    totals: tuple[Totals, ...]
    hindsight: Trial | None = None

    @property
    def missed_ratio(self) -> float:
        """The share of requests that missed the goal, over all seeds."""
        return sum(t.missed for t in self.totals) / max(1e-12, sum(t.requests for t in self.totals))


def best(trials: Sequence[Trial], allowed_ratio: float, cost: Cost) -> Trial:
    """The cheapest that misses at most this share; where none does, the one that misses the fewest."""
    fitting = [t for t in trials if t.totals.missed_ratio <= allowed_ratio]
    if fitting:
        return min(fitting, key=lambda t: (cost(t.totals), t.totals.missed_ratio))
    return min(trials, key=lambda t: (t.totals.missed_ratio, cost(t.totals)))


def tune(kind: PolicyKind, replays: Replays, cost: Cost, tick: Tick) -> Tuned:
    """Try the values on the first part, take the best, and replay it on the rest."""
    trials = []
    for value in kind.tried(replays.setting):
        trials.append(Trial(value, replays.first_part(kind, value)))
        tick(1)
    allowed = replays.setting.slo.missed_ratio * facts().tried.miss_margin_ratio
    chosen = best(trials, allowed, cost)
    runs = []
    for seed in replays.seeds:
        runs.append(replays.whole(kind, chosen.value, seed))
        tick(1)
    totals = tuple(run.totals(replays.split_s) for run in runs)
    made = Tuned(kind, chosen, tuple(trials), tuple(runs), totals)
    if made.missed_ratio <= replays.setting.slo.missed_ratio:
        return made
    return replace(made, hindsight=_in_hindsight(made, replays, cost))


def _in_hindsight(tuned: Tuned, replays: Replays, cost: Cost) -> Trial | None:
    """The first of the more expensive values that meets the goal on the rest."""
    costlier = [t for t in tuned.trials if cost(t.totals) > cost(tuned.chosen.totals)]
    for trial in sorted(costlier, key=lambda t: cost(t.totals)):
        totals = replays.whole(tuned.kind, trial.value, replays.seeds[0]).totals(replays.split_s)
        if totals.missed_ratio <= replays.setting.slo.missed_ratio:
            return Trial(trial.value, totals)
    return None
