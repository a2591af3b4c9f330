"""Does the ladder land near the best of all settings, refuse what it must, and stop when there is nothing to gain?

The machine here is a formula: no torch, no clock, no GPU.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuner_grid import combinations, measure

from gpuledger.errors import InputError
from gpuledger.training.tune.choices import Means, load_plan
from gpuledger.training.tune.ladder import Ladder
from gpuledger.training.tune.settings import Settings
from gpuledger.training.tune.trials import TrialFailed
from gpuledger.units import GIB, Unknown

PLAN = load_plan()
START = Settings(batch=8, accumulate=8)
SMALL = msgspec.structs.replace(PLAN.only(["precision", "loader", "batch", "compile", "fused"]))
CURVE = (4.0, 3.9, 3.8)


@dataclass
class Costs:
    """Milliseconds a sample: loading beside or before the work on the device, and what each setting changes."""

    load: float = 1.0
    compute: float = 1.0
    half: float = 0.3
    tf32: float = 0.5
    per_pass: float = 2.0
    compiled: float = 0.8
    fused: float = 0.98
    sync: float = 0.1
    noise: float = 0.003

    def rate(self, s):
        work = self.compute * {"fp32": 1, "tf32": self.tf32, "bf16": self.half, "fp16": self.half}[s.precision]
        work += self.per_pass / s.batch
        work *= self.compiled if s.compile != "off" else 1
        work *= self.fused if s.fused else 1
        work += self.sync / s.batch if s.logging == "every-step" else 0
        load = self.load / max(1, s.workers)
        return 1000 / (max(work, load) if s.workers else work + load)


@dataclass
class FormulaTrial:
    rate: float
    dice: random.Random
    noise: float
    curve: tuple = CURVE
    peak_bytes: object = field(default_factory=lambda: Unknown("a formula has no memory"))
    open_now: set = field(default_factory=set)

    def window(self, _seconds):
        assert id(self) in self.open_now, "a closed trial cannot run"
        return self.rate * math.exp(self.dice.gauss(0, self.noise))

    def utilization_pct(self):
        return Unknown("a formula has no utilization")

    def close(self):
        self.open_now.discard(id(self))


@dataclass
class FormulaMachine:
    costs: Costs = field(default_factory=Costs)
    means: Means = field(default_factory=lambda: Means(cuda=True, tf32=True, bf16=True, cores=16))
    memory_bytes: object = field(default_factory=lambda: Unknown("a formula has no memory"))
    refuse: object = lambda _settings: None
    curve_of: object = lambda _settings: CURVE
    peak_of: object = lambda _settings: Unknown("a formula has no memory")
    room_for: int = 10
    opened: list = field(default_factory=list)
    open_now: set = field(default_factory=set)
    dice: random.Random = field(default_factory=lambda: random.Random(5))

    def open(self, s):
        failed = self.refuse(s)
        if len(self.open_now) >= self.room_for:
            failed = TrialFailed("no room for another", memory=True)
        self.opened.append(s)
        if failed:
            raise failed
        trial = FormulaTrial(
            self.costs.rate(s), self.dice, self.costs.noise, self.curve_of(s), self.peak_of(s), self.open_now
        )
        self.open_now.add(id(trial))
        return trial


def climb(machine, plan=PLAN, start=START, **more):
    clock = itertools.count()
    found = Ladder(machine, plan, lambda: float(next(clock)), **more).climb(start)
    assert not machine.open_now, "every trial is closed in the end"
    return found


def outcomes(found):
    return {(s.name, s.round): s.outcome for s in found.steps}


def test_it_climbs_as_the_worked_case_does():
    found = climb(FormulaMachine())
    assert [s.name for s in found.kept][:4] == ["as it is", "8 workers", "batch 64", "bf16"]
    assert "torch.compile" in [s.name for s in found.kept]
    assert found.winner.effective_batch == START.effective_batch == 64
    assert found.winner.compile == "default"
    assert found.total.low > 3
    for step in found.kept[1:]:
        assert step.gain.low > 1
        assert step.gain.ratio >= 1 + PLAN.min_gain_ratio


def test_what_gains_only_later_is_tried_again():
    """The device is the limit at first: more workers gain nothing until bf16 is there."""
    machine = FormulaMachine(Costs(load=4, compute=1, half=0.1, per_pass=0.0, sync=0, compiled=1, fused=1))
    found = climb(machine, start=Settings(batch=64, workers=8, pin=True, prefetch=4))
    told = outcomes(found)
    assert told["16 workers", 1] == "no gain"
    assert told["bf16", 1] == "kept"
    assert told["16 workers", 2] == "kept"


def test_a_precision_that_only_slowed_small_passes_is_tried_again_on_large_ones():
    """Launches are the limit of small passes, and autocast adds to them: bf16 measured there says nothing of batch 64.
    With room for batch 64 only in bf16, the batch is not given up for good either."""

    class Launches(Costs):
        def rate(self, s):
            launches, work = (1.3 if s.precision == "bf16" else 1) * 10 / s.batch, {"bf16": 0.1}.get(s.precision, 0.6)
            return 1000 / max(launches, work)

    plan = PLAN.only(["precision", "batch"])
    precision_first = msgspec.structs.replace(plan, axes=tuple(reversed(plan.axes)))
    found = climb(FormulaMachine(Launches()), precision_first)
    assert outcomes(found)["bf16", 1] == "no gain"
    assert next(s for s in found.steps if s.name == "bf16").gain.ratio < PLAN.hopeless_ratio
    assert (found.winner.precision, found.winner.batch) == ("bf16", 64)

    def refuse(s):
        return TrialFailed("CUDA out of memory", memory=True) if s.batch > 32 and s.precision != "bf16" else None

    found = climb(FormulaMachine(Launches(), refuse=refuse), plan)
    assert outcomes(found)["batch 64", 1] == "refused"
    assert (found.winner.precision, found.winner.batch) == ("bf16", 64)


def test_what_is_slow_to_open_waits_until_the_rest_has_settled():
    found = climb(FormulaMachine())
    compiled = [s.settings.compile != "off" for s in found.steps if s.outcome in ("kept", "no gain")]
    assert sum(compiled) >= 1
    first = compiled.index(True)
    assert not any(compiled[:first])
    before = [s for s in found.steps if s.outcome == "kept"][:-1]
    assert {"loader", "batch", "precision"} <= {s.axis for s in before}


def test_where_two_limits_are_equal_only_both_together_help():
    """Loading and computing take equally long, beside each other: neither more workers nor bf16 gains alone."""
    machine = FormulaMachine(
        Costs(load=8, compute=1, half=0.5, per_pass=0.0, sync=0, compiled=1, fused=1, noise=0.0005)
    )
    found = climb(
        machine, PLAN.only(["loader", "precision"]), start=Settings(batch=64, workers=8, pin=True, prefetch=4)
    )
    assert outcomes(found)["16 workers", 1] == outcomes(found)["bf16", 1] == "no gain"
    assert found.kept[-1].name == "16 workers + bf16"
    assert found.total.low > 1.9


def test_an_already_tuned_job_gains_nothing():
    tuned = Settings(
        precision="bf16", workers=8, pin=True, prefetch=4, batch=64, logging="async", compile="default", fused=True
    )
    found = climb(FormulaMachine(Costs(load=0.1)), start=tuned)
    assert not found.gained
    assert found.total is None
    assert found.winner == found.start == tuned


def test_a_setting_that_changes_the_loss_is_refused_and_named():
    machine = FormulaMachine(curve_of=lambda s: (4.0, 3.9, 3.2) if s.precision == "bf16" else CURVE)
    found = climb(machine)
    (step,) = [s for s in found.steps if s.name == "bf16"]
    assert step.outcome == "refused"
    assert "the loss at update 3 is 3.2 where it was 3.8" in step.why
    assert found.winner.precision == "tf32"


def test_a_setting_that_raises_or_has_no_number_is_passed_over():
    def refuse(s):
        return TrialFailed("BackendCompilerFailed: no compiler") if s.compile != "off" else None

    curve_of = lambda s: (4.0, math.nan, 3.8) if s.precision == "bf16" else CURVE  # noqa: E731
    found = climb(FormulaMachine(refuse=refuse, curve_of=curve_of))
    why = {s.name: s.why for s in found.steps if s.outcome == "refused"}
    assert why["torch.compile"] == "BackendCompilerFailed: no compiler"
    assert why["bf16"] == "the loss is nan at update 2"
    assert found.gained


def test_a_batch_without_room_or_margin_is_refused_and_the_next_smaller_tried():
    def refuse(s):
        return TrialFailed("CUDA out of memory", memory=True) if s.batch > 32 else None

    machine = FormulaMachine(refuse=refuse, peak_of=lambda s: s.batch * GIB, memory_bytes=33 * GIB)
    found = climb(machine)
    why = {s.name: s.why for s in found.steps if s.outcome == "refused"}
    assert why["batch 64"] == "no room in memory: CUDA out of memory"
    assert why["batch 32"] == "no room in memory: a step takes 32.0 GiB of 33.0: less than 10% would be left over"
    assert found.winner.batch == 16
    assert found.winner.accumulate == 4


def test_where_there_is_room_for_one_setting_only_they_take_turns():
    found, wide = climb(FormulaMachine(room_for=1)), climb(FormulaMachine())
    assert found.winner == wide.winner
    assert found.total.low > 3
    assert found.notes == ("no room for two settings at once: each was built again for its windows",)


def test_a_start_that_does_not_fit_is_begun_smaller():
    machine = FormulaMachine(refuse=lambda s: TrialFailed("no room", memory=True) if s.batch > 2 else None)
    found = climb(machine)
    assert (found.start.batch, found.start.accumulate) == (2, 32)
    assert found.notes == ("batch 8 does not fit: begun at batch 4", "batch 4 does not fit: begun at batch 2")


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (
            FormulaMachine(refuse=lambda _: TrialFailed("ValueError: wrong shape at job.py:7")),
            "wrong shape at job.py:7",
        ),
        (FormulaMachine(curve_of=lambda _: (4.0, math.nan)), "not a number"),
        (FormulaMachine(refuse=lambda _: TrialFailed("no room", memory=True)), "no room"),
    ],
)
def test_a_job_that_cannot_be_run_is_said_plainly(machine, said):
    with pytest.raises(InputError, match=said) as raised:
        climb(machine)
    assert raised.value.hint


def test_noise_that_hides_a_gain_is_said():
    found = climb(FormulaMachine(Costs(noise=0.6)), PLAN.only(["compile"]))
    (step,) = [s for s in found.steps if s.name == "torch.compile"]
    assert step.outcome == "no gain"
    assert not found.gained
    assert "x (" in step.why


def test_nothing_new_is_begun_when_the_budget_is_spent():
    found = climb(FormulaMachine(), budget_s=3)  # each look at the clock is a second
    late = [s for s in found.steps if s.outcome == "not tried"]
    assert late
    assert late[0].why == "the budget of 3 s is spent"
    assert len(found.steps) - len(late) < len(climb(FormulaMachine()).steps)


def test_without_bf16_fp16_is_tried():
    machine = FormulaMachine(means=Means(cuda=True, bf16=False, cores=4))
    found = climb(machine)
    why = {s.name: s.why for s in found.steps if s.outcome == "left out"}
    assert why["bf16"] == "this device has no bf16"
    assert why["8 workers"] == "8 workers need as many cores; there are 4"
    assert found.winner.precision == "fp16"


COSTS = st.builds(
    Costs,
    load=st.floats(0.01, 20),
    compute=st.floats(0.05, 5),
    half=st.floats(0.08, 1.1),
    tf32=st.floats(0.15, 1.05),
    per_pass=st.floats(0, 5),
    compiled=st.floats(0.6, 1.2),
    fused=st.floats(0.85, 1.02),
    noise=st.just(0.002),
)


@settings(deadline=None, max_examples=60)
@given(costs=COSTS, seed=st.integers(0, 10**6))
def test_the_ladder_lands_near_the_best_of_the_grid(costs, seed):
    """Within five percent; the best is known exactly here."""
    machine = FormulaMachine(costs, dice=random.Random(seed))
    found = climb(machine, SMALL)
    best = max(costs.rate(s) for s in combinations(SMALL, START, machine))
    assert costs.rate(found.winner) >= best * 0.95
    assert costs.rate(found.winner) >= costs.rate(START) * 0.999


def test_the_grid_finds_the_best_and_counts_what_was_left_out():
    costs = Costs()
    machine = FormulaMachine(costs)
    clock = itertools.count()
    winner = climb(machine, SMALL).winner
    whole = measure(machine, SMALL, START, winner, lambda: 0.0, 1.0, lambda _: None)
    wanted = combinations(SMALL, START, machine)
    assert whole.whole
    assert len(whole.points) == len(wanted) == len(set(wanted)) == 3 * 3 * 5 * 2 * 2
    assert costs.rate(whole.best) == pytest.approx(max(costs.rate(s) for s in wanted), rel=0.01)
    assert whole.winner_over_best.ratio > 0.95
    part = measure(machine, SMALL, START, winner, lambda: float(next(clock)), 10.0, lambda _: None)
    assert not part.whole
    assert part.possible == len(wanted)
    assert not machine.open_now


def test_the_grid_leaves_out_what_trains_otherwise():
    machine = FormulaMachine(curve_of=lambda s: (9.0, 9.0, 9.0) if s.precision == "bf16" else CURVE)
    found = measure(machine, SMALL, START, START, lambda: 0.0, 1.0, lambda _: None)
    assert found.best.precision != "bf16"
