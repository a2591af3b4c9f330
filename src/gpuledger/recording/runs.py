"""What is known about a recording besides its samples?

DIR/runs/<run>.json: who, where, when, what the devices lack and why, what went wrong. Written at the start, every
minute and at the end; a recording that was killed still says `running`.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from pathlib import Path

import msgspec

from gpuledger.devices.attribution import RUN_VARIABLE, environment, lineage
from gpuledger.devices.clock import ClockStep
from gpuledger.devices.reading import DeviceReport
from gpuledger.errors import map_os_error
from gpuledger.lake.json_files import file_name, read_json, write_json
from gpuledger.lake.layout import Lake
from gpuledger.units import some

NOTES_VERSION = 1
NOTES_EVERY_S = 60.0


class Holder(msgspec.Struct, frozen=True):
    """A process that held a device: whether it belongs to the run, and when it was seen.

    `matched`: whether the driver's number could be matched with a process; one that could not may be the run's.
    `here_before`: whether it was listed before the run's command was started.
    `shared_s`: for how long it shared the device with the run. `memory_bytes`: the most it held.
    """

    pid: int
    user: str
    program: str
    ours: bool
    matched: bool = True
    here_before: bool = False
    visible: bool = True
    first_ms: int | None = None
    last_ms: int | None = None
    memory_bytes: int | None = None
    shared_s: float = 0.0

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.program if self.visible else 'a process not visible here'} (pid {self.pid})"


class DeviceNotes(msgspec.Struct, frozen=True):
    """One device of a recording. `owned`: whether any of its time was given to the run.

    `run_s`: for how long it was the run's, `shared_s` of that together with others; `holders_unknown`: why it is not
    known who held it.
    """

    device: str
    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    slice_ratio: float | None
    owned: bool
    rows: int = 0
    repeats_left_out: int = 0
    silent_ticks: int = 0
    util_period_s: float | None = None
    power_period_s: float | None = None
    util_changes: int = 0
    missing: dict[str, str] = {}
    failures: dict[str, int] = {}
    last_errors: dict[str, str] = {}
    slowest_call_ms: dict[str, float] = {}
    lost_at_ms: int | None = None
    lost_why: str = ""
    held_by: tuple[Holder, ...] = ()
    index: int | None = None
    run_s: float = 0.0
    shared_s: float = 0.0
    holders_unknown: str = ""

    @property
    def name(self) -> str:
        """What to call it: the driver's number, where it is known."""
        if self.index is None:
            return self.device
        return f"GPU {self.index}" + (f" instance {self.gpu_instance_id}" if self.gpu_instance_id else "")

    def who_held_it(self, seconds: float) -> list[str]:
        """Who shared the device with the run, and what could not be found out."""
        others = sorted((h for h in self.held_by if h.matched and not h.ours), key=lambda h: -h.shared_s)
        if not self.owned:
            if not others:
                return [f"{self.name} does not belong to this run and has no owner"]
            names = some([h.name for h in others])
            return [f"{self.name} was held only by {names}; none of its time is counted as this run's"]
        out = []
        if shared := [h for h in others if h.shared_s > 0]:
            parts = [f"{h.name} for {_percent(h.shared_s, seconds)} of the run" for h in shared]
            out.append(f"{self.name} was shared with {some(parts)}; its time is split evenly")
        if unmatched := [h for h in self.held_by if not h.matched]:
            numbers = f"process{'es' * (len(unmatched) > 1)} {some([str(h.pid) for h in unmatched])}"
            before = some([str(h.pid) for h in unmatched if h.here_before])
            maybe = f"; {before} held it before the command started, so it may be shared" if before else ""
            out.append(
                f"{self.name}: the driver lists {numbers}, which cannot be matched with the processes visible here "
                f"(a container has its own numbers){maybe}; its whole time is counted as this run's"
            )
        if self.holders_unknown:
            out.append(f"{self.name}: it is not known which processes held it ({self.holders_unknown})")
        return out


class RunNotes(msgspec.Struct, frozen=True, kw_only=True):
    """One recording."""

    version: int = NOTES_VERSION
    run_id: str
    state: str
    started_ms: int
    ended_ms: int | None = None
    host: str = ""
    user: str = ""
    program: str = ""
    exit_code: int | None = None
    driver: str = ""
    hz: float
    slow_s: float
    flush_s: float
    labels: dict[str, str] = {}
    labels_from: dict[str, str] = {}
    devices: tuple[DeviceNotes, ...] = ()
    rows: int = 0
    rows_dropped: int = 0
    ticks: int = 0
    skipped_ticks: int = 0
    clock_steps: tuple[ClockStep, ...] = ()
    sampler_cpu_s: float = 0.0
    writer_cpu_s: float = 0.0
    faults: tuple[str, ...] = ()
    problem: str = ""
    pid: int = 0

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return max(0, (self.ended_ms or self.started_ms) - self.started_ms) / 1000

    def words(self) -> list[str]:
        """What the user should know about it."""
        out = [f"{d.device} was lost: {d.lost_why}" for d in self.devices if d.lost_at_ms is not None]
        out += [words for d in self.devices for words in d.who_held_it(self.seconds)]
        if self.skipped_ticks:
            out.append(f"{self.skipped_ticks} of {self.ticks + self.skipped_ticks} ticks were skipped: a call was slow")
        out += [f"the clock was set by {s.step_s:+g} s; later samples follow it" for s in self.clock_steps]
        if self.rows_dropped:
            out.append(f"{self.rows_dropped} rows were lost: the lake could not be written for too long")
        return [*out, *self.faults, *([self.problem] if self.problem else [])]


def _percent(part: float, whole: float) -> str:
    return f"{min(100.0, 100 * part / whole):.0f} %" if whole > 0 else "all"


def device_notes(
    report: DeviceReport, *, owned: bool, held_by: tuple[Holder, ...], times: tuple[float, float, str]
) -> DeviceNotes:
    """The sampler's report of a device as notes; `times` as Ownership gives them."""
    facts, (run_s, shared_s, holders_unknown) = report.facts, times
    return DeviceNotes(
        device=facts.name,
        gpu_uuid=facts.gpu_uuid,
        gpu_instance_id=facts.gpu_instance_id,
        gpu_model=facts.gpu_model,
        slice_ratio=facts.slice_ratio,
        index=facts.index,
        owned=owned,
        held_by=held_by,
        run_s=run_s,
        shared_s=shared_s,
        holders_unknown=holders_unknown,
        **{name: value for name, value in vars(report).items() if name != "facts"},
    )


def claim(lake: Lake, run_id: str) -> Path:
    """A file of its own for a recording; several recordings of one run each get one."""
    name = file_name(run_id)
    folder = lake.root / "runs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file, numbers = folder / f"{name}.json", itertools.count(2)
        while True:
            with contextlib.suppress(FileExistsError):
                file.touch(0o644, exist_ok=False)
                return file
            file = folder / f"{name}-{next(numbers)}.json"
    except OSError as error:
        raise map_os_error(error, folder, "write the notes of the recording") from error


def write_notes(file: Path, notes: RunNotes, lake: Lake | None = None) -> None:
    """Replace the notes of a recording; of a lake in a bucket also those that recordings of this machine look at."""
    if lake is not None and lake.store.remote:
        write_json(lake.store.here / "runs" / file.name, notes, "the notes of a recording")
    write_json(file, notes, "the notes of a recording")


def labels_of_run(lake: Lake, pid: int, host: str, besides: str) -> dict[str, str] | None:
    """The labels of a recording of this host that goes on now, other than `besides`, to which a process belongs."""
    newest = time.time() - 3 * NOTES_EVERY_S
    ancestors, marked = {s.pid for s in lineage(pid)}, environment(pid).get(RUN_VARIABLE)
    for file in (lake.store.here / "runs").glob("*.json"):
        # Notes that are gone or still empty do not belong to a recording in progress.
        with contextlib.suppress(OSError, msgspec.DecodeError):
            if file.stat().st_mtime < newest:
                continue
            notes = msgspec.json.decode(file.read_bytes(), type=RunNotes)
            here = notes.state == "running" and notes.host == host and "run_id" in notes.labels
            if here and notes.run_id != besides and (notes.run_id == marked or notes.pid in ancestors):
                return notes.labels
    return None


def read_runs(lake: Lake) -> list[RunNotes]:
    """The notes of all recordings of a lake, oldest first."""
    # A recorder that was killed before its first note leaves an empty file.
    files = [file for file in sorted((lake.root / "runs").glob("*.json")) if file.stat().st_size]
    found = [read_json(file, RunNotes, NOTES_VERSION, "the notes of a recording") for file in files]
    return sorted(found, key=lambda n: n.started_ms)
