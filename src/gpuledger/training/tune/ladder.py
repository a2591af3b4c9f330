"""In what order are settings tried, and which of them stay?

One axis after the other, each choice against the current best, on end-to-end speed. A choice that is faster beyond the
noise and trains the same is kept. One that gained nothing may gain later (a faster model makes the loader the limit),
so axes tried before the last change are tried again until a round changes nothing; axes that are slow to open come
after that. At the end all remaining choices are tried at once, in case only two changes together help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from gpuledger.errors import InputError
from gpuledger.training.tune.choices import Axis, Plan, candidates
from gpuledger.training.tune.duel import PAIRS, Demand, Duel, alternate, compare_curves, duel, finite, gain_of, in_words
from gpuledger.training.tune.settings import Settings
from gpuledger.training.tune.trials import (
    Alone,
    Climb,
    Outcome,
    Reading,
    Step,
    TrialFailed,
    Tried,
    too_large,
)

if TYPE_CHECKING:
    from gpuledger.training.tune.machine import TorchMachine
    from gpuledger.training.tune.torch_trial import TorchTrial

Say = Callable[[str], None]


@dataclass
class Ladder:
    """One climb. `clock` gives seconds; `budget_s` is for all of it, start against winner at the end included.

    `watch` gets the climb so far after each step, as it may be stopped before the end.
    """

    machine: TorchMachine
    plan: Plan
    clock: Callable[[], float]
    budget_s: float = float("inf")
    say: Say = lambda _: None
    watch: Callable[[Climb], None] = lambda _: None
    _steps: list[Step] = field(default_factory=list)
    _kept_at: int = 0
    _notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tried = Tried(self.plan)
        self._tried_at = dict.fromkeys((axis.name for axis in self.plan.axes), -1)

    def climb(self, start: Settings) -> Climb:
        """From the settings of the job to the fastest that train the same."""
        self._begun = self.clock()
        self._top, self._trial = self._open_start(start)
        opened_s = self._opened_s = self.clock() - self._begun
        self._first, self._curve = self._top, tuple(self._trial.curve)
        self.say("start")
        rate = self._start_rate()
        self._windows_s = self._pair_s = self.clock() - self._begun - opened_s
        self._tried.opened(self._top, opened_s)
        self._note(Step("start", "as it is", self._first, "start", reading=_reading(self._trial, rate)))
        quick = [axis for axis in self.plan.axes if not axis.opens_s]
        slow = [axis for axis in self.plan.axes if axis.opens_s]
        for number in range(1, self.plan.max_rounds + 1):
            if self._round(quick, number) and number < self.plan.max_rounds:
                continue
            # Slow axes wait until the others have settled: after one is kept, each trial would be slow to open.
            if not self._round(slow, number) and not self._together(number):
                break
        rates = self._total()
        total = gain_of(*rates, self.plan.p) if rates else None
        return replace(self._so_far(), total=total, side_by_side=(fmean(rates[0]), fmean(rates[1])) if rates else None)

    def _round(self, axes: Sequence[Axis], number: int) -> bool:
        """Walk the axes that were not tried since the last change; whether anything was kept."""
        before = self._top
        for axis in axes:
            if self._tried_at[axis.name] < self._kept_at:
                self._walk(axis, number)
                self._tried_at[axis.name] = len(self._steps)
        return self._top != before

    def _so_far(self) -> Climb:
        spent_s, notes = self.clock() - self._begun, tuple(dict.fromkeys(self._notes))
        return Climb(tuple(self._steps), self._first, self._top, None, spent_s, self.plan.min_gain_ratio, notes)

    def _start_rate(self) -> float:
        try:
            return fmean(self._trial.window(self.plan.window_s) for _ in range(2))
        except TrialFailed as failed:
            self._trial.close()
            raise _cannot_run(failed) from failed

    def _late(self, coming_s: float = 0.0) -> bool:
        """Whether the time left is needed to compare start and winner."""
        return self.clock() - self._begun + coming_s + self._reserve_s() > self.budget_s

    def _reserve_s(self) -> float:
        """Seconds to compare start and winner: building the start again, and the windows of both."""
        compiled = self._first.compile != "off"  # once, not again for settings that share its graph
        again_s = self._tried.opening_s(self._first) if compiled else self._opened_s
        pair_s = (self._windows_s + max(self._windows_s, self._pair_s)) / 2
        return min(again_s + PAIRS[0] * pair_s, self.budget_s / 3)

    def _spent(self, coming_s: float) -> str:
        if self.clock() - self._begun > self.budget_s:
            return f"the budget of {self.budget_s:g} s is spent"
        rest = f"the rest of the budget of {self.budget_s:g} s is for comparing start and winner"
        return rest if self._late() else f"it may take {coming_s:.0f} s, and {rest}"

    def _open_start(self, start: Settings) -> tuple[Settings, TorchTrial | Alone]:
        """The job as it is; where it does not fit, with half the batch and twice the passes, and so on."""
        settings = start
        while True:
            try:
                trial = self.machine.open(settings)
            except TrialFailed as failed:
                if failed.memory and settings.batch % 2 == 0:
                    self._notes.append(f"batch {settings.batch} does not fit: begun at batch {settings.batch // 2}")
                    settings = settings.having({"batch": settings.batch // 2})
                    continue
                raise _cannot_run(failed) from failed
            if finite(trial.curve):
                return settings, trial
            trial.close()
            hint = "lower the learning rate or look for a division by zero; without a curve nothing can be compared"
            problem = f"the loss is not a number within {len(trial.curve)} updates, before anything was changed"
            raise InputError(problem, hint=hint)

    def _walk(self, axis: Axis, number: int) -> None:
        """Try the choices of one axis, until some in a row gain nothing."""
        offered, left_out = candidates(axis, self._top, self.machine.means)
        if number == 1:
            for name, why in left_out.items():
                self._note(Step(axis.name, name, self._top, "left out", why))
        misses, patience = 0, self.plan.patience
        for name, settings in offered.items():
            if self._tried.hopeless(name) or settings == self._top:
                continue
            if axis.parts:
                settings = self._top.having({"batch": settings.batch})  # noqa: PLW2901 - on top of the current best
            outcome = self._try(axis.name, name, settings, number)
            misses = 0 if outcome == "kept" else misses + (outcome == "no gain")
            patience = 1 if outcome == "kept" else patience
            if misses >= patience:
                break

    def _try(self, axis: str, name: str, settings: Settings, number: int) -> Outcome:
        """One setting against the current best."""
        step = Step(axis, name, settings, "refused", round=number)
        # Fewer pairs than the first look needs would show nothing.
        coming_s = self._tried.opening_s(settings) + self.plan.looks[0] * self._pair_s
        if self._late(coming_s):
            return self._note(replace(step, outcome="not tried", why=self._spent(coming_s)))
        self.say(name)
        begun, trial = self.clock(), None
        try:
            trial = self._open(settings)
            opened_s = self.clock() - begun
            self._tried.opened(settings, opened_s)
            step = replace(step, opened_s=opened_s)
            parity = compare_curves(self._curve, trial.curve, self.plan.parity_tolerance_ratio)
            step = replace(step, parity=parity)
            if why := parity.why:
                raise TrialFailed(why)
            if why := too_large(trial, self.machine.memory_bytes, self.plan.memory_margin_ratio):
                raise TrialFailed(why, memory=True)
            found = self._duel(trial)
        except TrialFailed as failed:
            self._tried.refused(name, memory=failed.memory)
            if trial is not None:
                trial.close()
            return self._note(replace(step, why=f"no room in memory: {failed.why}" if failed.memory else failed.why))
        step = replace(step, gain=found.gain, reading=_reading(trial, fmean(found.new_rates)))
        if found.faster:
            self._trial.close()
            self._tried.kept(self._top, settings)
            self._top, self._trial = settings, trial
            self._kept_at = len(self._steps) + 1
            return self._note(replace(step, outcome="kept"))
        trial.close()
        self._tried.gained_nothing(name, found.gain.ratio)
        noisy = found.gain.ratio >= 1 + self.plan.min_gain_ratio
        why = f"too noisy to tell: {in_words(found.gain)}" if noisy else in_words(found.gain)
        if found.cut_short:
            why = f"the budget ended before it was clear: {in_words(found.gain)}"
        return self._note(replace(step, outcome="no gain", why=why))

    def _open(self, settings: Settings) -> TorchTrial | Alone:
        """Next to the current best; where there is room for either but not for both, alternating from then on."""
        if isinstance(self._trial, Alone):
            return Alone(self.machine, settings)
        try:
            return self.machine.open(settings)
        except TrialFailed as failed:
            if not failed.memory:
                raise
        self._trial.close()
        try:
            alone = Alone(self.machine, settings)
        except TrialFailed:
            self._trial = self.machine.open(self._top)
            raise
        self._trial = Alone(self.machine, self._top)
        self._notes.append("no room for two settings at once: each was built again for its windows")
        return alone

    def _duel(self, trial: TorchTrial | Alone) -> Duel:
        plan, old = self.plan, self._trial
        demand, begun = Demand(plan.min_gain_ratio, plan.looks, plan.p), self.clock()
        found = duel(lambda: old.window(plan.window_s), lambda: trial.window(plan.window_s), demand, self._late)
        self._pair_s = (self.clock() - begun) / len(found.old_rates)
        return found

    def _together(self, number: int) -> bool:
        """All that neither gained nor lost by itself, at once: two equal limits must be lifted together."""
        settings, names = self._top, list[str]()
        for axis in self.plan.axes:
            offered, _ = candidates(axis, settings, self.machine.means)
            name = next((n for n, s in offered.items() if self._may_help(axis, settings, n, s)), None)
            if name:
                settings, names = offered[name], [*names, name]
        name = " + ".join(names)
        if len(names) < 2 or self._tried.hopeless(name):
            return False
        self._tried.refused(name)
        return self._try("together", name, settings, number) == "kept"

    def _may_help(self, axis: Axis, now: Settings, name: str, new: Settings) -> bool:
        if not self._tried.harmless(name):
            return False
        if new.workers != now.workers or new.batch != now.batch:
            return new.workers >= now.workers and new.batch >= now.batch
        return not any(s.axis == axis.name and s.outcome == "kept" for s in self._steps)

    def _total(self) -> tuple[list[float], list[float]] | None:
        """Speeds of start and winner, alternating once more, as gains of steps are not simply multiplied."""
        if self._top == self._first:
            self._trial.close()
            return None
        self.say("start against winner")
        try:
            old = self._open(self._first)
        except TrialFailed as failed:
            self._trial.close()
            self._notes.append(f"the start could not be measured again: {failed.why}")
            return None
        window_s, new = self.plan.window_s, self._trial
        try:
            olds, news, failed_in = alternate(
                lambda: old.window(window_s), lambda: new.window(window_s), self.plan.p,
                lambda: self.clock() - self._begun > self.budget_s, TrialFailed,
            )  # fmt: skip
        finally:
            old.close()
            new.close()
        if failed_in is not None:
            self._notes.append(f"start against winner ended early: {failed_in}")
        return (olds, news) if olds else None

    def _note(self, step: Step) -> Outcome:
        self._steps.append(step)
        self.watch(self._so_far())
        return step.outcome


def _cannot_run(failed: TrialFailed) -> InputError:
    hint = "run the job by itself until it trains, then tune it"
    return InputError(f"the job cannot be run as it is: {failed.why}", hint=hint)


def _reading(trial: TorchTrial | Alone, rate: float) -> Reading:
    return Reading(rate, trial.utilization_pct(), trial.peak_bytes)
