"""What is the fastest setting of all, measured one by one? The ladder is judged by it.

Every combination is opened and measured once; the fastest stay open. Then these and the ladder's winner are measured in
turns, because a single window may be lucky.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from gpuledger.training.tune.choices import Plan, candidates
from gpuledger.training.tune.duel import Gain, gain_of
from gpuledger.training.tune.ladder import Machine, Say, TrialFailed
from gpuledger.training.tune.parity import compare
from gpuledger.training.tune.settings import Settings, in_words
from gpuledger.training.tune.turns import Held

KEEP_OPEN = 3
TURNS = 4


@dataclass(frozen=True)
class Point:
    """One combination: its speed in the first look, or why it has none."""

    settings: Settings
    samples_per_s: float | None
    why: str = ""


@dataclass(frozen=True)
class Grid:
    """Every combination, the fastest of them, and the speed of the ladder's winner over that of the fastest."""

    points: tuple[Point, ...]
    possible: int
    best: Settings
    best_per_s: float
    winner_per_s: float
    winner_over_best: Gain

    @property
    def whole(self) -> bool:
        """Whether no combination was left out for want of time."""
        return len(self.points) == self.possible


def combinations(plan: Plan, start: Settings, machine: Machine) -> list[Settings]:
    """Each choice of each axis, and the start's own, in every combination."""
    options: list[list[dict[str, object]]] = []
    for axis in plan.axes:
        offered, _ = candidates(axis, start, machine.means)
        options.append([{}, *(start.changed(settings) for settings in offered.values())])
    made = [start.having({k: v for part in parts for k, v in part.items()}) for parts in product(*options)]
    return list(dict.fromkeys(made))


def measure(
    machine: Machine, plan: Plan, start: Settings, winner: Settings, clock: Callable[[], float], until: float, say: Say
) -> Grid:
    """All combinations until the clock shows `until`; those left out then are counted."""
    wanted = combinations(plan, start, machine)
    points: list[Point] = []
    leaders: list[tuple[float, Settings, Held]] = []
    for settings in wanted:
        if clock() > until and leaders:
            break
        say(f"{len(points) + 1} of {len(wanted)}: {in_words(settings)}")
        point, trial = _look(machine, settings, plan.window_s)
        points.append(point)
        if trial is not None and point.samples_per_s is not None:
            leaders = sorted([*leaders, (point.samples_per_s, settings, trial)], key=lambda one: -one[0])
            for _, _, slow in leaders[KEEP_OPEN:]:
                slow.close()
            leaders = leaders[:KEEP_OPEN]
    return _final(machine, plan, start, winner, points, len(wanted), {s: trial for _, s, trial in leaders})


def _look(machine: Machine, settings: Settings, seconds: float) -> tuple[Point, Held | None]:
    try:
        trial = machine.open(settings)
    except TrialFailed as failed:
        return Point(settings, None, failed.why), None
    try:
        return Point(settings, trial.window(seconds)), trial
    except TrialFailed as failed:
        trial.close()
        return Point(settings, None, failed.why), None


def _final(
    machine: Machine, plan: Plan, start: Settings, winner: Settings, points: list[Point], possible: int,
    leaders: dict[Settings, Held],
) -> Grid:  # fmt: skip
    """The leaders that train as the start does, and the winner, in turns."""
    first = machine.open(start)
    curve = tuple(first.curve)
    first.close()
    allowed = plan.parity_tolerance_ratio
    racing = {s: t for s, t in leaders.items() if compare(curve, t.curve, allowed).kept}
    if winner not in racing:
        racing[winner] = machine.open(winner)
    rates: dict[Settings, list[float]] = {settings: [] for settings in racing}
    for turn in range(TURNS):
        for settings in list(racing) if turn % 2 == 0 else reversed(racing):
            rates[settings].append(racing[settings].window(plan.window_s))
    for trial in leaders.values():
        trial.close()
    racing[winner].close()
    best = max(rates, key=lambda settings: fmean(rates[settings]))
    over = gain_of(rates[best], rates[winner], plan.p)
    return Grid(tuple(points), possible, best, fmean(rates[best]), fmean(rates[winner]), over)
