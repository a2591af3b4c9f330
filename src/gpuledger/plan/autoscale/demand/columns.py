"""Which column of a trace is which, and which instants and numbers are in it?"""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpuledger.errors import FileFault, UnknownName
from gpuledger.plan.autoscale.facts import facts

# A number of this size or more counts milliseconds, microseconds or nanoseconds since 1970; smaller ones seconds.
_SINCE_1970_S = 1e8
_SCALES = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))
_PER_S = {"per_second": 1.0, "per_minute": 1 / 60, "per_hour": 1 / 3600}


@dataclass(frozen=True)
class Roles:
    """The columns of a trace by what they hold; `rate_unit`: per_second, per_minute, per_hour or per_step."""

    time: str
    rate: str = ""
    rate_unit: str = ""
    series: str = ""
    generated: str = ""
    context: str = ""

    @property
    def per_s(self) -> float | None:
        """Requests per second that one in the rate's column is worth; None where it counts a step."""
        return _PER_S.get(self.rate_unit)


def folded(name: str) -> str:
    """A column's name as names are compared."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def roles_of(path: str, names: Sequence[str]) -> Roles:
    """Which column is which; a trace without a time is refused."""
    known, columns = facts().columns, {folded(n): n for n in reversed(names)}

    def found(wanted: Sequence[str]) -> str:
        return next((columns[n] for n in wanted if n in columns), "")

    time = found(known.time)
    if not time:
        hint = f"name it timestamp in the first line; the columns are {', '.join(names)}"
        raise FileFault(path, "no column with times", hint=hint)
    rates = {unit: getattr(known.rates, unit) for unit in ("per_second", "per_minute", "per_hour", "per_step")}
    unit, rate = next(((u, c) for u, wanted in rates.items() if (c := found(wanted)) and c != time), ("", ""))
    generated, context = found(known.generated), found(known.context)
    if generated or context:
        unit, rate = "", ""  # a row is a request
    return Roles(time, rate, unit, found(known.series), generated, context)


@dataclass(frozen=True)
class Instants:
    """Times of rows in seconds: since 1970 where `dated`, else since an unknown start; `words`: how they were read."""

    seconds: np.ndarray
    dated: bool
    words: str


def instants(path: str, name: str, column: pa.ChunkedArray) -> Instants:
    """A column of times: ISO text, a timestamp, or a number of seconds, milliseconds, microseconds or nanoseconds."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        found = np.asarray(column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist(), dtype=object)
        _no_blank(path, name, found)
        return Instants(found.astype(np.int64) / 1e9, True, f"{name}: time, UTC")
    if _typed(column):
        numbers = column.to_numpy().astype(np.float64)
    else:
        texts = [None if v is None else str(v).strip() for v in column.to_pylist()]
        _no_blank(path, name, np.array([t or None for t in texts], dtype=object))
        try:
            numbers = np.array(texts, dtype=np.float64)
        except ValueError:
            read_as = f"{name}: time, UTC where no zone is given"
            return Instants(_iso(path, name, [t or "" for t in texts]), True, read_as)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        problem = f"row {row + 2}, {name}: {str(column[row]).strip()!r} is not a time"
        raise FileFault(path, problem, hint="remove or correct the row")
    for least, scale, unit in _SCALES:
        if abs(numbers[0]) >= least:
            return Instants(numbers / scale, True, f"{name}: {unit} since 1970")
    if folded(name).endswith("ms"):
        return Instants(numbers / 1e3, False, f"{name}: milliseconds from the start")
    dated = bool(abs(numbers[0]) >= _SINCE_1970_S)
    return Instants(numbers, dated, f"{name}: seconds {'since 1970' if dated else 'from the start'}")


def _typed(column: pa.ChunkedArray) -> bool:
    """Whether a column has numbers in every row, so that none of them has to be read as text."""
    return (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)) and not column.null_count


def _no_blank(path: str, name: str, values: np.ndarray) -> None:
    empty = [i for i, v in enumerate(values) if v is None]
    if empty:
        raise FileFault(path, f"row {empty[0] + 2}, {name}: no time", hint="remove the row, or give its time")


def _iso(path: str, name: str, texts: list[str]) -> np.ndarray:
    """ISO text; plain text in one go, text with zones one by one."""
    plain = [t.removesuffix("Z") for t in texts]
    if not any(re.search(r"[+-]\d\d:?\d\d$", t) for t in (plain[0], plain[-1])):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return np.array(plain, dtype="datetime64[ns]").astype(np.int64) / 1e9
        except (ValueError, Warning):
            pass  # one by one, to name the row
    out = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            when = dt.datetime.fromisoformat(text)
        except ValueError:
            hint = "write times as 2026-01-20T08:30:00 or as seconds"
            raise FileFault(path, f"row {row + 2}, {name}: {text!r} is not a time", hint=hint) from None
        out[row] = (when if when.tzinfo else when.replace(tzinfo=dt.UTC)).timestamp()
    return out


def numbers(path: str, name: str, column: pa.ChunkedArray) -> np.ndarray:
    """A column of numbers from 0 on, NaN where a cell is empty."""
    if _typed(column) and len(found := column.to_numpy()) and found.min() >= 0 and np.isfinite(found).all():
        return found.astype(np.float64)
    out = np.empty(len(column))
    for row, value in enumerate(column.to_pylist()):
        text = "" if value is None else str(value).strip()
        try:
            number = float(text) if text else np.nan
        except ValueError:
            problem = f"row {row + 2}, {name}: {text!r} is not a number"
            raise FileFault(path, problem, hint="correct the cell, or leave it empty where it is unknown") from None
        if number < 0 or np.isinf(number):
            hint = "a rate is 0 or more: correct the row"
            raise FileFault(path, f"row {row + 2}, {name}: {text} is not a possible value", hint=hint)
        out[row] = number
    return out


def chosen_series(path: str, name: str, column: pa.ChunkedArray, wanted: str | None) -> tuple[np.ndarray, str]:
    """The rows of one series; a file with several is asked which."""
    texts = np.array(["" if v is None else str(v) for v in column.to_pylist()], dtype=object)
    known = list(dict.fromkeys(texts.tolist()))
    if wanted is None:
        if len(known) > 1:
            hint = f"choose one with series=NAME: {', '.join(known[:24])}"
            raise FileFault(path, f"column {name} has {len(known)} series", hint=hint)
        return np.ones(len(texts), dtype=bool), known[0]
    match = {k.casefold(): k for k in known}.get(wanted.casefold())
    if match is None:
        raise UnknownName(f"series of {path}", wanted, known)
    return texts == match, match
