"""Batches, totals, ranks, places and lines: the parts of the meter that need no torch."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import observed

from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.script import Board
from gpuledger.encode import plain
from gpuledger.training.meter.device import Energy, identify, loader_facts
from gpuledger.training.meter.events import PHASES, StepTimes
from gpuledger.training.meter.observed import Identity, Work
from gpuledger.training.meter.report import compare
from gpuledger.training.meter.sites import Sites, user_line, waiting_calls
from gpuledger.training.meter.totals import BatchSize, Totals, batch_size, by_formula, together
from gpuledger.units import MS_PER_HOUR, Unknown


def step(index=0, **ms):
    spent = {p: ms.get(p, 0.0) / 1000 for p in PHASES}
    return StepTimes(index, spent, spent)


def test_tokens_are_found_by_name_or_by_kind():
    ids = np.zeros((4, 128), dtype=np.int64)
    assert batch_size({"labels": ids[:, :3], "input_ids": ids}).tokens == 512
    assert batch_size([ids, ids]).tokens == 512
    assert (batch_size([ids]).samples, batch_size([ids]).sequence) == (4, 128)
    image = np.zeros((16, 3, 8, 8), dtype=np.float32)
    assert (batch_size((image, ids[0])).samples, batch_size((image, ids[0])).tokens) == (16, None)
    assert batch_size(None) == BatchSize()
    assert batch_size((image,), tokens=99).tokens == 99
    assert batch_size((image,)).bytes == image.nbytes


def test_two_batches_of_one_step_add_up():
    ids = np.zeros((4, 8), dtype=np.int64)
    both = together(together(BatchSize(), batch_size([ids])), batch_size([ids]))
    assert (both.samples, both.tokens) == (8, 64)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=50))
def test_means_and_percentiles(times):
    totals = Totals()
    for i, ms in enumerate(times):
        totals.size(i, BatchSize(samples=2, tokens=2 * ms))
        totals.took(step(i, forward=float(ms)))
    spread = totals.step_seconds()
    assert spread.mean == pytest.approx(sum(times) / len(times) / 1000)
    assert min(times) / 1000 <= spread.p10 <= spread.median <= spread.p90 <= max(times) / 1000
    assert totals.tokens_per_step == pytest.approx(2 * sum(times) / len(times))


def test_spans_are_cut_by_the_hour_and_carry_the_work():
    totals = Totals()
    begin = MS_PER_HOUR - 1500
    for i in range(4):
        totals.passed(begin + 1000 * i, begin + 1000 * (i + 1), BatchSize(samples=4, tokens=100 * (i + 1)))
    work = Work(3e12, 4e12, 1e12, "counted", tokens=100, samples=4)
    first, second = totals.spans(work)
    assert (first.start_ms, first.end_ms, first.steps) == (begin, begin + 2000, 2)
    assert first.tflop == pytest.approx(3 * 4)  # 100 + 200 tokens are three such steps
    assert second.model_tflop == pytest.approx(7 * 3)
    assert totals.spans(Unknown("x"))[0].tflop is None


def test_nothing_timed_is_unknown_not_zero():
    totals = Totals()
    for figure in (totals.step_seconds(), totals.tokens_per_step, totals.samples_per_step):
        assert isinstance(figure, Unknown)


def rank(number, **ms):
    return plain(observed(ms=ms, who=Identity("r", number, 2, f"node{number}")))


def test_the_rank_that_waits_least_is_the_slow_one():
    fast, slow = rank(0, forward=30, backward=70), rank(1, forward=60, backward=40)
    found = compare([slow, fast])
    assert found.slow == 1
    assert found.phase == "forward"
    assert found.behind_ms == pytest.approx(30)
    assert "rank 1 on node1" in found.words


def test_a_rank_that_waits_for_data_is_named_with_its_phase():
    found = compare([rank(0, forward=30, backward=70), rank(1, data_wait=20, forward=30, backward=50)])
    assert (found.slow, found.phase) == (1, "data_wait")


def test_even_ranks_name_nobody():
    assert compare([rank(0, forward=50, backward=50), rank(1, forward=51, backward=49)]).slow is None
    assert compare([rank(0, forward=50)]).slow is None


def test_a_run_has_one_name_for_all_ranks():
    around = {"TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29501"}
    names = {identify(None, None, r, 2, around).run_id for r in range(2)}
    assert len(names) == 1
    assert identify("mine", {"workload": "w"}, 0, 1, {}).labels["workload"] == "w"
    assert identify(None, None, 0, 1, {}).run_id != identify(None, None, 0, 1, {}).run_id
    assert identify(None, None, 0, 1, {"SLURM_JOB_ID": "77"}).run_id == "77"


def test_the_innermost_line_outside_the_library_is_told():
    frame = sys._getframe()
    assert user_line(frame, ("/no/such",)) == (__file__, frame.f_lineno - 0)
    assert user_line(frame, (__file__,))[0] != __file__
    sites = Sites()
    for _ in range(3):
        sites.add("a.py", 1, ".item()", 0.1)
    sites.add("b.py", 2, ".cpu()", 1.0)
    assert [(s.where, s.times) for s in sites.all()] == [("b.py:2", 1), ("a.py:1", 3)]
    assert {"item", "cpu", "torch.cuda.synchronize"} <= {*waiting_calls().tensor, *waiting_calls().module}


def test_a_loader_says_how_it_is_set_up():
    known = loader_facts(SimpleNamespace(num_workers=4, pin_memory=True, prefetch_factor=2))
    assert (known.workers, known.pinned, known.prefetch) == (4, True, 2)
    assert loader_facts([1, 2]).workers is None
    assert isinstance(loader_facts(None), Unknown)


class Steady:
    """A board that draws 500 W."""

    length_s, columns = float("inf"), frozenset({"power_w", "energy_mj", "gpu_util_ratio", "sm_clock_mhz"})

    def level(self, column, _at_s):
        return 500.0 if column == "power_w" else 0.5

    def mean(self, column, _from_s, _to_s):
        return self.level(column, 0.0)

    def energy_mj(self, at_s):
        return 500_000.0 * at_s


def test_joules_are_the_boards_own_counter():
    clock = VirtualClock()
    source = NvmlSource(FakeNvml([Board(Steady(), uuid="GPU-a", gpm=False)], clock))
    energy = Energy("GPU-a", lambda: source)
    energy.begin()
    clock.sleep(10.0)
    assert energy.joules() == pytest.approx(5000.0, rel=0.01)
    energy.close()


def test_a_board_the_driver_does_not_know_has_no_joules():
    source = NvmlSource(FakeNvml([Board(Steady(), uuid="GPU-a", gpm=False)], VirtualClock()))
    energy = Energy("GPU-b", lambda: source)
    energy.begin()
    assert "GPU-b" in energy.joules().why
    assert "not a GPU" in Energy(None).joules().why


def test_without_a_driver_joules_are_not_known():
    def fails():
        raise OSError("no driver")

    energy = Energy("GPU-a", fails)
    energy.begin()
    assert "no driver" in energy.joules().why


def test_a_formula_is_used_where_the_model_is_known():
    work = by_formula("llama-3.1-8b")
    totals = Totals()
    totals.size(0, BatchSize(samples=2, tokens=8192, sequence=4096))
    totals.took(step())
    made = work(totals)
    # 6 FLOP a parameter and token, attention on top: 8.03 B parameters, a sequence of 4096.
    assert 6 * 7.5e9 * 4096 < made.model_flop < 7.5 * 8.03e9 * 4096
    assert made.samples == 1
    assert isinstance(work(Totals()), Unknown)


def test_an_unknown_model_falls_back_and_says_so():
    assert "llama-3.1-8b" in by_formula("lama-3.1-8b").why
