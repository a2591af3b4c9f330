"""Which demand does a table tell: GPUs by time, GPU-hours, a rate of work, or jobs with their length?

Columns are found by the names people use; the plan reports what was read as what. A value holds until the next one, at
most one and a half times the usual step, so a hole in the table is a gap and not zero.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpuledger.bounds import whole
from gpuledger.errors import FileFault, map_os_error, nearest
from gpuledger.plan.capacity.cells import Rows, instants, is_words, length_column, lengths, numbers
from gpuledger.plan.capacity.series import Series
from gpuledger.telemetry.unpacking import open_plain
from gpuledger.units import MS_PER_HOUR, count

TIME = ("time", "timestamp", "ts", "datetime", "date", "hour", "start", "start_time", "submit", "submit_time",
        "submitted", "t_s", "t", "epoch", "window_start_s", "time_s", "time_utc", "day")  # fmt: skip
GPUS = ("gpus", "gpu", "num_gpus", "gpu_count", "gpus_used", "gpus_allocated", "allocated_gpus", "n_gpus", "ngpus",
        "gpus_requested", "gpu_demand", "demand_gpus")  # fmt: skip
GPU_HOURS = ("gpu_hours", "gpu_h", "gpuhours")
RATES = ("demand", "value", "req_per_s", "requests_per_s", "rps", "qps", "rate", "tokens_per_s", "requests", "load")
END = ("end", "end_time", "finished", "finish_time")
NAMES = ("cluster", "pool", "partition", "model", "service", "region", "namespace", "team", "queue", "vc", "name")
CAPACITY = ("capacity", "capacity_gpus", "gpus_total", "total_gpus", "gpus_available", "gpus_installed")
ALL = "all GPUs"
HOLDS = 1.5  # steps
MOST_GPUS = 1e8


@dataclass(frozen=True, eq=False)
class TableDemand:
    """Demand by name, GPUs there where the table has them, and what was read as what."""

    series: tuple[Series, ...]
    capacity: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Columns:
    time: str
    value: str
    name: str | None
    capacity: str | None
    length: str | None
    end: str | None

    @property
    def jobs(self) -> bool:
        """Whether each row is a job."""
        return self.length is not None or self.end is not None


def read_demand(
    path: Path, *, by: str | None = None, per_gpu: float | None = None, today_ms: int | None = None
) -> TableDemand:
    """The demand of a CSV table (also gzipped). `per_gpu`: how much of the value one GPU carries."""
    rows = list(_rows(path))
    if not rows:
        raise FileFault(path, "no row of data", hint="give a table with a time and a number of GPUs in each row")
    columns = _columns(path, rows[0][1], by, per_gpu)
    everything, rows = len(rows), [(line, row) for line, row in rows if row[columns.value].strip()]
    if not rows:
        raise FileFault(path, f"the column {columns.value} is empty", hint="give a number of GPUs in each row")
    times, relative = instants(path, rows, columns.time, today_ms)
    found = numbers(path, rows, columns.value)
    values = _in_gpus(path, rows, columns, found.values, per_gpu)
    named = [str(row[columns.name] or ALL) if columns.name else ALL for _, row in rows]
    ran, unit = _ran(path, rows, columns, times)
    made = [
        _series(name, columns, [(times[i], values[i], ran[i]) for i in mine]) for name, mine in _grouped(named).items()
    ]
    parts = 0 if columns.jobs else len(rows) - len(set(zip(named, times, strict=True)))
    notes = _notes(path, columns, per_gpu, relative, everything - len(rows), parts)
    read_as = [f"{columns.length} is the length in {unit}"] if columns.length else []
    if found.commas:
        read_as.append(f"commas of {columns.value} mark {found.commas}")
    return TableDemand(tuple(made), _capacity(path, rows, columns, named), (*notes, *read_as))


def _in_gpus(path: Path, rows: Rows, columns: _Columns, values: list[float], per_gpu: float | None) -> list[float]:
    """The demand of each row, a rate by what one GPU carries of it; more than there are GPUs is refused."""
    rate = columns.value not in (*GPUS, *GPU_HOURS) and per_gpu is not None
    out = [v / per_gpu for v in values] if rate and per_gpu is not None else values
    for (line, row), gpus in zip(rows, out, strict=True):
        if gpus > MOST_GPUS:
            problem = f"line {line}: {columns.value} is {row[columns.value]}"
            hint = "check the unit, or how much of it one GPU carries" if rate else "give a number of GPUs"
            raise FileFault(path, f"{problem}: more than {MOST_GPUS:,.0f} GPUs", hint=hint)
    return out


def _ran(path: Path, rows: Rows, columns: _Columns, times: Sequence[int]) -> tuple[list[int], str]:
    """How long the job of each row ran, in milliseconds, and the unit of a column of lengths."""
    if columns.length:
        return lengths(path, rows, columns.length, times)
    if not columns.end:
        return [0] * len(rows), ""
    last, out = max(times), []
    for (line, row), start in zip(rows, times, strict=True):
        over = row[columns.end].strip()
        out.append((instants(path, [(line, row)], columns.end, None)[0][0] if over else last) - start)
        if out[-1] < 0:
            raise FileFault(path, f"line {line}: {columns.end} is before {columns.time}", hint="swap the two columns")
    return out, ""


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with their line numbers, columns in lower case."""
    try:
        with open_plain(path) as stream:
            text = whole(stream, path).decode("utf-8-sig")
            first, _, _ = text.partition("\n")
            reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
            for row in reader:
                if any(v not in (None, "") for v in row.values()):
                    yield reader.line_num, {str(k).strip().lower(): v or "" for k, v in row.items() if k is not None}
    except OSError as error:
        raise map_os_error(error, path, "read the demand") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFault(path, f"not a CSV table: {error}", hint="save it as CSV in UTF-8") from error


def _columns(path: Path, row: Mapping[str, str], by: str | None, per_gpu: float | None) -> _Columns:
    there = list(row)

    def first(known: Sequence[str]) -> str | None:
        return next((name for name in known if name in there), None)

    def counted(known: Sequence[str]) -> str | None:
        """A column of this name that has numbers: `gpu` may as well be the GPU's model."""
        return next((name for name in known if name in there and not is_words(row[name])), None)

    time, value = first(TIME), counted((*GPUS, *GPU_HOURS)) or counted(RATES)
    if time is None:
        raise FileFault(path, f"no column with the time among {', '.join(there)}", hint=f"name it {TIME[0]}")
    if value is None and (words := first((*GPUS, *GPU_HOURS, *RATES))):
        problem = f"the column {words} has {row[words]!r} where the demand is expected"
        raise FileFault(path, problem, hint=f"give numbers, or name the column with the demand {GPUS[0]}")
    if value is None:
        raise FileFault(path, f"no column with the demand among {', '.join(there)}", hint="name it gpus or gpu_hours")
    if value in RATES and per_gpu is None:
        hint = f"say how much of it one GPU carries: per_gpu=40, or name the column {GPUS[0]} if it counts GPUs"
        raise FileFault(path, f"the column {value} is not a number of GPUs", hint=hint)
    if by is not None and by not in there:
        close = nearest(by, there, 1)
        hint = f"did you mean {close[0]}?" if close else f"columns: {', '.join(there)}"
        raise FileFault(path, f"no column is called {by}", hint=hint)
    return _Columns(time, value, by or first(NAMES), first(CAPACITY), length_column(there), first(END))


def _grouped(names: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        found.setdefault(name, []).append(i)
    return dict(sorted(found.items()))


def _series(name: str, columns: _Columns, rows: Sequence[tuple[int, float, int]]) -> Series:
    if columns.jobs:
        return _of_jobs(name, rows)
    added: dict[int, float] = {}
    for when, amount, _ in rows:  # rows of one time and name are parts of one demand
        added[when] = added.get(when, 0.0) + amount
    at = np.array(sorted(added), dtype=np.int64)
    value = np.array([added[int(t)] for t in at])
    step = int(np.median(np.diff(at))) if len(at) > 1 else MS_PER_HOUR
    if columns.value in GPU_HOURS:
        value = value * MS_PER_HOUR / step
    holds = np.minimum(np.append(np.diff(at), step), round(HOLDS * step))
    return _over_hours(name, at, at + holds, value, gaps=True)


def _of_jobs(name: str, rows: Sequence[tuple[int, float, int]]) -> Series:
    """GPUs taken by jobs, from the first start to the last: an hour without a job between them is zero."""
    at = np.array([t for t, _, _ in rows], dtype=np.int64)
    made = _over_hours(name, at, at + np.array([n for _, _, n in rows]), np.array([v for _, v, _ in rows]), gaps=False)
    hours = max(1, int(at.max() // MS_PER_HOUR - at.min() // MS_PER_HOUR))
    return Series(name, made.start_ms, made.values[:hours])


def _over_hours(name: str, start: np.ndarray, end: np.ndarray, value: np.ndarray, *, gaps: bool) -> Series:
    """The mean of each hour over the stretches that reach into it; with `gaps` an hour mostly without one is one."""
    first = int(start.min()) // MS_PER_HOUR
    hours = max(1, -(-int(end.max()) // MS_PER_HOUR) - first)
    total = np.maximum(0.0, _by_hour(start, end, value, first, hours))
    if not gaps:
        return Series(name, first * MS_PER_HOUR, total)
    held = _by_hour(start, end, np.ones(len(value)), first, hours)
    seen = held >= 0.5
    return Series(name, first * MS_PER_HOUR, np.divide(total, held, out=np.full(hours, np.nan), where=seen))


def _by_hour(start: np.ndarray, end: np.ndarray, value: np.ndarray, first: int, hours: int) -> np.ndarray:
    """Value x hours of all stretches in each hour from the first on."""
    # A stretch adds its value from the hour after its start on, and in the hour of its start a part of it; its end
    # takes the same away. Whole hours are never multiplied by their time, so that none is lost to rounding.
    part, level = np.zeros(hours + 1), np.zeros(hours + 2)
    for at, rate in ((start, value), (end, -value)):
        hour, into_ms = np.divmod(at - first * MS_PER_HOUR, MS_PER_HOUR)
        np.add.at(part, hour, rate * (1 - into_ms / MS_PER_HOUR))
        np.add.at(level, hour + 1, rate)
    return (part + np.cumsum(level)[:-1])[:hours]


def _capacity(path: Path, rows: Rows, columns: _Columns, named: Sequence[str]) -> dict[str, int]:
    """GPUs there by name: the last row that has them."""
    if columns.capacity is None:
        return {}
    given = [(at, name) for at, name in zip(rows, named, strict=True) if at[1][columns.capacity].strip()]
    there = numbers(path, [at for at, _ in given], columns.capacity).values
    return {name: round(gpus) for (_, name), gpus in zip(given, there, strict=True)}


def _notes(
    path: Path, columns: _Columns, per_gpu: float | None, relative: bool, empty: int, parts: int
) -> Iterator[str]:
    named = f", one series per {columns.name}" if columns.name else ""
    what = "jobs, each from its start for its length" if columns.jobs else "demand over time"
    yield f"{path.name}: {columns.time} is the time (UTC), {columns.value} the demand{named}; read as {what}"
    if columns.value not in (*GPUS, *GPU_HOURS):
        yield f"one GPU carries {per_gpu:g} of {columns.value}"
    if relative:
        yield f"{columns.time} counts seconds from a start that the table does not give: it is taken to end today"
    if empty:
        yield f"{count(empty, 'row')} without a value left out: gaps, not zero"
    if parts:
        same = "time and name" if columns.name else "time"
        hint = "remove rows that are there twice, or name the column that tells series apart"
        yield f"{count(parts, 'row')} added to an earlier row of the same {same}: {hint}"
    if columns.capacity:
        yield f"{columns.capacity} is the number of GPUs there"
