"""Does calibrate measure, keep, say what is missing, and do the statements use it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from gpuledger.errors import DeviceError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.store import Ledger
from gpuledger.training.calibrate import Job
from gpuledger.units import Unknown

H100 = "NVIDIA H100 80GB HBM3"


class Bench:
    """A board that reaches 500 TFLOPS in bf16 and nothing else."""

    made_with: ClassVar = {"torch": "2.11.0"}

    def __init__(self, uuid: str, model: str = H100) -> None:
        self.gpu_uuid, self.gpu_model = uuid, model

    def product(self, kind):
        flop = 2.0 * kind.n**3
        if kind.name != "bf16":
            return Unknown("not on this board")
        return Job(flop, kind.n, lambda times, meanwhile: meanwhile() or times * flop / 500e12)

    def copy(self):
        return Job(2e9, 1, lambda times, _meanwhile: times * 1e-3)

    def power_w(self):
        return 80.0

    def strangers(self):
        return ""

    def hold(self):
        pass

    def wait(self, seconds):
        pass


class Driver:
    """Where the boards are."""

    def close(self):
        pass


@pytest.fixture
def boards(monkeypatch):
    """Set which boards are there."""
    found: list[Bench] = []
    monkeypatch.setattr("gpuledger.training.runtime.need_torch", lambda _what: None)
    monkeypatch.setattr("gpuledger.devices.nvml.NvmlSource", Driver)
    monkeypatch.setattr("gpuledger.training.torch_bench.open_benches", lambda _source, _torch: found)
    return found


def test_into_the_lake(cli, boards):
    boards += [Bench("GPU-a"), Bench("GPU-b")]
    said = cli("calibrate", "--lake", "lake", "--seconds", "1", "--json").json()
    assert [g["gpu_uuid"] for g in said["gpus"]] == ["GPU-a", "GPU-b"]
    first = said["gpus"][0]
    assert first["tflops"]["bf16"]["tflops"]["median"] == pytest.approx(500)
    assert first["file"] == "lake/calibration/GPU-a.json"
    assert first["not_measured"]["tflops.fp8"] == "not on this board"
    kept = json.loads(Path(first["file"]).read_text())
    assert kept == {k: v for k, v in first.items() if k != "file"}


def test_on_the_screen(cli, boards):
    boards.append(Bench("GPU-a"))
    ended = cli("calibrate", "--lake", "lake", "--seconds", "1")
    assert ended.code == 0
    for text in (H100, "bf16", "500.0", "memory bandwidth", "2.00", "power at rest", "not on this board", "next: "):
        assert text in ended.out


def test_into_a_file(cli, boards):
    boards.append(Bench("GPU-a"))
    assert cli("calibrate", "--out", "one.json", "--seconds", "1", "-q").out == ""
    assert json.loads(Path("one.json").read_text())["gpu_uuid"] == "GPU-a"
    assert not Path("gpuledger-data").exists()
    boards.append(Bench("GPU-b"))
    ended = cli("calibrate", "--out", "two.json")
    assert ended.code == 2
    assert "CUDA_VISIBLE_DEVICES" in ended.err
    assert not Path("two.json").exists()


def test_statements_use_it_from_then_on(cli, boards, fleet_parquet):
    cli("import", fleet_parquet, "--lake", "lake")
    before = cli("analyze", "--lake", "lake", "--json").json()
    assert before["fleet"]["rfu_measured_pct"] is None
    boards += [Bench(g["gpu_uuid"], g["gpu_model"]) for g in before["per_gpu"]]
    assert cli("calibrate", "--lake", "lake", "--seconds", "1").code == 0
    books = Ledger(Lake("lake")).manifest()
    after = cli("analyze", "--lake", "lake", "--json", "--achievable", "measured").json()
    assert after["fleet"]["rfu_measured_pct"]["middle"] > 0
    assert after["capacity"]["fleet"]["achievable_tflops"] == pytest.approx(500 * after["gpus"])
    assert Ledger(Lake("lake")).manifest() == books, "a calibration needs no posting"
    assert "RFU by counters, measured" in cli("analyze", "--lake", "lake", "--full").out


def test_a_broken_calibration_is_said(cli, fleet_parquet):
    cli("import", fleet_parquet, "--lake", "lake")
    Path("lake/calibration").mkdir()
    Path("lake/calibration/GPU-a.json").write_text("{")
    ended = cli("analyze", "--lake", "lake")
    assert ended.code == 2
    assert "GPU-a.json" in ended.err
    assert "calibrate again" in ended.err


def test_no_torch(cli, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    ended = cli("calibrate")
    assert (ended.code, ended.out) == (2, "")
    assert "pip install torch" in ended.err


def test_no_gpu(cli, boards, monkeypatch):
    def refuse():
        raise DeviceError("there is no NVIDIA driver here", hint="install the NVIDIA driver")

    monkeypatch.setattr("gpuledger.devices.nvml.NvmlSource", refuse)
    ended = cli("calibrate", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert json.loads(ended.err)["next"] == "install the NVIDIA driver"


@pytest.mark.parametrize("seconds", ["0", "-3"])
def test_no_time(cli, seconds):
    ended = cli("calibrate", "--seconds", seconds)
    assert ended.code == 2
    assert "above 0" in ended.err
