"""Do the with-block and the decorator record, and stay out of the way?"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import pstdev

import pytest

import gpuledger
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import QuickClock, VirtualClock
from gpuledger.devices.replay.doors import boards_from_csv
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import LostGpu
from gpuledger.devices.sampler import Sampler
from gpuledger.errors import DeviceError, FileFault, GpuledgerError, InputError, LakeError, UnknownName
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import open_part
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger
from gpuledger.recording.record import Recording, open_device, record, recorded
from gpuledger.recording.runs import read_runs
from gpuledger.recording.writer import Recorder

DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"
REPLAY = f"replay:{DATA}"
LENGTH_S = 23.95  # 240 ticks: those at 0.0, 0.1, .. 23.9 s


def samples(lake: str | Path) -> list[dict[str, object]]:
    found = Lake(lake)
    rows: list[dict[str, object]] = []
    for part in found.manifest().parts:
        with open_part(found.path(part)) as file:
            rows += file.read().to_pylist()
    return sorted(rows, key=lambda r: (r["gpu_uuid"], r["at_ms"]))


def test_a_block_is_recorded_posted_and_noted(tmp_path: Path) -> None:
    labels = {"workload": "train", "namespace": "ml", "tensor_precision": "bf16"}
    clock, cpu = QuickClock(50.0, lasts_s=LENGTH_S), time.process_time()
    with record(tmp_path, device=REPLAY, labels=labels, clock=clock, environ={}) as run:
        clock.until(LENGTH_S)
    rows = samples(tmp_path)
    assert len(rows) >= 100
    assert pstdev([r["gpu_util_ratio"] for r in rows]) > 0.1
    assert {(r["workload"], r["namespace"], r["run_id"], r["tensor_precision"]) for r in rows} == {
        ("train", "ml", run.run_id, "bf16")
    }
    assert {r["gpu_model"] for r in rows} == {"NVIDIA H200"}
    assert any(r["tensor_ratio"] for r in rows)
    notes = run.notes()
    assert read_runs(Lake(tmp_path)) == [notes]
    assert notes.state == "done"
    assert notes.rows == len(rows)
    assert notes.seconds == pytest.approx(LENGTH_S, abs=0.01)
    assert (notes.ticks, notes.skipped_ticks) == (240, 0)
    assert notes.driver == "NVIDIA 580.159.04"
    assert notes.labels_from["workload"] == "given"
    assert 0 < notes.sampler_cpu_s + notes.writer_cpu_s <= time.process_time() - cpu + 0.01
    assert notes.devices[0].util_period_s == pytest.approx(0.2, abs=0.05)
    assert "nvlink_bytes_per_s" in notes.devices[0].missing
    assert post_lake(Lake(tmp_path), load_thresholds()).samples == len(rows)


def test_a_block_that_fails_keeps_its_error_and_its_samples(tmp_path: Path) -> None:
    clock = QuickClock(50.0)

    def work() -> None:
        with record(tmp_path, device=REPLAY, clock=clock):
            clock.until(5.0)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()
    assert len(samples(tmp_path)) > 20
    assert read_runs(Lake(tmp_path))[0].state == "done"


def test_a_function_is_recorded_at_every_call(tmp_path: Path) -> None:
    clock = QuickClock(50.0)

    @recorded(lake=tmp_path, device=REPLAY, clock=clock)
    def train(steps: int, *, scale: int = 1) -> int:
        """Train."""
        clock.until(clock.monotonic() + 4.0)
        return steps * scale

    assert train(3, scale=2) == 6
    assert train(1) == 1
    assert train.__doc__ == "Train."
    assert len(read_runs(Lake(tmp_path))) == 2
    assert {r["workload"] for r in samples(tmp_path)} == {"train"}


def test_a_bare_decorator_and_a_coroutine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    clock = QuickClock(50.0)

    @recorded(device=REPLAY, clock=clock)
    async def serve() -> str:
        await asyncio.to_thread(clock.until, 4.0)
        return "served"

    assert asyncio.run(serve()) == "served"
    (notes,) = read_runs(Lake("gpuledger-data"))
    assert notes.program == "serve"
    assert notes.seconds >= 4.0, "the work itself is recorded, not the making of the coroutine"

    @recorded
    def plain() -> None: ...

    try:
        open_device("nvml").close()
    except DeviceError:
        with pytest.raises(DeviceError):
            plain()


def test_the_public_names() -> None:
    assert gpuledger.record is record
    assert gpuledger.recorded is recorded


def test_a_lost_gpu_is_noted_and_its_samples_are_there(tmp_path: Path) -> None:
    clock = QuickClock(50.0)
    source = NvmlSource(FakeNvml(boards_from_csv(DATA), clock, [LostGpu(at_s=8.0)]))
    with record(tmp_path, device=source, clock=clock) as run:
        clock.until(12.0)
    (device,) = run.notes().devices
    assert "lost" in device.lost_why
    assert 20 <= device.rows <= 85
    assert any("lost" in w for w in run.notes().words())
    assert len(samples(tmp_path)) == device.rows


def test_the_notes_are_there_from_the_start(tmp_path: Path) -> None:
    recording = Recording(tmp_path, device=REPLAY, clock=QuickClock(20.0), labels={"run_id": "exp 1"}).start()
    raw = json.loads((tmp_path / "runs" / "exp_1.json").read_text())
    assert (raw["state"], raw["run_id"], raw["version"]) == ("running", "exp 1", 1)
    assert raw["ended_ms"] is None
    recording.stop()
    recording.stop()
    assert json.loads((tmp_path / "runs" / "exp_1.json").read_text())["state"] == "done"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"labels": {"namspace": "x"}}, UnknownName),
        ({"labels": {"gpu_uuid": "x"}}, UnknownName),
        ({"labels": {"workload": " "}}, InputError),
        ({"hz": 0}, InputError),
        ({"flush_s": -1}, InputError),
        ({"device": "nvlm"}, UnknownName),
        ({"device": "replay:/does/not/exist.csv"}, FileFault),
    ],
)
def test_wrong_wishes_are_refused_before_anything_runs(tmp_path: Path, wrong: dict[str, object], error: type) -> None:
    with pytest.raises(error) as caught:
        Recording(tmp_path / "lake", **{"device": REPLAY, **wrong})
    assert isinstance(caught.value, GpuledgerError)
    assert caught.value.hint
    assert not (tmp_path / "lake").exists()


def test_a_lake_that_cannot_be_made_is_refused_before_the_block_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GpuledgerError), record(tmp_path / "file" / "lake", device=REPLAY):
        pytest.fail("the block ran")


def test_a_whole_host_claims_nothing(tmp_path: Path) -> None:
    clock = QuickClock(50.0)
    with Recording(tmp_path, device=REPLAY, clock=clock, of_job=False, environ={}) as run:
        clock.until(5.0)
    assert {(r["workload"], r["run_id"]) for r in samples(tmp_path)} == {(None, None)}
    assert run.notes().run_id


def test_a_program_that_never_stops_its_recording_still_keeps_it(tmp_path: Path) -> None:
    code = f"""
from gpuledger.recording.record import Recording
from gpuledger.devices.replay.clock import QuickClock
clock = QuickClock(50.0)
Recording({str(tmp_path)!r}, device={REPLAY!r}, clock=clock).start()
clock.until(6.0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    (notes,) = read_runs(Lake(tmp_path))
    assert notes.state == "done"
    assert notes.rows == len(samples(tmp_path)) > 30


def test_the_books_of_a_recording_are_whole(tmp_path: Path) -> None:
    """Every millisecond is observed, every second's energy is the counter's: repeats left out make no gap."""
    clock, lake = VirtualClock(), Lake(tmp_path)
    source = open_device(REPLAY, clock)
    recorder = Recorder(lake, lambda _f: [{"workload": "w"}])
    report = Sampler(source.devices, recorder.take, clock=clock, on_release=recorder.flush).run(60.0)
    recorder.close()
    post_lake(lake, load_thresholds())
    lines = Ledger(lake).read("lines", "2026-01-20").to_pylist()
    total = {name: sum(line[name] for line in lines) for name in ("observed_ms", "tensor_ms", "engine_ms", "fb_ms")}
    assert report.devices[0].repeats_left_out > 0
    assert total == dict.fromkeys(total, 60_000)
    assert sum(line["energy_ms"] for line in lines) >= 59_900
    assert 0 < sum(line["idle_ms"] + line["wait_1s_ms"] + line["wait_10s_ms"] for line in lines) < 20_000


def broken_close(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    close = recording.recorder.close

    def fails() -> None:
        close()
        raise LakeError("the disk is full", hint="free some space")

    monkeypatch.setattr(recording.recorder, "close", fails)


def test_a_recording_that_cannot_be_finished_says_so_after_a_good_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(tmp_path, device=REPLAY, clock=QuickClock(20.0))
    broken_close(recording, monkeypatch)
    with pytest.raises(LakeError, match="full"), recording:
        pass
    assert read_runs(Lake(tmp_path))[0].state == "done"


def test_and_never_hides_the_error_of_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(tmp_path, device=REPLAY, clock=QuickClock(20.0))
    broken_close(recording, monkeypatch)

    def work() -> None:
        with recording:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        work()
    assert any("disk is full" in note for note in caught.value.__notes__)
