"""Which demand does a table tell: GPUs by time, GPU-hours, a rate of work, or jobs with their length?

Columns are found by the names people use; the plan reports what was read as what. A value holds until the next one, at
most one and a half times the usual step, so a hole in the table is a gap and not zero.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpuledger.errors import FileFault, InputError, map_os_error, nearest
from gpuledger.plan.capacity.series import Series
from gpuledger.times import instant_ms
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S, count

TIME = ("time", "timestamp", "ts", "datetime", "date", "hour", "start", "start_time", "submit", "submit_time",
        "submitted", "t_s", "t", "epoch", "window_start_s", "time_s", "time_utc", "day")  # fmt: skip
GPUS = ("gpus", "gpu", "num_gpus", "gpu_count", "gpus_used", "gpus_allocated", "allocated_gpus", "n_gpus", "ngpus",
        "gpus_requested", "gpu_demand", "demand_gpus")  # fmt: skip
GPU_HOURS = ("gpu_hours", "gpu_h", "gpuhours")
RATES = ("demand", "value", "req_per_s", "requests_per_s", "rps", "qps", "rate", "tokens_per_s", "requests", "load")
DURATION = ("duration", "duration_s", "runtime", "runtime_s", "elapsed", "elapsed_s", "run_time")
END = ("end", "end_time", "finished", "finish_time")
NAMES = ("cluster", "pool", "partition", "model", "service", "region", "namespace", "team", "queue", "vc", "name")
CAPACITY = ("capacity", "capacity_gpus", "gpus_total", "total_gpus", "gpus_available", "gpus_installed")
ALL = "all GPUs"
# Numbers below this are seconds from some start; above it, milliseconds since 1970.
FIRST_EPOCH_S, FIRST_EPOCH_MS = 1e8, 1e11
HOLDS = 1.5  # steps
MOST_HOURS = 24 * 366 * 5


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
    times, relative = _times(path, rows, columns.time, today_ms)
    values = [_number(path, line, columns.value, row[columns.value]) for line, row in rows]
    if columns.value not in (*GPUS, *GPU_HOURS) and per_gpu is not None:
        values = [v / per_gpu for v in values]
    named = [str(row[columns.name] or ALL) if columns.name else ALL for _, row in rows]
    lengths = _lengths(path, rows, columns, times) if columns.jobs else None
    made = [
        _series(name, columns, [(times[i], values[i], lengths[i] if lengths else 0) for i in mine])
        for name, mine in _grouped(named).items()
    ]
    return TableDemand(
        tuple(made),
        _capacity(path, rows, columns, named),
        tuple(_notes(path, columns, per_gpu, relative, everything - len(rows))),
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with their line numbers, columns in lower case."""
    try:
        with (gzip.open(path, "rt", encoding="utf-8-sig", newline="") if path.suffix == ".gz" else
              path.open(encoding="utf-8-sig", newline="")) as file:  # fmt: skip
            first = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, delimiter=max(",;\t", key=first.count))
            for row in reader:
                if any(v not in (None, "") for v in row.values()):
                    yield reader.line_num, {str(k).strip().lower(): v or "" for k, v in row.items() if k is not None}
    except OSError as error:
        raise map_os_error(error, path, "read the demand") from error
    except (UnicodeDecodeError, csv.Error, EOFError) as error:
        raise FileFault(path, f"not a CSV table: {error}", hint="save it as CSV in UTF-8") from error


def _columns(path: Path, row: Mapping[str, str], by: str | None, per_gpu: float | None) -> _Columns:
    there = list(row)

    def first(known: Sequence[str]) -> str | None:
        return next((name for name in known if name in there), None)

    def counted(known: Sequence[str]) -> str | None:
        """A column of this name that has numbers: `gpu` may as well be the GPU's model."""
        return next((name for name in known if name in there and not _is_words(row[name])), None)

    time, value = first(TIME), counted((*GPUS, *GPU_HOURS)) or counted(RATES)
    if time is None:
        raise FileFault(path, f"no column with the time among {', '.join(there)}", hint=f"name it {TIME[0]}")
    if value is None:
        raise FileFault(path, f"no column with the demand among {', '.join(there)}", hint="name it gpus or gpu_hours")
    if value in RATES and per_gpu is None:
        hint = f"say how much of it one GPU carries: per_gpu=40, or name the column {GPUS[0]} if it counts GPUs"
        raise FileFault(path, f"the column {value} is not a number of GPUs", hint=hint)
    if by is not None and by not in there:
        close = nearest(by, there, 1)
        hint = f"did you mean {close[0]}?" if close else f"columns: {', '.join(there)}"
        raise FileFault(path, f"no column is called {by}", hint=hint)
    return _Columns(time, value, by or first(NAMES), first(CAPACITY), first(DURATION), first(END))


def _is_words(text: str) -> bool:
    """Whether a cell is neither empty nor a number."""
    try:
        float(text or "0")
    except ValueError:
        return True
    return False


def _number(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        hint = "give 0 or more; leave the row out where nothing was measured"
        raise FileFault(path, f"line {line}: {column} is {text!r}", hint=hint)
    return value


def _times(
    path: Path, rows: Sequence[tuple[int, Mapping[str, str]]], column: str, today_ms: int | None
) -> tuple[list[int], bool]:
    """Milliseconds since 1970, and whether the table counts from a start of its own: then it ends now."""
    out, relative = [], False
    for line, row in rows:
        text = row[column].strip()
        try:
            number = float(text)
        except ValueError:
            try:
                out.append(instant_ms(text))
            except InputError as error:
                raise FileFault(path, f"line {line}: {error.message}", hint=error.hint) from error
            continue
        if not math.isfinite(number) or number < 0:
            raise FileFault(path, f"line {line}: {column} is {text!r}", hint="give a time such as 2026-01-20T08:00")
        relative |= number < FIRST_EPOCH_S
        out.append(round(number if number >= FIRST_EPOCH_MS else number * MS_PER_S))
    if relative:
        shift = (today_ms or 0) // MS_PER_DAY * MS_PER_DAY - -(-(max(out) + 1) // MS_PER_DAY) * MS_PER_DAY
        out = [t + shift for t in out]
    if (max(out) - min(out)) // MS_PER_HOUR > MOST_HOURS:
        raise FileFault(path, "its times reach over more than five years", hint="leave out what is long past")
    return out, relative


def _lengths(
    path: Path, rows: Sequence[tuple[int, Mapping[str, str]]], columns: _Columns, times: Sequence[int]
) -> list[int]:
    """How long each job ran, in milliseconds; one without an end still runs at the last time of the table."""
    column, last = columns.length or columns.end or "", max(times)
    out = []
    for (line, row), start in zip(rows, times, strict=True):
        if not row[column].strip():
            out.append(last - start)
        elif columns.length:
            out.append(round(_number(path, line, column, row[column]) * MS_PER_S))
        else:
            out.append(_times(path, [(line, row)], column, None)[0][0] - start)
        if out[-1] < 0:
            raise FileFault(path, f"line {line}: {column} is before {columns.time}", hint="swap the two columns")
    return out


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
    # Areas up to each hour edge; their differences are what falls into each hour.
    edges = (first + np.arange(hours + 1)) * MS_PER_HOUR
    area = _area(start, end, value, edges)
    total = np.maximum(0.0, np.diff(area) / MS_PER_HOUR)
    if not gaps:
        return Series(name, first * MS_PER_HOUR, total)
    held = np.diff(_area(start, end, np.ones(len(value)), edges)) / MS_PER_HOUR
    seen = held >= 0.5
    return Series(name, first * MS_PER_HOUR, np.divide(total, held, out=np.full(hours, np.nan), where=seen))


def _area(start: np.ndarray, end: np.ndarray, value: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Value x time of all stretches up to each edge."""
    out = np.zeros(len(edges))
    for at, sign in ((start, 1.0), (end, -1.0)):
        order = np.argsort(at, kind="stable")
        times, rates = at[order], sign * value[order]
        place = np.searchsorted(times, edges, side="right")
        rate, moment = (np.append(0.0, np.cumsum(each)) for each in (rates, rates * (times - edges[0])))
        out += rate[place] * (edges - edges[0]) - moment[place]
    return out


def _capacity(
    path: Path, rows: Sequence[tuple[int, Mapping[str, str]]], columns: _Columns, named: Sequence[str]
) -> dict[str, int]:
    """GPUs there by name: the last row that has them."""
    if columns.capacity is None:
        return {}
    out = {}
    for (line, row), name in zip(rows, named, strict=True):
        if row[columns.capacity]:
            out[name] = round(_number(path, line, columns.capacity, row[columns.capacity]))
    return out


def _notes(path: Path, columns: _Columns, per_gpu: float | None, relative: bool, empty: int) -> Iterator[str]:
    named = f", one series per {columns.name}" if columns.name else ""
    what = "jobs, each from its start for its length" if columns.jobs else "demand over time"
    yield f"{path.name}: {columns.time} is the time (UTC), {columns.value} the demand{named}; read as {what}"
    if columns.value not in (*GPUS, *GPU_HOURS):
        yield f"one GPU carries {per_gpu:g} of {columns.value}"
    if relative:
        yield f"{columns.time} counts seconds from a start that the table does not give: it is taken to end today"
    if empty:
        yield f"{count(empty, 'row')} without a value left out: gaps, not zero"
    if columns.capacity:
        yield f"{columns.capacity} is the number of GPUs there"
