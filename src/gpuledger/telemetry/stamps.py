"""What instant does this text or number mean, in UTC?

When clocks are set back, the times of an hour come twice. Where a device's rows go through that hour twice, one after
the other, the first time is the first pass and the second time the second. A single run through it that joins rows
before the hour only is the first pass, one that joins rows after it only the second. Anything else stays unknown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from gpuledger.errors import InputError
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import Bound
from gpuledger.telemetry.mapping.rules import EPOCH_UNITS
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.telemetry.untimed import Untimed
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# An epoch number is in seconds, ms, us or ns; which one follows from its size for any year from 2000 to 2100.
_EPOCH_SIZES = ((1e11, 1e3), (1e14, 1.0), (1e17, 1e-3), (1e20, 1e-6))
_MS_PER_MINUTE = 60 * MS_PER_S


class Fault(IntEnum):
    """Why a cell is not an instant."""

    NONE = 0
    WRONG = 1
    # Clocks that are set back show this hour twice, and the file does not tell which of the two it is.
    AMBIGUOUS = 2
    # Clocks that are set forward leave this hour out.
    IMPOSSIBLE = 3


class Decoded(NamedTuple):
    """The instants of rows in ms UTC, the later one where a local time occurs twice, and what is wrong with them.

    AMBIGUOUS here means: which of the two it is remains to be found out.
    """

    at_ms: np.ndarray
    later_ms: np.ndarray
    fault: np.ndarray


_Word = tuple[int, int, Fault]
_WRONG: _Word = (0, 0, Fault.WRONG)


@dataclass
class StampReader:
    """Reads the time column of one file and remembers whether a zone had to be assumed.

    `resolve`: looks through the file's repeated hours and says for each of their rows, in order, whether it is of the
    first pass (0), the second (1) or unknown (-1). It is called once, when such a row comes up. `unit`: of epoch
    numbers; without one it follows from their size. `untimed`: for files that do not say their times in full.
    """

    formats: tuple[str, ...]
    zone_name: str = "UTC"
    zoneless: bool = False
    resolve: Callable[[], np.ndarray] | None = None
    unit: str = ""
    untimed: Untimed | None = None
    _seen: dict[str, _Word] = field(default_factory=dict)
    _passes: np.ndarray | None = None
    _used: int = 0

    def __post_init__(self) -> None:
        factor = EPOCH_UNITS.get(self.unit, 0.0)
        self._epochs = ((1e14 / factor, factor),) if factor else _EPOCH_SIZES
        try:
            self._zone: dt.tzinfo = dt.UTC if self.zone_name.upper() == "UTC" else ZoneInfo(self.zone_name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InputError(
                f"no time zone is called {self.zone_name!r}", hint="use a name such as UTC or Europe/Berlin"
            ) from error

    def read(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Milliseconds since 1970 UTC, and by row what is wrong with them (`Fault`, 0: nothing)."""
        at_ms, later_ms, fault = self.decode(column)
        twice = np.flatnonzero(fault == Fault.AMBIGUOUS)
        if len(twice):
            if self._passes is None and self.resolve is not None:
                self._passes = self.resolve()
            if self._passes is not None:
                which = self._passes[self._used : self._used + len(twice)]
                self._used += len(twice)
                at_ms, fault = at_ms.copy(), fault.copy()
                at_ms[twice[which == 1]] = later_ms[twice[which == 1]]
                fault[twice[which >= 0]] = Fault.NONE
        return at_ms, fault

    def decode(self, column: pa.Array) -> Decoded:
        """What the cells mean, each by itself."""
        if pa.types.is_timestamp(column.type):
            return self._from_timestamp(column)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            return _from_number(column, self._epochs)
        return self._from_text(column)

    def _from_timestamp(self, column: pa.Array) -> Decoded:
        whole = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
        bad, wrong = np.zeros(len(column), dtype=bool), np.zeros(len(column), dtype=np.int8)
        if column.null_count:
            bad = column.is_null().to_numpy(zero_copy_only=False)
            wrong[bad] = Fault.WRONG
            whole = whole.fill_null(0)
        ms = whole.to_numpy(zero_copy_only=False)
        if column.type.tz is not None:
            return Decoded(ms, ms, wrong)
        self.zoneless = True
        if self._zone is dt.UTC:
            return Decoded(ms, ms, wrong)
        minutes, place = np.unique(ms // _MS_PER_MINUTE, return_inverse=True)
        within = ms % _MS_PER_MINUTE
        found = [self._local_minute(m) for m in minutes.tolist()]
        first, later, fault = (np.array(values, dtype=np.int64) for values in zip(*found, strict=True))
        at_ms, later_ms = first[place] + within, later[place] + within
        return Decoded(at_ms, later_ms, np.where(bad, wrong, fault[place]).astype(np.int8))

    def _local_minute(self, minute: int) -> _Word:
        try:
            return self._instants(dt.datetime(1970, 1, 1) + dt.timedelta(minutes=minute))
        except OverflowError:
            return _WRONG

    def _from_text(self, column: pa.Array) -> Decoded:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words = [*(self._word(text) for text in coded.dictionary.to_pylist()), _WRONG]
        at_ms, later_ms = (np.array([w[i] for w in words], dtype=np.int64) for i in (0, 1))
        fault = np.array([w[2] for w in words], dtype=np.int8)
        codes = coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
        return Decoded(at_ms[codes], later_ms[codes], fault[codes])

    def _word(self, text: str | None) -> _Word:
        if text is None:
            return _WRONG
        if text not in self._seen:
            if len(self._seen) > 200_000:
                self._seen.clear()
            self._seen[text] = self._parse(text.strip())
        return self._seen[text]

    def _number(self, text: str) -> _Word:
        try:
            number = float(text)
        except ValueError:
            return _WRONG
        factor = next((f for limit, f in self._epochs if abs(number) < limit), None)
        ms = 0 if factor is None else round(number * factor)
        return _WRONG if factor is None else (ms, ms, Fault.NONE)

    def _parse(self, text: str) -> _Word:
        if self.unit and (found := self._number(text)) != _WRONG:
            return found
        for layout in self.formats:
            try:
                return self._instants(dt.datetime.strptime(text, layout))
            except (ValueError, OverflowError):
                continue
        try:
            return self._instants(dt.datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            return self._number(text)

    def _instants(self, when: dt.datetime) -> _Word:
        """A time with its zone, or in the zone assumed: there one that occurs twice or never is marked."""
        if when.tzinfo is not None:
            ms = _utc_ms(when)
            return ms, ms, Fault.NONE
        self.zoneless = True
        early, late = (when.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        first, later = _utc_ms(early), _utc_ms(late)
        if first == later:
            return first, later, Fault.NONE
        return first, later, Fault.AMBIGUOUS if first < later else Fault.IMPOSSIBLE


def _utc_ms(when: dt.datetime) -> int:
    delta = when - _EPOCH
    return delta.days * 86_400_000 + delta.seconds * MS_PER_S + delta.microseconds // 1000


def _from_number(column: pa.Array, sizes: tuple[tuple[float, float], ...]) -> Decoded:
    """Epoch numbers, each in the unit that follows from its size."""
    bad = column.is_null().to_numpy(zero_copy_only=False)
    whole = not pa.types.is_floating(column.type)
    values = column.cast(pa.int64() if whole else pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    size = np.abs(values.astype(np.float64))
    bad = bad | ~(size < sizes[-1][0])
    factors = np.select([size < limit for limit, _ in sizes], [f for _, f in sizes], 0.0)
    if whole and (factors[~bad] == 1.0).all():
        ms = values
    else:
        ms = np.rint(np.where(bad, 0.0, values * factors)).astype(np.int64)
    return Decoded(ms, ms, np.where(bad, Fault.WRONG, Fault.NONE).astype(np.int8))


UNKNOWN = -1


class _Seen:
    """The rows of repeated hours in order, and the hours each device has rows of outside of them."""

    def __init__(self) -> None:
        self.at_ms: list[int] = []
        self.later_ms: list[int] = []
        self.device: list[tuple[str | None, ...]] = []
        self.series: list[tuple[str | None, ...]] = []
        self.hours: set[tuple[tuple[str | None, ...], int]] = set()


def passes_of(path: Path, bound: Bound, stamps: StampReader) -> np.ndarray:
    """For each row of a repeated hour, in the order of the file: 0, 1, or -1 where its pass is unknown."""
    seen = _scan(path, bound, StampReader(stamps.formats, stamps.zone_name, unit=stamps.unit))
    out = np.full(len(seen.at_ms), UNKNOWN, dtype=np.int64)
    at, later = np.array(seen.at_ms), np.array(seen.later_ms)
    for rows in _grouped(seen.device, at):
        found = _two_runs(at[rows])
        if found is not None:
            out[rows] = found
        elif _turns(at[rows]) == 0:
            out[rows] = _one_run(seen, rows, at, later)
        else:
            for some in _grouped([seen.series[r] for r in rows], at[rows]):
                runs = _two_runs(at[rows[some]])
                out[rows[some]] = UNKNOWN if runs is None else runs
    return out


def _scan(path: Path, bound: Bound, stamps: StampReader) -> _Seen:
    device = [bound.labels[c] for c in schema.DEVICE if c in bound.labels]
    # A device known by its index needs its host to be one device.
    device += [bound.labels["host"]] if "host" in bound.labels else []
    series = [*device, *(bound.labels[c] for c in schema.SERIES if c in bound.labels)]
    seen = _Seen()
    columns = list(dict.fromkeys([bound.time, *series]))
    for batch in open_shaped(path, bound.mapping).batches(columns, tuple(dict.fromkeys(series))):
        at, later, fault = stamps.decode(batch.column(bound.time))
        names = [_texts(batch.column(c)) for c in device]
        twice = np.flatnonzero(fault == Fault.AMBIGUOUS)
        sure = np.flatnonzero(fault == Fault.NONE)
        seen.hours |= {
            (tuple(n[i] for n in names), hour)
            for i, hour in zip(sure.tolist(), (at[sure] // MS_PER_HOUR).tolist(), strict=True)
        }
        if len(twice):
            every = [_texts(batch.column(c)) for c in series]
            seen.at_ms += at[twice].tolist()
            seen.later_ms += later[twice].tolist()
            seen.device += [tuple(n[i] for n in names) for i in twice.tolist()]
            seen.series += [tuple(n[i] for n in every) for i in twice.tolist()]
    return seen


def _texts(column: pa.Array) -> list[str | None]:
    return [None if v is None else str(v) for v in column.to_pylist()]


def _grouped(names: list[tuple[str | None, ...]], at_ms: np.ndarray) -> list[np.ndarray]:
    """Row numbers by name and by the day of the repeated hour, each in order."""
    found: dict[tuple[object, ...], list[int]] = {}
    for row, (name, at) in enumerate(zip(names, at_ms.tolist(), strict=True)):
        found.setdefault((name, at // MS_PER_DAY), []).append(row)
    return [np.array(rows) for rows in found.values()]


def _turns(at_ms: np.ndarray) -> int:
    """How often time turns back in a series that mostly rises, or jumps ahead in one that mostly falls."""
    step = np.diff(at_ms)
    rises, falls = int((step > 0).sum()), int((step < 0).sum())
    return min(rises, falls)


def _two_runs(at_ms: np.ndarray) -> np.ndarray | None:
    """The pass of each row where the series goes through the hour twice; None where it does not."""
    if _turns(at_ms) != 1:
        return None
    step = np.diff(at_ms)
    rising = (step > 0).sum() >= (step < 0).sum()
    turn = int(np.flatnonzero(step < 0 if rising else step > 0)[0]) + 1
    after = np.arange(len(at_ms)) >= turn
    return (after if rising else ~after).astype(np.int64)


def _one_run(seen: _Seen, rows: np.ndarray, at: np.ndarray, later: np.ndarray) -> int:
    """The pass of a single run through the hour: the one that joins the rows there are around it."""
    device = seen.device[int(rows[0])]
    before = (device, int(at[rows].min()) // MS_PER_HOUR - 1) in seen.hours
    after = (device, int(later[rows].max()) // MS_PER_HOUR + 1) in seen.hours
    return UNKNOWN if before == after else int(after)
