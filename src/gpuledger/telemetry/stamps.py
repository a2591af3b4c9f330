"""What instant does this text or number mean, in UTC?"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import InputError
from gpuledger.units import MS_PER_S

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# An epoch number is in seconds, ms, us or ns; which one follows from its size for any year from 2000 to 2100.
_EPOCH_UNITS = ((1e11, 1e3), (1e14, 1.0), (1e17, 1e-3), (float("inf"), 1e-6))


@dataclass
class StampReader:
    """Reads the time column of one file and remembers whether a zone had to be assumed."""

    formats: tuple[str, ...]
    zone_name: str = "UTC"
    zoneless: bool = False
    _seen: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            self._zone: dt.tzinfo = dt.UTC if self.zone_name.upper() == "UTC" else ZoneInfo(self.zone_name)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise InputError(
                f"no time zone is called {self.zone_name!r}", hint="use a name such as UTC or Europe/Berlin"
            ) from error

    def read(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Milliseconds since 1970 UTC, and a mask of the rows where there is no usable instant."""
        if pa.types.is_timestamp(column.type):
            return self._from_timestamp(column)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            return _from_number(column)
        return self._from_text(column)

    def _from_timestamp(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        bad = column.is_null().to_numpy(zero_copy_only=False)
        if column.type.tz is None:
            self.zoneless = True
            if self._zone is not dt.UTC:
                column = pc.assume_timezone(column, self.zone_name, ambiguous="earliest", nonexistent="latest")
        ms = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
        return ms.fill_null(0).to_numpy(zero_copy_only=False), bad

    def _from_text(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words = [self._instant(text) for text in coded.dictionary.to_pylist()]
        ms = np.array([w if w is not None else 0 for w in words] + [0], dtype=np.int64)
        wrong = np.array([w is None for w in words] + [True], dtype=bool)
        codes = coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        return ms[codes], wrong[codes]

    def _instant(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in self._seen:
            if len(self._seen) > 200_000:
                self._seen.clear()
            self._seen[text] = self._parse(text.strip())
        return self._seen[text]

    def _parse(self, text: str) -> int | None:
        for layout in self.formats:
            try:
                return self._utc_ms(dt.datetime.strptime(text, layout))
            except ValueError:
                continue
        try:
            return self._utc_ms(dt.datetime.fromisoformat(text))
        except ValueError:
            pass
        try:
            number = float(text)
        except ValueError:
            return None
        return _epoch_ms(number) if np.isfinite(number) else None

    def _utc_ms(self, when: dt.datetime) -> int:
        if when.tzinfo is None:
            self.zoneless = True
            when = when.replace(tzinfo=self._zone)
        delta = when - _EPOCH
        return delta.days * 86_400_000 + delta.seconds * MS_PER_S + delta.microseconds // 1000


def _epoch_ms(number: float) -> int:
    factor = next(f for limit, f in _EPOCH_UNITS if abs(number) < limit)
    return round(number * factor)


def _from_number(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Epoch numbers; the unit follows from the size of the first usable one."""
    bad = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        bad = bad | ~np.isfinite(values)
        values = np.where(bad, 0.0, values)
    else:
        values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    good = np.flatnonzero(~bad)
    if not len(good):
        return np.zeros(len(values), dtype=np.int64), bad
    factor = next(f for limit, f in _EPOCH_UNITS if abs(float(values[good[0]])) < limit)
    if factor == 1.0 and values.dtype == np.int64:
        return values, bad
    return np.rint(values * factor).astype(np.int64), bad
