"""What instant does this text or number mean, in UTC, and when was a row read where the file does not say it in full?

A file without any times: its first round is of the instant the user names, and each further round of a GPU comes one
interval later. A file with the time of day only: the user names the day of its first row, and the next one starts
where the clock goes back past midnight. A file that counts seconds: the user names the instant they count from.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import InputError, NotSaid
from gpuledger.telemetry.date_order import Order, assumed, order_of
from gpuledger.telemetry.mapping import Given
from gpuledger.telemetry.mapping.rules import EPOCH_UNITS
from gpuledger.units import MS_PER_DAY, MS_PER_S

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# An epoch number is in seconds, ms, us or ns; which one follows from its size for any year from 2000 to 2100.
_EPOCH_SIZES = ((1e11, 1e3), (1e14, 1.0), (1e17, 1e-3), (1e20, 1e-6))
_MS_PER_MINUTE = 60 * MS_PER_S
# As BigQuery and Go write times in UTC: 2026-01-20 08:00:00 UTC, 2026-01-20 08:00:00.5 +0000 UTC
_IN_UTC = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?: \+0000)? (?:UTC|GMT)")
# More digits than a date has: Python reads 1770112800000, an epoch in ms, as 1770-11-28 00:00, too.
_DIGITS = re.compile(r"\d{9,}(?:\.\d*)?")


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
_KINDS = (np.int64, np.int64, np.int8)
_YEAR_FIRST = re.compile(r"\s*\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d")
_MANY = 256  # fewer are read one by one as fast


def _zone(name: str) -> dt.tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # most files are in UTC

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        hint = "use a name such as UTC or Europe/Berlin"
        raise InputError(f"no time zone is called {name!r}", hint=hint) from error


@dataclass
class StampReader:
    """Reads the time column of one file and remembers whether a zone had to be assumed.

    `resolve`: looks through the file's repeated hours and says for each of their rows, in order, whether it is of the
    first pass (0), the second (1) or unknown (-1). It is called once, when such a row comes up. `unit`: of epoch
    numbers; without one it follows from their size. `untimed`: for files that do not say their times in full.
    `orders`: in which order dates such as 03/09/2026 are written, with the first one that shows it.
    """

    formats: tuple[str, ...]
    zone_name: str = "UTC"
    zoneless: bool = False
    resolve: Callable[[], np.ndarray] | None = None
    unit: str = ""
    untimed: Untimed | None = None
    orders: dict[Order, str] = field(default_factory=dict)
    _seen: dict[str, _Word] = field(default_factory=dict)
    _passes: np.ndarray | None = None
    _used: int = 0

    def __post_init__(self) -> None:
        factor = EPOCH_UNITS.get(self.unit, 0.0)
        self._epochs = ((1e14 / factor, factor),) if factor else _EPOCH_SIZES
        self._layouts = tuple((layout, _marks(layout)) for layout in self.formats)
        self._ordered = assumed(self.formats) is not None
        self._zone = dt.UTC if self.zone_name.upper() == "UTC" else _zone(self.zone_name)

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
        found = self._at_once(coded.dictionary)
        if found is None:
            words = [self._word(text) for text in coded.dictionary.to_pylist()]
            found = Decoded(*(np.array([w[i] for w in words], dtype=kind) for i, kind in enumerate(_KINDS)))
        at_ms, later_ms, fault = (
            np.append(part, np.array(end, part.dtype)) for part, end in zip(found, _WRONG, strict=True)
        )
        codes = coded.indices.fill_null(len(fault) - 1).to_numpy(zero_copy_only=False)
        return Decoded(at_ms[codes], later_ms[codes], fault[codes])

    def _at_once(self, words: pa.Array) -> Decoded | None:
        """Many times that are written year first, all alike and without a zone; None where one is not."""
        if self.unit or len(words) < _MANY or not _YEAR_FIRST.match(words[0].as_py() or ""):
            return None
        try:
            return self._from_timestamp(
                pc.replace_substring(pc.utf8_trim_whitespace(words), "/", "-").cast(pa.timestamp("us"))
            )
        except pa.ArrowInvalid:
            return None

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
        if self._ordered and (order := order_of(text)):
            self.orders.setdefault(order, text)
        for layout, marks in self._layouts:
            if not all(mark in text for mark in marks):
                continue
            try:
                return self._instants(dt.datetime.strptime(text, layout))
            except (ValueError, OverflowError):
                continue
        if _DIGITS.fullmatch(text):
            return self._number(text)
        in_utc = _IN_UTC.fullmatch(text)
        try:
            if in_utc:
                return self._instants(dt.datetime.fromisoformat(in_utc[1]).replace(tzinfo=dt.UTC))
            return self._instants(dt.datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            return self._number(text)

    def _instants(self, when: dt.datetime) -> _Word:
        """A time with its zone, or in the zone assumed: there one that occurs twice or never is marked."""
        if when.tzinfo is not None:
            ms = _utc_ms(when)
            return ms, ms, Fault.NONE
        self.zoneless = True
        if self._zone is dt.UTC:
            ms = _utc_ms(when.replace(tzinfo=dt.UTC))
            return ms, ms, Fault.NONE
        early, late = (when.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        first, later = _utc_ms(early), _utc_ms(late)
        if first == later:
            return first, later, Fault.NONE
        return first, later, Fault.AMBIGUOUS if first < later else Fault.IMPOSSIBLE


def _marks(layout: str) -> str:
    """The slashes, colons and the like that a text of this layout must have: a look at them is quicker than a try."""
    return "".join({c: None for c in re.sub("%.", "", layout) if not c.isalnum() and not c.isspace()})


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
        ms = np.rint(np.where(bad, 0.0, values) * factors).astype(np.int64)
    return Decoded(ms, ms, np.where(bad, Fault.WRONG, Fault.NONE).astype(np.int8))


_S_PER_DAY = MS_PER_DAY // MS_PER_S
_SECONDS = r"^\d+(\.\d*)?([eE][-+]?\d{1,2})?$"
_MOST_S = 1e11  # beyond any year that a sample may be of


class Untimed:
    """Gives the rows of one file, in their order, the times that the user's words mean."""

    def __init__(self, path: Path, given: Given) -> None:
        self._path = path
        self._at_ms = given.at_ms or 0
        self._every_ms, self._mean = given.every_ms, given.mean
        self._seen: dict[tuple[str | None, ...], int] = {}
        self._day = dt.datetime.fromtimestamp(self._at_ms / MS_PER_S, dt.UTC).date()
        self._last_s = -1

    def rounds(self, labels: list[pa.Array]) -> np.ndarray:
        """The instants of rows, in ms: as many intervals after the first as the GPU had rows before this one."""
        rows = zip(*(column.to_pylist() for column in labels), strict=True)
        count = np.empty(len(labels[0]), dtype=np.int64)
        for place, row in enumerate(rows):
            count[place] = before = self._seen.get(row, 0)
            self._seen[row] = before + 1
        if self._mean:
            return np.full(len(count), self._at_ms)
        if self._every_ms is None and count.any():
            raise NotSaid(
                self._path,
                "it has several rows of one GPU and no times",
                hint="say how far its rows are apart: add --every LENGTH, for example --every 1s",
            )
        return self._at_ms + count * (self._every_ms or 0)

    def after(self, elapsed: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """The instants some seconds after the first, in ms, and by row what is wrong with them, as `read` has it."""
        words = pc.utf8_trim_whitespace(elapsed.cast(pa.string()))
        numbers = pc.if_else(pc.match_substring_regex(words, _SECONDS), words, None).cast(pa.float64())
        seconds = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
        wrong = ~(seconds < _MOST_S)
        at_ms = self._at_ms + np.rint(np.where(wrong, 0.0, seconds) * MS_PER_S).astype(np.int64)
        return at_ms, np.where(wrong, Fault.WRONG, Fault.NONE).astype(np.int8)

    def dated(self, clock: pa.Array) -> pa.Array:
        """The times of day as times; a cell that is not one stays as it is."""
        words = clock.cast(pa.string()) if not pa.types.is_string(clock.type) else clock
        seconds = pc.fill_null(pc.cast(_seconds(words), pa.int64()), -1).to_numpy(zero_copy_only=False)
        known = np.flatnonzero(seconds >= 0)
        days = np.zeros(len(seconds), dtype=np.int64)
        if len(known):
            series = np.concatenate([[self._last_s if self._last_s >= 0 else seconds[known[0]]], seconds[known]])
            days[known] = np.cumsum(np.diff(series) < -_S_PER_DAY // 2)
            self._last_s = int(series[-1])
        texts = [(self._day + dt.timedelta(days=d)).isoformat() for d in range(int(days.max(initial=0)) + 1)]
        self._day += dt.timedelta(days=len(texts) - 1)
        return pc.binary_join_element_wise(pa.array(texts).take(pa.array(days)), words, " ")


def _seconds(clock: pa.Array) -> pa.Array:
    """Seconds since midnight of `23:59:58`, with or without a fraction; NULL for anything else."""
    parts = pc.extract_regex(pc.utf8_trim_whitespace(clock), r"^(?P<h>\d{1,2}):(?P<m>\d{2}):(?P<s>\d{2})(?:\.\d+)?$")
    hours, minutes, seconds = (pc.struct_field(parts, name).cast(pa.int64()) for name in "hms")
    return pc.add(pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60)), seconds)
