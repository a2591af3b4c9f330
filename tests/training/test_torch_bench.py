"""Does the torch side of a calibration find its boards, do the work and tell what it cannot?"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.doors import from_scenario
from gpuledger.devices.replay.script import Scenario, Segment
from gpuledger.errors import DeviceError, MissingExtra
from gpuledger.training import runtime, torch_bench
from gpuledger.training.calibrate import Job, Precision
from gpuledger.training.runtime import need_torch
from gpuledger.training.torch_bench import TorchBench, open_benches
from gpuledger.units import Unknown

IDLE = Scenario([Segment(60.0, power_w=76.0, gpu_util_ratio=0.0)])


class FakeCuda:
    """torch.cuda, as far as finding boards goes."""

    def __init__(self, uuids, there=True):
        self._uuids, self._there = uuids, there

    def is_available(self):
        return self._there

    def device_count(self):
        return len(self._uuids)

    def get_device_properties(self, index):
        return SimpleNamespace(uuid=self._uuids[index]) if self._uuids[index] else SimpleNamespace()


def fake_torch(*uuids, there=True, cuda="13.0"):
    return SimpleNamespace(
        __version__="2.11.0",
        version=SimpleNamespace(cuda=cuda),
        cuda=FakeCuda(uuids, there),
        device=lambda name: SimpleNamespace(type=name.split(":")[0], name=name),
    )


def source(gpus=1, scenario=IDLE):
    return NvmlSource(from_scenario(scenario, gpus=gpus))


def test_boards_are_matched_by_uuid():
    found = open_benches(source(2), fake_torch("replay-1"))
    assert [b.gpu_uuid for b in found] == ["GPU-replay-1"]
    assert found[0].made_with == {"torch": "2.11.0", "cuda": "13.0", "driver": "NVIDIA 580.159.04"}
    assert found[0].gpu_model == "NVIDIA H200"


def test_an_old_torch_without_uuid_is_clear_with_one_gpu_only():
    assert [b.gpu_uuid for b in open_benches(source(1), fake_torch(None))] == ["GPU-replay-0"]
    with pytest.raises(DeviceError, match="no whole GPU in common"):
        open_benches(source(2), fake_torch(None, None))


@pytest.mark.parametrize(("cuda", "words"), [("13.0", "finds no GPU"), (None, "without CUDA")])
def test_torch_without_a_gpu(cuda, words):
    with pytest.raises(DeviceError, match=words) as caught:
        open_benches(source(), fake_torch("replay-0", there=False, cuda=cuda))
    assert "pip install torch" in caught.value.hint


def test_no_torch_names_the_next_step(monkeypatch):
    def absent(_name):
        raise ImportError("No module named 'torch'")

    monkeypatch.setattr(runtime.importlib, "import_module", absent)
    with pytest.raises(MissingExtra) as caught:
        need_torch("timing")
    assert "pip install torch" in caught.value.hint


def test_power_and_strangers_come_from_the_driver():
    (bench,) = open_benches(source(), fake_torch("replay-0"))
    assert bench.power_w() == 76.0
    assert bench.strangers() == ""
    (busy,) = open_benches(source(scenario=Scenario([Segment(60.0, gpu_util_ratio=0.9)])), fake_torch("replay-0"))
    assert "utilization is 90%" in busy.strangers()
    power = busy.power_w()
    assert isinstance(power, Unknown)
    assert "does not have it" in power.why


@pytest.fixture
def on_cpu():
    torch = pytest.importorskip("torch")
    return TorchBench(torch, "cpu", source().devices[0], "NVIDIA 0")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("dtype", "how"), [("float32", "matmul"), ("float32", "matmul_tf32"), ("bfloat16", "matmul"), ("int8", "int_mm")]
)
def test_products_run_and_are_timed(on_cpu, dtype, how):
    before = on_cpu._torch.get_float32_matmul_precision()
    job = on_cpu.product(Precision("x", dtype, how, 64, ()))
    assert isinstance(job, Job)
    heard = []
    assert job.run(3, lambda: heard.append(1)) > 0
    assert (job.amount, job.n, heard) == (2.0 * 64**3, 64, [1])
    assert on_cpu._torch.get_float32_matmul_precision() == before


@pytest.mark.torch
def test_a_product_torch_lacks_is_unknown_with_its_words(on_cpu):
    job = on_cpu.product(Precision("fp4", "float4_of_the_future", "matmul", 64, ()))
    assert isinstance(job, Unknown)
    assert "fp4" in job.why


@pytest.mark.torch
def test_a_copy_counts_bytes_read_and_written(on_cpu, monkeypatch):
    monkeypatch.setattr(torch_bench, "COPY_BYTES", 1 << 20)
    job = on_cpu.copy()
    assert job.amount == 2 << 20
    assert job.run(2, lambda: None) > 0


def test_we_are_no_stranger_to_ourselves_whatever_the_driver_calls_us(monkeypatch):
    (bench,) = open_benches(source(), fake_torch("replay-0"))
    there = [{7}]
    monkeypatch.setattr(bench._board, "processes", lambda: list(there[0]))
    assert bench.strangers() == "process 7 holds it"

    def allocate(*_size, **_how):
        there[0] = {7, 4242}  # our number outside the container

    bench._torch.zeros, bench._torch.uint8 = allocate, None
    bench._torch.cuda.synchronize = lambda _device: None
    monkeypatch.setattr(torch_bench.time, "sleep", lambda _seconds: None)
    bench.hold()
    assert bench.strangers() == "process 7 holds it"
    there[0] = {4242}
    assert bench.strangers() == ""
    there[0] = {8, 9}
    assert bench.strangers() == "processes 8, 9 hold it"


class FakeEvent:
    """An event of a device that needs three looks to finish, and 250 ms."""

    def __init__(self, enable_timing):
        self.looks = 0

    def record(self):
        pass

    def query(self):
        self.looks += 1
        return self.looks > 3

    def elapsed_time(self, _end):
        return 250.0


def test_on_a_gpu_time_is_the_devices_own_and_power_is_read_meanwhile(monkeypatch):
    torch = fake_torch("replay-0")
    torch.cuda.Event = FakeEvent
    torch.cuda.device = lambda _device: contextlib.nullcontext()
    torch.get_float32_matmul_precision, set_to = (lambda: "medium"), []
    torch.set_float32_matmul_precision = set_to.append
    monkeypatch.setattr(torch_bench.time, "sleep", lambda _seconds: None)
    (bench,) = open_benches(source(), torch)
    done, heard = [], []
    run = bench._timed(lambda: done.append(1), True)
    assert run(7, lambda: heard.append(bench.power_w())) == 0.25
    assert (len(done), heard) == (7, [76.0] * 3)
    assert set_to == ["high", "medium"]
