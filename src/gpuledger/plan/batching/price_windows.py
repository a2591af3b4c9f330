"""What does a GPU-hour of a pool cost at each minute? A price, and windows of the day, the week or the calendar."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from gpuledger.errors import InputError
from gpuledger.times import instant_ms
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN

MINUTES_PER_DAY = 1440
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
GROUPS = {"weekdays": range(5), "weekday": range(5), "weekend": range(5, 7), "weekends": range(5, 7), "daily": range(7)}
_HOURS = re.compile(r"(\d{1,2})(?::(\d\d))?\s*(?:-|to|\.\.)\s*(\d{1,2})(?::(\d\d))?")


@dataclass(frozen=True)
class PriceWindow:
    """A price that holds at some minutes of the day, on some days of the week, between two instants.

    A window over midnight belongs to the day it starts on.
    """

    usd_per_gpu_h: Decimal
    from_minute: int = 0
    to_minute: int = MINUTES_PER_DAY
    days: tuple[int, ...] = tuple(range(7))
    from_ms: int | None = None
    to_ms: int | None = None

    @staticmethod
    def read(price: Decimal, hours: str, days: str, start: str, end: str, zone: str) -> PriceWindow:
        """From text: hours "22-06" or "22:30-06:00", days "mon-fri" or "sat,sun", start and end as instants."""
        first, last = _hours(hours) if hours else (0, MINUTES_PER_DAY)
        on = _days(days) if days else tuple(range(7))
        begin, close = (_instant(text, zone) if text else None for text in (start, end))
        if begin is not None and close is not None and close <= begin:
            raise InputError(f"a price window ends at {end}, before it starts", hint="give a later end")
        return PriceWindow(price, first, last, on, begin, close)

    def holds(self, minute: np.ndarray, weekday: np.ndarray, at_ms: np.ndarray) -> np.ndarray:
        """At which instants it holds, from the minute of the day and the day of the week there."""
        on = np.isin(weekday, self.days)
        if self.from_minute < self.to_minute:
            found = on & (minute >= self.from_minute) & (minute < self.to_minute)
        else:
            before = np.isin((weekday - 1) % 7, self.days)
            found = (on & (minute >= self.from_minute)) | (before & (minute < self.to_minute))
        if self.from_ms is not None:
            found &= at_ms >= self.from_ms
        if self.to_ms is not None:
            found &= at_ms < self.to_ms
        return found


def covers_week(windows: Sequence[PriceWindow]) -> bool:
    """Whether there is a price at every minute of every week."""
    week = np.arange(7 * MINUTES_PER_DAY)
    always = [w for w in windows if w.from_ms is None and w.to_ms is None]
    held = [w.holds(week % MINUTES_PER_DAY, week // MINUTES_PER_DAY, week) for w in always]
    return bool(np.any(held, axis=0).all()) if held else False


def _hours(text: str) -> tuple[int, int]:
    found = _HOURS.fullmatch(text.strip())
    hint = "write the hours of the day as 22-06 or 08:30-18:00"
    if not found:
        raise InputError(f"{text!r} is not hours of the day", hint=hint)
    first, last = (int(found[i]) * 60 + int(found[i + 1] or 0) for i in (1, 3))
    if max(first, last) > MINUTES_PER_DAY or first == last or int(found[2] or 0) > 59 or int(found[4] or 0) > 59:
        raise InputError(f"{text!r} is not hours of the day", hint=hint)
    return first % MINUTES_PER_DAY, last


def _days(text: str) -> tuple[int, ...]:
    out: set[int] = set()
    for part in re.split(r"[,;\s]+", text.strip().casefold()):
        ends = [_day(end, text) for end in part.split("-")] if part not in GROUPS else []
        if part in GROUPS:
            out |= set(GROUPS[part])
        elif len(ends) == 1:
            out.add(ends[0])
        else:
            out |= {(ends[0] + i) % 7 for i in range((ends[1] - ends[0]) % 7 + 1)}
    return tuple(sorted(out))


def _day(text: str, whole: str) -> int:
    if text[:3] not in DAYS:
        raise InputError(f"{whole!r} are not days of the week", hint="write mon-fri, sat,sun, weekdays or weekend")
    return DAYS.index(text[:3])


def _instant(text: str, zone: str) -> int:
    try:
        naive = dt.datetime.fromisoformat(text)
    except ValueError:
        return instant_ms(text)
    return instant_ms(naive if naive.tzinfo else naive.replace(tzinfo=zone_of(zone)))


def zone_of(name: str) -> dt.tzinfo:
    """A time zone by its name."""
    try:
        return dt.UTC if name.upper() == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"no time zone is called {name!r}", hint="use a name such as UTC or Europe/Berlin") from error


def usd_by_step(
    base: Decimal, windows: Sequence[PriceWindow], zone: str, start_ms: int, step_ms: int, steps: int
) -> np.ndarray:
    """Dollars per GPU-hour in each step: the mean over its minutes; of several windows the one listed last holds."""
    if not windows:
        return np.full(steps, float(base))
    within = np.arange(max(1, step_ms // MS_PER_MIN)) * MS_PER_MIN
    at_ms = (start_ms + np.arange(steps)[:, None] * step_ms + within[None, :]).ravel()
    local = (at_ms + _offsets_ms(at_ms, zone)) // MS_PER_MIN
    minute, weekday = local % MINUTES_PER_DAY, (local // MINUTES_PER_DAY + 3) % 7  # 1970-01-01 was a Thursday
    price = np.full(len(at_ms), float(base))
    for window in windows:
        price[window.holds(minute, weekday, at_ms)] = float(window.usd_per_gpu_h)
    by_step = price.reshape(steps, -1)
    # A step under one price has it to the last digit.
    return np.where((by_step == by_step[:, :1]).all(axis=1), by_step[:, 0], by_step.mean(axis=1))


def _offsets_ms(at_ms: np.ndarray, zone: str) -> np.ndarray:
    """How far local time is ahead of UTC, hour by hour."""
    where = zone_of(zone)
    if where is dt.UTC:
        return np.zeros(len(at_ms), dtype=np.int64)
    hours, place = np.unique(at_ms // MS_PER_HOUR, return_inverse=True)
    ahead = [
        dt.datetime.fromtimestamp(int(h) * 3600, tz=where).utcoffset() or dt.timedelta() for h in hours.tolist()
    ]  # fmt: skip
    return np.array([int(a.total_seconds() * 1000) for a in ahead], dtype=np.int64)[place]
