"""How is a recording or a scenario sampled as if it were a GPU?

source = open_replay("recording.csv.gz")          # a source of devices, to hand to a sampler
api = from_csv("recording.csv.gz", faults=[...])  # an object that answers like pynvml
api = from_scenario(Scenario([...]), gpus=8)

A recording is a CSV file, plain or gzipped, in one of the layouts of layouts/*.toml, or with the schema's own column
names. Holes in a recording are cut out, and the energy that ran on through them with them.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import isnan
from pathlib import Path
from statistics import median

import msgspec

from gpuledger.arguments import takes
from gpuledger.bounds import whole
from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.devices.clock import Clock
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import Fault
from gpuledger.devices.replay.script import Board, Looped, Scenario, Script
from gpuledger.errors import FileFault
from gpuledger.telemetry.unpacking import open_plain, unreadable

HOLE_STEPS = 8
_OWN = "at_ms"
RECORDING_MIB = 64  # its rows are held as text, cell by cell


class _Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    column: str
    multiply: float = 1.0
    optional: bool = False


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns of a recording: their names, the schema's column each fills, and the factor to its unit."""

    name: str
    source: str
    gpu_model: str
    time: str
    time_s: float
    columns: tuple[_Column, ...]


@cache
def layouts() -> tuple[Layout, ...]:
    """The layouts that are known."""
    folder = data_dir(__package__, "layouts")
    return tuple(load_toml(f, Layout) for f in sorted(folder.iterdir(), key=lambda f: f.name))


class Tape(Script):
    """The recorded readings of one device, from 0 on."""

    def __init__(self, times_s: list[float], columns: dict[str, list[float | None]]) -> None:
        self._times, self._values = times_s, columns
        self._sums: dict[str, tuple[list[float], list[float]]] = {}
        self.length_s = times_s[-1] - times_s[0]
        self.columns = frozenset(columns)

    def __len__(self) -> int:
        return len(self._times)

    def _place(self, at_s: float) -> int:
        return max(0, bisect_right(self._times, at_s) - 1)

    def level(self, column: str, at_s: float) -> float | None:
        """The last reading at or before an instant."""
        values = self._values.get(column)
        return values[self._place(at_s)] if values else None

    def mean(self, column: str, from_s: float, to_s: float) -> float | None:
        """A reading's mean over a time; each recorded mean covers the time since the row before it."""
        if column not in self._values or to_s <= from_s:
            return None
        if column not in self._sums:
            self._sums[column] = self._integrate(self._values[column])
        (area_a, known_a), (area_b, known_b) = (self._until(column, t) for t in (from_s, to_s))
        if known_b - known_a < 0.5 * (min(to_s, self._times[-1]) - from_s) or known_b <= known_a:
            # Past the end the last reading stays.
            return self._values[column][-1] if from_s >= self._times[-1] else None
        return (area_b - area_a) / (known_b - known_a)

    def _integrate(self, values: list[float | None]) -> tuple[list[float], list[float]]:
        area, known = [0.0], [0.0]
        for i in range(1, len(values)):
            value, step = values[i], self._times[i] - self._times[i - 1]
            area.append(area[-1] + (0.0 if value is None else value * step))
            known.append(known[-1] + (0.0 if value is None else step))
        return area, known

    def _until(self, column: str, at_s: float) -> tuple[float, float]:
        area, known = self._sums[column]
        i = self._place(at_s)
        if i + 1 >= len(self._times):
            return area[i], known[i]
        share = min(1.0, max(0.0, at_s - self._times[i]) / (self._times[i + 1] - self._times[i]))
        return area[i] + share * (area[i + 1] - area[i]), known[i] + share * (known[i + 1] - known[i])

    def energy_mj(self, at_s: float) -> float | None:
        # Straight between its readings.
        values, i = self._values.get("energy_mj"), self._place(at_s)
        if not values or values[i] is None:
            return None
        here, there = values[i], values[min(i + 1, len(values) - 1)]
        if here is None or there is None or i + 1 >= len(self._times):
            return here
        return here + (there - here) * min(1.0, (at_s - self._times[i]) / (self._times[i + 1] - self._times[i]))


def load_tapes(path: str | Path) -> dict[tuple[str, str], Tape]:
    """The devices of a recording by (uuid, model)."""
    path = Path(path)
    try:
        with open_plain(path) as stream:
            rows = list(csv.DictReader(io.StringIO(whole(stream, path, RECORDING_MIB).decode("utf-8-sig"), newline="")))
    except OSError as error:
        raise unreadable(path, error) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFault(path, f"not a recording: {error}", hint="give a CSV file, plain or gzipped") from error
    names = set(rows[0]) if rows else set()
    layout = next((x for x in layouts() if {x.time, *(c.name for c in x.columns if not c.optional)} <= names), None)
    if layout is None and not {_OWN, "gpu_uuid"} <= names:
        known = ", ".join(x.name for x in layouts())
        hint = f"give one of the layouts known ({known}) or the schema's own columns (at_ms, gpu_uuid, ...)"
        raise FileFault(path, "not a recording: it has no columns that are known" if rows else "it is empty", hint=hint)
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        model = layout.gpu_model if layout else row.get("gpu_model", "")
        found.setdefault((row.get("gpu_uuid") or "GPU-replay-0", model), []).append(row)
    try:
        return {who: _tape(some, layout) for who, some in found.items()}
    except ValueError as error:
        raise FileFault(path, f"not a recording: {error}", hint="every cell must be a number or empty") from error


def _tape(rows: list[dict[str, str]], layout: Layout | None) -> Tape:
    if len(rows) < 2:
        raise ValueError("a device has fewer than two rows")
    if layout is None:
        wanted = [
            _Column(n, n) for n in rows[0] if n.endswith(("_ratio", "_w", "_mj", "_mhz", "_c", "_bytes", "_bits", "_s"))
        ]
        times = [float(r[_OWN]) / 1000 for r in rows]
    else:
        wanted = [c for c in layout.columns if c.name in rows[0]]
        times = [float(r[layout.time]) * layout.time_s for r in rows]
    order = sorted(range(len(rows)), key=times.__getitem__)
    columns = {c.column: list(_cells(rows, order, c)) for c in wanted}
    return Tape(*_without_holes([times[i] for i in order], columns))


def _cells(rows: list[dict[str, str]], order: list[int], column: _Column) -> Iterator[float | None]:
    for i in order:
        value = float(rows[i][column.name] or "nan")
        yield None if isnan(value) else value * column.multiply


def _without_holes(
    times: list[float], columns: dict[str, list[float | None]]
) -> tuple[list[float], dict[str, list[float | None]]]:
    """Times from 0 with the holes cut out; the energy counter gains in a hole what one usual step would."""
    usual = median(b - a for a, b in pairwise(times))
    out = [0.0]
    energy, power = columns.get("energy_mj"), columns.get("power_w")
    for i in range(1, len(times)):
        step = times[i] - times[i - 1]
        if step > HOLE_STEPS * usual:
            if energy is not None and (now := energy[i]) is not None and (before := energy[i - 1]) is not None:
                watts = power[i - 1] if power else None
                cut = now - (before + (watts or 0.0) * usual * 1000)
                energy[i:] = [None if e is None else e - cut for e in energy[i:]]
            step = usual
        out.append(out[-1] + max(step, 1e-6))
    return out, columns


# What an H200 does: its utilization counter is refreshed each 0.2 s.
UTIL_PERIOD_S = 0.2


def boards_from_csv(path: str | Path, *, loop: bool = True) -> list[Board]:
    """The devices of a recording, each playing its tape."""
    found = load_tapes(path)
    return [
        Board(Looped(tape) if loop else tape, uuid=uuid, model=model or "unknown model")
        for (uuid, model), tape in found.items()
    ]


def from_csv(
    path: str | Path, *, clock: Clock | None = None, loop: bool = True, faults: Sequence[Fault] = ()
) -> FakeNvml:
    """pynvml, answered from a recording."""
    return FakeNvml(boards_from_csv(path, loop=loop), clock, faults)


def from_scenario(
    scenario: Scenario, *, gpus: int = 1, clock: Clock | None = None, loop: bool = False, faults: Sequence[Fault] = ()
) -> FakeNvml:
    """pynvml, answered from a scenario on some GPUs alike."""
    board = Board(Looped(scenario) if loop else scenario, util_period_s=UTIL_PERIOD_S)
    return FakeNvml([replace(board, uuid=f"GPU-replay-{i}") for i in range(gpus)], clock, faults)


@takes()
def simulated(scenario: Scenario, *, gpus: int = 1, clock: Clock | None = None, loop: bool = True) -> NvmlSource:
    """GPUs that play a scenario, read through the code that reads real GPUs; give it to `record` as its device."""
    return NvmlSource(from_scenario(scenario, gpus=gpus, clock=clock, loop=loop))


def open_replay(path: str | Path, clock: Clock | None = None, faults: Sequence[Fault] = ()) -> NvmlSource:
    """The devices of a recording, read through the code that reads real GPUs."""
    return NvmlSource(from_csv(path, clock=clock, faults=faults))
