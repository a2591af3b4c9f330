"""Do the loops of a calibration measure what a bench does, say what they cannot, and leave files that are used?"""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import get_gpu
from gpuledger.efficiency.calibration_files import (
    FILE_VERSION,
    BoardCalibration,
    calibration_file,
    load_calibration,
    measured,
    read_board,
    write_board,
)
from gpuledger.errors import InputError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.training.calibrate import REPEATS, Job, calibrate, measure, precisions, rest_power, spread
from gpuledger.units import Unknown

NOW = "2026-03-01T12:00:00+00:00"
SPEED = {"bf16": 700e12, "fp16": 690e12, "tf32": 370e12, "fp32": 50e12, "fp64": 60e12, "int8": 1300e12}
BYTES_PER_S = 4.2e12


class FakeBench:
    """A board whose products take exactly as long as SPEED says, plus a little more for the first of all."""

    def __init__(self, model: str = "NVIDIA H200", uuid: str = "GPU-1", jitter: tuple[float, ...] = (1.0,)) -> None:
        self.gpu_uuid, self.gpu_model, self.made_with = uuid, model, {"torch": "none"}
        self._jitter = itertools.cycle(jitter)
        self.state, self.busy_with, self.now_s, self.released = "idle", "", 0.0, 0

    def _job(self, amount: float, n: int, per_s: float) -> Job:
        fresh = [True]

        def run(times, meanwhile):
            self.state = "busy"
            meanwhile()
            took = times * amount / per_s * next(self._jitter) + (3.0 if fresh.pop() else 0.0)
            fresh.append(False)
            self.now_s += took
            return took

        def release():
            self.released += 1

        return Job(amount, n, run, release)

    def product(self, kind):
        if kind.name not in SPEED:
            return Unknown(f"torch cannot multiply {kind.name} here")
        return self._job(2.0 * kind.n**3, kind.n, SPEED[kind.name])

    def copy(self):
        return self._job(2.0 * 2**32, 2**32, BYTES_PER_S)

    def power_w(self):
        return {"idle": 76.0, "held": 119.0, "busy": 690.0}[self.state]

    def strangers(self):
        return self.busy_with

    def hold(self):
        self.state = "held"

    def wait(self, seconds):
        self.now_s += seconds


@pytest.fixture
def board() -> BoardCalibration:
    return calibrate(FakeBench(), 5, NOW)


def test_every_figure_of_a_known_gpu(board):
    gpu = get_gpu("h200-sxm-141gb")
    for name, per_s in SPEED.items():
        made = board.tflops[name]
        assert made.tflops.median == pytest.approx(per_s / 1e12)
        assert made.tflops.repeats == REPEATS
        assert made.power_w.median == 690
    assert board.tflops["bf16"].peak_tflops == gpu.peak("bf16")
    assert board.tflops["bf16"].of_peak_pct == pytest.approx(100 * 700 / gpu.peak("bf16"))
    assert board.tflops["fp64"].peak_tflops == gpu.peak("fp64_tensor"), "fp64 products run on the tensor pipe"
    assert board.bandwidth_bytes_per_s.median == pytest.approx(BYTES_PER_S)
    assert board.bandwidth_of_peak_pct == pytest.approx(100 * BYTES_PER_S / gpu.memory_bandwidth_bytes_per_s.value)
    assert (board.idle_power_w.median, board.idle_held_power_w.median, board.busy_power_w.median) == (76, 119, 690)
    assert board.not_measured == {"tflops.fp8": "torch cannot multiply fp8 here"}
    assert (board.version, board.as_of, board.gpu_model) == (FILE_VERSION, NOW, "NVIDIA H200")


def test_the_precisions_are_those_torch_has():
    assert [p.name for p in precisions()] == ["bf16", "fp16", "tf32", "fp32", "fp64", "fp8", "int8"]


def test_the_first_run_is_not_counted_and_the_time_is_kept():
    bench = FakeBench()
    rates, _ = measure(bench.product(precisions()[0]), 2.0, bench.power_w)
    assert rates == pytest.approx([SPEED["bf16"]] * REPEATS)
    # 3 s for the first run of all, a fifth for warming up, then the time asked for.
    assert bench.now_s == pytest.approx(3.0 + 2.0 * 1.2, rel=0.05)
    assert bench.released == 1


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=7))
def test_the_spread_holds_every_repeat(jitter):
    rates, _ = measure(FakeBench(jitter=tuple(jitter)).product(precisions()[0]), 1.0, lambda: 1.0)
    found = spread(rates)
    assert found.low <= found.median <= found.high
    assert all(found.low <= r <= found.high for r in rates)
    assert found.high <= SPEED["bf16"] / min(jitter) * (1 + 1e-9)


def test_power_keeps_the_second_half_only():
    bench = FakeBench()
    readings = iter([100.0] * 5 + [600.0] * 5)
    _, watts = measure(bench.product(precisions()[0]), 1.0, lambda: next(readings))
    assert watts == [600.0] * 5


def test_a_board_in_use_has_no_idle_power():
    bench = FakeBench()
    bench.busy_with = "process 7 holds it"
    found = rest_power(bench, 1)
    assert isinstance(found, Unknown)
    assert "process 7" in found.why
    assert calibrate(bench, 1, NOW).idle_power_w is None


def test_a_board_without_power_still_gets_its_tflops():
    bench = FakeBench()
    bench.power_w = lambda: Unknown("this device does not have it")
    made = calibrate(bench, 1, NOW)
    assert made.busy_power_w is None
    assert made.not_measured["busy_power_w"] == made.not_measured["idle_power_w"] == "this device does not have it"
    assert made.tflops["bf16"].power_w is None
    assert made.tflops["bf16"].tflops.median == pytest.approx(700)


def test_an_unknown_gpu_has_no_peak():
    made = calibrate(FakeBench(model="Frobnicator 9000"), 1, NOW)
    assert made.tflops["bf16"].peak_tflops is None
    assert made.tflops["bf16"].of_peak_pct is None
    assert made.bandwidth_of_peak_pct is None
    assert measured(made).precision == "bf16"


@pytest.mark.parametrize("seconds", [0, -1])
def test_no_time_is_refused(seconds):
    with pytest.raises(InputError, match="cannot measure for"):
        calibrate(FakeBench(), seconds, NOW)


def test_files_are_read_back_and_used(tmp_path, board):
    lake = Lake(tmp_path)
    assert load_calibration(lake) is None
    file = write_board(calibration_file(lake, board.gpu_uuid), board)
    assert file == tmp_path / "calibration" / "GPU-1.json"
    assert read_board(file) == board
    other = msgspec.structs.replace(board, gpu_uuid="GPU-2/../x", tflops={})
    write_board(calibration_file(lake, other.gpu_uuid), other)
    assert {f.parent for f in tmp_path.rglob("*.json")} == {tmp_path / "calibration"}
    found = load_calibration(lake)
    first, second = found.of("GPU-1"), found.of(other.gpu_uuid)
    assert (first.achievable_tflops, first.precision) == (pytest.approx(700), "bf16")
    assert (first.bandwidth_bytes_per_s, first.idle_power_w) == (pytest.approx(BYTES_PER_S), 76)
    assert second.achievable_tflops is None


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": "one"}'])
def test_a_broken_file_says_what_to_do(tmp_path, content):
    file = tmp_path / "calibration" / "GPU-1.json"
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(LakeError, match="not a calibration") as caught:
        load_calibration(Lake(tmp_path))
    assert "calibrate again" in caught.value.hint


def test_a_newer_file_asks_for_an_upgrade(tmp_path, board):
    write_board(tmp_path / "calibration" / "x.json", msgspec.structs.replace(board, version=FILE_VERSION + 1))
    with pytest.raises(LakeError, match="newer"):
        load_calibration(Lake(tmp_path))
