"""Does the tuner keep to its time, tell what it has so far, and survive what breaks at the end?

Time here is what opening and windows of a formula take: no torch, no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tuner_grid import combinations, measure

from gpuledger.errors import InputError
from gpuledger.training.tune.choices import Means, load_plan
from gpuledger.training.tune.duel import LEAST_PAIRS, PAIRS
from gpuledger.training.tune.ladder import Ladder
from gpuledger.training.tune.settings import Settings
from gpuledger.training.tune.trials import TrialFailed
from gpuledger.units import Unknown

PLAN = load_plan().only(["precision", "loader", "batch", "fused"])
START = Settings(batch=8, accumulate=8)
OPEN_S, WINDOW_S = 4.0, 1.0


@dataclass
class Slow:
    """A machine on which opening and windows take time; `breaks` says whether the n-th window of a setting fails."""

    now_s: float = 0.0
    stalls_s: float = 0.0  # what each window after the start's two takes longer than those
    breaks: object = lambda _settings, _n: False
    means: Means = field(default_factory=lambda: Means(cuda=True, tf32=True, bf16=True, cores=16))
    memory_bytes: object = field(default_factory=lambda: Unknown("a formula has no memory"))
    open_now: list = field(default_factory=list)
    windows: dict = field(default_factory=dict)

    def clock(self):
        return self.now_s

    def open(self, settings):
        self.now_s += OPEN_S
        made = SlowTrial(self, settings)
        self.open_now.append(made)
        return made


@dataclass(eq=False)
class SlowTrial:
    machine: Slow
    settings: Settings
    curve: tuple = (4.0, 3.9)
    peak_bytes: object = field(default_factory=lambda: Unknown("a formula has no memory"))

    def window(self, _seconds):
        assert self in self.machine.open_now, "a closed trial cannot run"
        self.machine.now_s += WINDOW_S + (self.machine.stalls_s if sum(self.machine.windows.values()) >= 2 else 0)
        done = self.machine.windows[self.settings] = self.machine.windows.get(self.settings, 0) + 1
        if self.machine.breaks(self.settings, done):
            raise TrialFailed("the loader broke")
        s = self.settings
        return (4 if s.precision == "bf16" else 2 if s.precision == "tf32" else 1) * (2 if s.workers else 1) * s.batch

    def utilization_pct(self):
        return Unknown("a formula has no utilization")

    def close(self):
        if self in self.machine.open_now:
            self.machine.open_now.remove(self)


@pytest.mark.parametrize("budget_s", [20, 30, 45, 60, 100, 200])
def test_start_against_winner_is_within_the_budget(budget_s):
    machine = Slow()
    found = Ladder(machine, PLAN, machine.clock, budget_s).climb(START)
    # One opening and one pair may be under way when the time is up.
    assert found.spent_s <= budget_s + OPEN_S + 2 * WINDOW_S
    assert not machine.open_now
    assert found.gained is (found.total is not None)
    if found.total:
        assert LEAST_PAIRS <= found.total.pairs <= PAIRS[0], "no noise here: the first look is enough"


def test_the_climb_so_far_is_told_after_each_step():
    machine, seen = Slow(), []
    found = Ladder(machine, PLAN, machine.clock, watch=seen.append).climb(START)
    assert [len(climb.steps) for climb in seen] == list(range(1, len(found.steps) + 1))
    assert all(climb.steps == found.steps[: len(climb.steps)] for climb in seen)
    assert seen[-1].winner == found.winner
    assert all(climb.total is None and climb.side_by_side is None for climb in seen)
    assert [climb.spent_s for climb in seen] == sorted(climb.spent_s for climb in seen)


def test_a_comparison_the_budget_ends_is_no_gain_and_says_so():
    machine = Slow(stalls_s=4.0)
    # After the start (6 s) there is time for an opening and three pairs as they were; now each takes five times that.
    found = Ladder(machine, PLAN, machine.clock, 40).climb(START)
    cut = [s for s in found.steps if "the budget ended before it was clear" in s.why]
    assert len(cut) == 1
    assert cut[0].outcome == "no gain"
    assert cut[0].gain.pairs < PLAN.looks[0]


def test_what_cannot_be_opened_and_compared_in_time_is_not_begun():
    """A first compilation may take long: the time for comparing start and winner is not spent on it."""
    plan = load_plan().only(["loader", "compile"])
    opens_s = max(axis.opens_s for axis in plan.axes)
    assert opens_s >= 20
    machine = Slow()
    found = Ladder(machine, plan, machine.clock, 60).climb(START)
    assert found.winner.workers
    late = {s.name: s.why for s in found.steps if s.outcome == "not tried"}
    assert late["torch.compile"].startswith(f"it may take {opens_s + 3 * 2 * WINDOW_S:.0f} s, and the rest")
    assert found.total.pairs == PAIRS[0]
    roomy = Slow()
    found = Ladder(roomy, plan, roomy.clock, 200).climb(START)
    assert "torch.compile" not in {s.name for s in found.steps if s.outcome == "not tried"}


def test_an_end_that_breaks_off_keeps_the_pairs_it_had():
    first = Slow()
    whole = Ladder(first, PLAN, first.clock).climb(START)
    last = first.windows[START]
    machine = Slow(breaks=lambda settings, n: settings == START and n == last - 1)
    found = Ladder(machine, PLAN, machine.clock).climb(START)
    assert found.winner == whole.winner
    assert found.total.pairs == PAIRS[0] - 2
    assert "start against winner ended early: the loader broke" in found.notes
    assert not machine.open_now


def test_a_start_that_breaks_in_its_first_window_is_said_plainly():
    machine = Slow(breaks=lambda settings, n: settings == START)
    with pytest.raises(InputError, match="cannot be run as it is: the loader broke"):
        Ladder(machine, PLAN, machine.clock).climb(START)
    assert not machine.open_now


@pytest.mark.parametrize("until_s", [30, 60, 100])
def test_the_race_is_within_the_time_of_the_grid(until_s):
    machine, seen = Slow(), []
    winner = START.having({"precision": "bf16"})
    found = measure(machine, PLAN, START, winner, machine.clock, until_s, lambda _: None, lambda *now: seen.append(now))
    assert machine.now_s <= until_s + OPEN_S
    assert [len(points) for points, _ in seen] == list(range(1, len(found.points) + 1))
    assert seen[-1] == (found.points, found.possible)
    assert not found.whole
    assert not machine.open_now


def test_a_leader_that_breaks_in_the_race_drops_out():
    first = Slow()
    winner = START.having({"fused": True})
    whole = measure(first, PLAN, START, winner, first.clock, 1e9, lambda _: None)
    machine = Slow(breaks=lambda settings, n: settings == whole.best and n == 2)
    found = measure(machine, PLAN, START, winner, machine.clock, 1e9, lambda _: None)
    assert len(found.points) == len(combinations(PLAN, START, machine))
    assert found.best != whole.best
    assert not machine.open_now
