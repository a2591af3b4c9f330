"""How does a file become a trace? What is missing, out of order or impossible is refused, and named by its row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from gpuledger.bounds import refuse_claims
from gpuledger.errors import FileFault, map_os_error
from gpuledger.plan.autoscale.demand.columns import Instants, Roles, chosen_series, instants, numbers, roles_of
from gpuledger.plan.autoscale.demand.trace import Trace, of_requests
from gpuledger.telemetry.unpacking import open_plain
from gpuledger.units import count, utc

Gaps = Literal["refuse", "skip", "hold"]
# How far a step may be from the others and still be one of them.
_EVEN_RATIO = 0.01
MOST_ROWS = 5_000_000


def read_trace(path: Path, *, series: str | None = None, gaps: Gaps = "refuse") -> Trace:
    """The trace in a CSV (also .gz) or Parquet file."""
    table, name = _table(path), path.name
    if table.num_rows == 0:
        raise FileFault(path, "the trace is empty", hint="give a file with a row for each request or each step")
    _refuse_many(path, table.num_rows)
    roles = roles_of(str(path), table.column_names)
    rows, label = np.ones(table.num_rows, dtype=bool), ""
    if roles.series and (roles.rate or series is not None):
        rows, label = chosen_series(str(path), roles.series, table[roles.series], series)
    elif series is not None:
        hint = f"leave series={series} out, or add a column called series"
        raise FileFault(path, f"no column tells series apart, and {series!r} is asked for", hint=hint)
    when = instants(str(path), roles.time, table[roles.time])
    place = np.flatnonzero(rows)
    when = Instants(when.seconds[rows], when.dated, when.words)
    if len(place) < 2:
        hint = "a trace needs at least two rows, better a day or more"
        raise FileFault(path, "the trace has one row", hint=hint)
    _in_order(path, when, place, strict=bool(roles.rate))
    source = f"{name}, {label}" if label else name
    if roles.rate:
        return _rates(path, source, roles, when, numbers(str(path), roles.rate, table[roles.rate])[rows], place, gaps)
    return _requests(path, source, roles, when, table)


def _refuse_many(path: Path, rows: int) -> None:
    if rows > MOST_ROWS:
        problem = f"{rows:,} rows are more than {MOST_ROWS:,}"
        raise FileFault(path, problem, hint="add the requests up to rates, such as one row per minute")


def _table(path: Path) -> pa.Table:
    found = _read(path)
    repeated = [name for name, times in Counter(found.column_names).items() if times > 1]
    if repeated:
        raise FileFault(path, f"two columns are called {repeated[0]!r}", hint="rename one of them")
    return found


def _read(path: Path) -> pa.Table:
    try:
        if path.is_dir():
            raise IsADirectoryError(path)
        with path.open("rb") as file:
            head = file.read(4)
        if head == b"PAR1":
            with pq.ParquetFile(path) as file:
                refuse_claims(path, file.metadata.num_rows)
                _refuse_many(path, file.metadata.num_rows)
                return file.read()
        if not head:
            raise FileFault(path, "the trace is empty", hint="give a file with a row for each request or each step")
        with open_plain(path) as stream:
            first = stream.read(65536).split(b"\n", 1)[0]
        names = [n.strip().strip('"') for n in first.decode("utf-8-sig").split(_separator(first))]
        as_text = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
        parse = pa_csv.ParseOptions(delimiter=_separator(first))
        with open_plain(path) as stream:
            return pa_csv.read_csv(
                stream, read_options=pa_csv.ReadOptions(skip_rows=1, column_names=names), parse_options=parse,
                convert_options=as_text,
            )  # fmt: skip
    except OSError as error:
        raise map_os_error(error, path, "read the trace") from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        why = str(error).splitlines()[0]
        raise FileFault(path, f"not a table: {why}", hint="give a CSV file with a header, or a Parquet file") from error


def _separator(first: bytes) -> str:
    return max((",", ";", "\t"), key=lambda s: first.count(s.encode()))


def _in_order(path: Path, when: Instants, place: np.ndarray, *, strict: bool) -> None:
    step = np.diff(when.seconds)
    bad = np.flatnonzero(step <= 0 if strict else step < 0)
    if len(bad):
        row = int(place[bad[0] + 1]) + 2
        same = strict and step[bad[0]] == 0
        problem = (
            f"row {row} has the time of the row before it" if same else f"row {row} is earlier than the row before it"
        )
        hint = "keep one row per step, or choose one series" if same else "sort the rows by time"
        raise FileFault(path, problem, hint=hint)


def _requests(path: Path, source: str, roles: Roles, when: Instants, table: pa.Table) -> Trace:
    at = when.seconds - when.seconds[0]
    if at[-1] <= 0:
        hint = "give arrivals of at least some minutes"
        raise FileFault(path, "all requests arrive at the same time", hint=hint)
    _not_rates(path, roles, at, table.column_names)
    read_as = [when.words, "a row is one request"]
    generated = None
    if roles.generated:
        generated = numbers(str(path), roles.generated, table[roles.generated])
        unknown = np.isnan(generated)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0]) + 2
            raise FileFault(path, f"row {row}, {roles.generated}: no value", hint="correct or remove the row")
        read_as.append(f"{roles.generated}: generated tokens, which service times follow")
    if roles.context:
        read_as.append(f"{roles.context}: context tokens, not used")
    quiet = float(np.diff(at).max())
    notes = (f"the longest time without a request is {quiet:,.0f} s",) if quiet > 600 else ()
    return of_requests(
        source, at, generated, float(when.seconds[0]), dated=when.dated, read_as=tuple(read_as), notes=notes
    )


def _not_rates(path: Path, roles: Roles, at: np.ndarray, names: list[str]) -> None:
    """Refuse rows that come as evenly as rates do where none of their columns is known as one."""
    steps = np.diff(at)
    others = [n for n in names if n not in {roles.time, roles.series}]
    if others and not roles.generated and not roles.context and np.ptp(steps) <= _EVEN_RATIO * steps[0]:
        hint = f"name the column req_per_s, or requests for a count per step; the columns are {', '.join(names)}"
        raise FileFault(
            path, f"rows come every {steps[0]:g} s, as rates do, and no column is known as a rate", hint=hint
        )


def _rates(
    path: Path, source: str, roles: Roles, when: Instants, values: np.ndarray, place: np.ndarray, gaps: Gaps
) -> Trace:
    """Rates in even steps; what is missing is refused, cut out, or filled with the rate before it."""
    step = float(np.median(np.diff(when.seconds)))
    number = (when.seconds - when.seconds[0]) / step
    slot = np.round(number).astype(np.int64)
    uneven = np.flatnonzero(
        (np.abs(number - slot) > _EVEN_RATIO * np.maximum(1, number)) | (np.diff(slot, prepend=-1) < 1)
    )
    if len(uneven):
        row = int(place[uneven[0]]) + 2
        hint = "give rates in even steps, or a row for each request"
        raise FileFault(path, f"row {row} is not a whole number of steps of {step:g} s after the first", hint=hint)
    per_s = values * (roles.per_s if roles.per_s is not None else 1 / step)
    rates = np.full(int(slot[-1]) + 1, np.nan)
    rates[slot] = per_s
    clock = when.seconds[0] + step * np.arange(len(rates))
    unit = roles.rate_unit.replace("per_", "requests per ")
    read_as = (when.words, f"{roles.rate}: {unit} of {step:g} s" if roles.per_s is None else f"{roles.rate}: {unit}")
    notes: tuple[str, ...] = ()
    missing = np.isnan(rates)
    if missing.any():
        words = _gap_words(missing, clock, when.dated, step)
        if gaps == "refuse":
            hint = "choose gaps=skip (cut the time out) or gaps=hold (carry the last rate forward)"
            raise FileFault(path, f"the trace has gaps: {words}", hint=hint)
        if gaps == "hold":
            last = np.maximum.accumulate(np.where(missing, 0, np.arange(len(rates))))
            first = float(rates[~missing][0])
            rates = np.where(np.isnan(rates[last]), first, rates[last])
            notes = (f"gaps filled with the rate before them: {words}",)
        else:
            rates, clock, notes = rates[~missing], clock[~missing], (f"gaps cut out: {words}",)
    if len(rates) < 2 or not rates.any():
        raise FileFault(path, "the trace has no requests", hint="choose a series or a time with requests")
    return Trace(source, rates, step, clock, when.dated, read_as=read_as, notes=notes)


def _gap_words(missing: np.ndarray, clock: np.ndarray, dated: bool, step: float) -> str:
    """How many steps are missing, and where the first gap is."""
    first = int(np.flatnonzero(missing)[0])
    at = f"{utc(int(clock[first] * 1000)):%Y-%m-%d %H:%M} UTC" if dated else f"{clock[first]:g} s"
    return f"{count(int(missing.sum()), 'step')} of {step:g} s without a rate, the first at {at}"
