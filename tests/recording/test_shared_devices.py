"""Is the time of a GPU that several processes hold split among them by name? With real processes on a replayed GPU.

A process holds the GPU while a file of its number lies in a folder and it runs, as with a driver: one that has ended
holds nothing, even before its exit code was collected.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import HUNG_S, QuickClock
from gpuledger.devices.replay.doors import boards_from_csv
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.script import Board
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import open_part
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger
from gpuledger.recording.command import CommandRun, run_command
from gpuledger.recording.runs import read_runs
from gpuledger.testing.holding import Holding

DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"
SPEED = 20.0
# 12:00 UTC: the recording lies within one hour.
NOON_S = 1_768_910_400.0

HOLD = "import os, sys, time\ndef hold(gpu): open(os.path.join(gpu, str(os.getpid())), 'w').write('1000')\n"
WAIT = "def wait(file):\n    while not os.path.exists(file): time.sleep(0.005)\n"


@pytest.fixture
def gpu(tmp_path: Path) -> Path:
    """The folder of those who hold the GPU."""
    folder = tmp_path / "gpu"
    folder.mkdir()
    return folder


@contextmanager
def other_process(gpu: Path) -> Iterator[subprocess.Popen[str]]:
    """Another real process that holds the GPU, before, during and after; its input closed, it ends."""
    code = f"{HOLD}\nhold({str(gpu)!r}); print('ready', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def then(clock: QuickClock, gpu: Path, *steps: tuple[int, float, Callable[[], object]]) -> None:
    """Do each step some seconds of the recording after so many processes hold the GPU, one step after the other."""

    def follow() -> None:
        for holders, seconds, step in steps:
            deadline = time.monotonic() + HUNG_S
            while len(Holding(gpu)()) != holders and time.monotonic() < deadline:
                time.sleep(0.002)
            clock.until(clock.monotonic() + seconds)
            step()

    threading.Thread(target=follow, daemon=True).start()


def record_command(
    tmp_path: Path, gpu: Path, clock: QuickClock, code: str, said: list[str] | None = None
) -> CommandRun:
    (board,) = boards_from_csv(DATA)
    source = NvmlSource(FakeNvml([Board(board.script, uuid="GPU-x", pids=Holding(gpu))], clock))
    argv = [sys.executable, "-c", HOLD + WAIT + code]
    tell = (said if said is not None else []).append
    return run_command(argv, tmp_path / "lake", device=source, clock=clock, say=tell, labels={"workload": "mine"})


def owners(lake: Path) -> dict[int, list[str | None]]:
    """The workloads that have a row, by instant."""
    found: dict[int, list[str | None]] = {}
    for part in Lake(lake).manifest().parts:
        with open_part(Lake(lake).path(part)) as file:
            for row in file.read(columns=["at_ms", "workload"]).to_pylist():
                found.setdefault(row["at_ms"], []).append(row["workload"])
    return {t: sorted(found[t], key=str) for t in sorted(found)}


def booked_ms(lake: Path) -> dict[str, int]:
    """Milliseconds of GPU time by workload, as posted."""
    post_lake(Lake(lake), load_thresholds())
    out: Counter[str] = Counter()
    for day in sorted({p.day for p in Lake(lake).manifest().parts}):
        for line in Ledger(Lake(lake)).read("lines", day).to_pylist():
            out[line["workload"]] += line["observed_ms"]
    return dict(out)


def name_of(other: subprocess.Popen[str]) -> str:
    return f"other: {Path(sys.executable).name} (pid {other.pid})"


def test_a_gpu_that_another_process_holds_all_the_time_is_split_with_the_command(tmp_path: Path, gpu: Path) -> None:
    clock, end, said = QuickClock(SPEED, start_s=NOON_S), tmp_path / "end", []
    with other_process(gpu) as other:
        then(clock, gpu, (2, 15.0, end.touch))
        done = record_command(tmp_path, gpu, clock, f"hold({str(gpu)!r}); wait({str(end)!r})", said)
        assert other.poll() is None
    assert done.exit_code == 0
    assert done.notes is not None
    (device,) = done.notes.devices
    assert device.owned
    held = {h.pid: h for h in device.held_by}
    assert not held[other.pid].ours
    assert held[other.pid].memory_bytes == 1000
    assert [h.ours for h in device.held_by if h.pid != other.pid] == [True]
    # Until the command opens the GPU its time is the other's alone; from then on both have a row at every instant.
    name, found = name_of(other), list(owners(tmp_path / "lake").values())
    shared = found.index(["mine", name])
    assert set(map(tuple, found[:shared])) <= {(name,)}
    assert set(map(tuple, found[shared:])) <= {("mine", name), (name,)}
    assert Counter(map(tuple, found))["mine", name] > 100
    ms, seconds = booked_ms(tmp_path / "lake"), done.notes.seconds
    assert set(ms) == {"mine", name}
    assert sum(ms.values()) == pytest.approx(1000 * seconds, abs=300), "the GPU's time is split, not counted twice"
    assert device.run_s == device.shared_s > 13.0
    assert ms["mine"] == pytest.approx(1000 * device.shared_s / 2, abs=500)
    (words,) = [w for w in said if "shared" in w]
    program, percent = Path(sys.executable).name, round(100 * device.shared_s / seconds)
    assert words == (
        f"GPU 0 was shared with {program} (pid {other.pid}) for {percent} % of the run; its time is split evenly"
    )
    assert read_runs(Lake(tmp_path / "lake")) == [done.notes]


def test_when_the_other_leaves_the_rest_is_the_commands_alone(tmp_path: Path, gpu: Path) -> None:
    clock, end = QuickClock(SPEED, start_s=NOON_S), tmp_path / "end"
    with other_process(gpu) as other:
        then(clock, gpu, (2, 8.0, other.kill), (1, 6.0, end.touch))
        done = record_command(tmp_path, gpu, clock, f"hold({str(gpu)!r}); wait({str(end)!r})")
    assert done.notes is not None
    found = owners(tmp_path / "lake")
    alone = [t for t, who in found.items() if who == ["mine"]]
    shared = [t for t, who in found.items() if len(who) == 2]
    assert len(shared) > 50
    assert len(alone) > 30
    assert max(shared) < min(alone)
    ms, (device,) = booked_ms(tmp_path / "lake"), done.notes.devices
    assert set(ms) == {"mine", name_of(other)}
    assert sum(ms.values()) == pytest.approx(1000 * done.notes.seconds, abs=300)
    assert device.run_s - device.shared_s > 4.0
    assert ms["mine"] == pytest.approx(1000 * (device.run_s - device.shared_s / 2), abs=500)


def test_a_child_that_did_the_work_and_ended_before_its_parent_is_the_commands(tmp_path: Path, gpu: Path) -> None:
    """The parent never opens the GPU, and the child is the child of a child that has ended already."""
    clock, end, stop = QuickClock(SPEED, start_s=NOON_S), tmp_path / "end", tmp_path / "stop"
    work = HOLD + WAIT + f"hold({str(gpu)!r}); wait({str(stop)!r})"
    middle = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {work!r}], start_new_session=True)"
    code = f"import subprocess\nsubprocess.run([sys.executable, '-c', {middle!r}])\nwait({str(end)!r})"
    with other_process(gpu) as other:
        then(clock, gpu, (2, 8.0, stop.touch), (1, 6.0, end.touch))
        done = record_command(tmp_path, gpu, clock, code)
    assert done.notes is not None
    (device,) = done.notes.devices
    assert device.owned
    assert [h.ours for h in device.held_by if h.pid != other.pid] == [True]
    ms = booked_ms(tmp_path / "lake")
    assert sum(ms.values()) == pytest.approx(1000 * done.notes.seconds, abs=300)
    assert device.shared_s > 6.0
    assert ms["mine"] == pytest.approx(1000 * device.shared_s / 2, abs=500)
    # When the child has ended the GPU is the other's alone again, although the command still runs.
    found = list(owners(tmp_path / "lake").values())
    assert found[-30:] == [[name_of(other)]] * 30


def test_a_command_shorter_than_a_second_has_its_time(tmp_path: Path, gpu: Path) -> None:
    clock, end = QuickClock(1.0, start_s=NOON_S), tmp_path / "end"
    with other_process(gpu):
        then(clock, gpu, (2, 0.5, end.touch))
        done = record_command(tmp_path, gpu, clock, f"hold({str(gpu)!r}); wait({str(end)!r})")
    assert done.notes is not None
    assert done.notes.devices[0].owned
    assert any(len(who) == 2 for who in owners(tmp_path / "lake").values())
    assert booked_ms(tmp_path / "lake")["mine"] > 0


def test_a_command_that_never_uses_the_gpu_has_none_of_anothers_time(tmp_path: Path, gpu: Path) -> None:
    clock, end, said = QuickClock(SPEED, start_s=NOON_S), tmp_path / "end", []
    with other_process(gpu) as other:
        then(clock, gpu, (1, 5.0, end.touch))
        done = record_command(tmp_path, gpu, clock, f"wait({str(end)!r})", said)
    assert done.notes is not None
    assert not done.notes.devices[0].owned
    assert set(booked_ms(tmp_path / "lake")) == {name_of(other)}
    assert any("was held only by" in w and str(other.pid) in w for w in said)


# The whole tool with a GPU that real processes hold; the second argument is the folder of those who do.
TOOL = """
import sys
from gpuledger.cli.app import run
from gpuledger.recording import record
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.testing.holding import Holding
from gpuledger.devices.replay.doors import boards_from_csv
from gpuledger.devices.replay.script import Board
data, gpu, *args = sys.argv[1:]
(board,) = boards_from_csv(data)
board = Board(board.script, uuid="GPU-x", pids=Holding(gpu))
record.open_device = lambda _spec, clock: NvmlSource(FakeNvml([board], clock))
sys.exit(run(args))
"""


def tool(tmp_path: Path, gpu: Path, *args: str, code: str) -> subprocess.Popen[str]:
    call = [sys.executable, "-c", TOOL, str(DATA), str(gpu), *args, "--", sys.executable, "-c", HOLD + WAIT + code]
    return subprocess.Popen(call, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_audit_around_a_command_is_made_though_another_process_holds_the_gpu(tmp_path: Path, gpu: Path) -> None:
    with other_process(gpu) as other:
        started = tool(
            tmp_path,
            gpu,
            "audit",
            "--lake",
            "lake",
            "--json",
            "--price",
            "4",
            code=f"hold({str(gpu)!r}); time.sleep(3)",
        )
        out, err = started.communicate(timeout=HUNG_S)
    assert started.returncode == 0
    said = json.loads(out)
    assert "problem" not in said, said
    assert "no audit of this run" not in err
    (device,) = said["recording"]["devices"]
    assert device["owned"]
    assert device["shared_s"] > 1.0
    others = [h for h in device["held_by"] if not h["ours"]]
    assert [h["pid"] for h in others] == [other.pid]
    assert f"(pid {other.pid})" in err
    assert "its time is split evenly" in err
    assert any("was shared with" in w for w in said["recording"]["notes"])


def test_two_commands_recorded_at_once_share_the_gpu_by_their_own_names(tmp_path: Path, gpu: Path) -> None:
    """Both recorders write rows of the same GPU into one lake: each names the other's run as it names itself."""
    go = tmp_path / "go"
    code = f"hold({str(gpu)!r}); wait({str(go)!r}); time.sleep(5)"
    plain = ("record", "--json", "--lake", "lake", "--label")
    started = [
        tool(tmp_path, gpu, *plain, f"run_id={n}", "--label", f"workload=w{n}", code=code) for n in ("one", "two")
    ]
    try:
        deadline = time.monotonic() + HUNG_S
        while len(list(gpu.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        go.touch()
        ended = [json.loads(p.communicate(timeout=HUNG_S)[0]) for p in started]
    finally:
        for p in started:
            p.kill()
            p.wait()
    assert [[d["owned"] for d in e["devices"]] for e in ended] == [[True], [True]]
    begin = max(e["started_ms"] for e in ended) + 2000
    end = min(e["ended_ms"] for e in ended) - 1000
    together = [who for t, who in owners(tmp_path / "lake").items() if begin <= t <= end]
    assert len(together) > 10
    assert {frozenset(who) for who in together} == {frozenset({"wone", "wtwo"})}
    ms = booked_ms(tmp_path / "lake")
    assert set(ms) == {"wone", "wtwo"}
    whole = max(e["ended_ms"] for e in ended) - min(e["started_ms"] for e in ended)
    assert sum(ms.values()) <= whole + 300, "no time is counted twice"
    assert ms["wone"] == pytest.approx(ms["wtwo"], rel=0.35)
