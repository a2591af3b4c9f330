"""What is the fastest setting of all, measured one by one? The tuner's ladder is judged by it.

Every combination is opened and measured once; the fastest stay open. Then these and the ladder's winner are measured
alternating, because a single window may be lucky, and as often as the time allows, because the best of several is too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from gpuledger.training.tune.choices import Plan, candidates
from gpuledger.training.tune.duel import Gain, compare_curves, gain_of
from gpuledger.training.tune.ladder import Say
from gpuledger.training.tune.machine import TorchMachine as Machine
from gpuledger.training.tune.settings import Settings, in_words
from gpuledger.training.tune.torch_trial import TorchTrial as Held
from gpuledger.training.tune.trials import TrialFailed

KEEP_OPEN = 3
TURNS = 4  # for which time is kept
MOST_TURNS = 12
# Fewer give no interval.
LEAST_TURNS = 2


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
        """Whether there was time for every combination."""
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
    machine: Machine, plan: Plan, start: Settings, winner: Settings, clock: Callable[[], float], until: float, say: Say,
    watch: Callable[[tuple[Point, ...], int], None] = lambda _points, _possible: None,
) -> Grid:  # fmt: skip
    """All combinations until the clock shows `until`, the race of the fastest included; those left out are counted.

    `watch` gets the points so far, and how many there are in all, after each of them.
    """
    wanted = combinations(plan, start, machine)
    points: list[Point] = []
    leaders: list[tuple[float, Settings, Held]] = []
    curve: tuple[float, ...] | None = None
    look_s, race_s = 0.0, 0.0
    for settings in wanted:
        if clock() + look_s + race_s > until and leaders:
            break
        say(f"{len(points) + 1} of {len(wanted)}: {in_words(settings)}")
        begun = clock()
        point, trial, window_s = _look(machine, settings, plan.window_s, clock)
        look_s, race_s = max(look_s, clock() - begun), max(race_s, TURNS * (KEEP_OPEN + 1) * window_s)
        points.append(point)
        watch(tuple(points), len(wanted))
        if trial is None or point.samples_per_s is None:
            continue
        if settings == start:
            curve = tuple(trial.curve)
        leaders = sorted([*leaders, (point.samples_per_s, settings, trial)], key=lambda one: -one[0])
        for _, _, slow in leaders[KEEP_OPEN:]:
            slow.close()
        leaders = leaders[:KEEP_OPEN]
    held = {s: trial for _, s, trial in leaders}
    try:
        rates = _race(machine, plan, curve or _curve(machine, start), winner, held, lambda: clock() > until)
    finally:
        for trial in held.values():
            trial.close()
    best = max(rates, key=lambda settings: fmean(rates[settings]))
    over = gain_of(rates[best], rates[winner], plan.p)
    return Grid(tuple(points), len(wanted), best, fmean(rates[best]), fmean(rates[winner]), over)


def _look(
    machine: Machine, settings: Settings, seconds: float, clock: Callable[[], float]
) -> tuple[Point, Held | None, float]:
    """One combination: its point, the trial if it runs, and how long its window took."""
    try:
        trial = machine.open(settings)
    except TrialFailed as failed:
        return Point(settings, None, failed.why), None, 0.0
    begun = clock()
    try:
        return Point(settings, trial.window(seconds)), trial, clock() - begun
    except TrialFailed as failed:
        trial.close()
        return Point(settings, None, failed.why), None, 0.0


def _curve(machine: Machine, start: Settings) -> tuple[float, ...]:
    first = machine.open(start)
    first.close()
    return tuple(first.curve)


def _race(
    machine: Machine, plan: Plan, curve: tuple[float, ...], winner: Settings, held: dict[Settings, Held],
    late: Callable[[], bool],
) -> dict[Settings, list[float]]:  # fmt: skip
    """Alternating speeds of the winner and of the leaders that train as the start does; what fails drops out."""
    racing = {s: t for s, t in held.items() if compare_curves(curve, t.curve, plan.parity_tolerance_ratio).kept}
    if winner not in racing:
        held[winner] = racing[winner] = held.get(winner) or machine.open(winner)
    rates: dict[Settings, list[float]] = {settings: [] for settings in racing}
    for turn in range(MOST_TURNS):
        if turn >= LEAST_TURNS and late():
            break
        for settings in list(racing) if turn % 2 == 0 else list(reversed(racing)):
            try:
                rates[settings].append(racing[settings].window(plan.window_s))
            except TrialFailed:
                if settings == winner:
                    raise
                del racing[settings]
    return {settings: rates[settings] for settings in racing}
