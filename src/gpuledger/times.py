"""Which instant, or what length of time, did the user write; and how is a length written for people?"""

from __future__ import annotations

import datetime as dt
import re

from gpuledger.errors import InputError
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_MIN, MS_PER_S, Unknown

_UNIT_MS = {"w": 7 * MS_PER_DAY, "d": MS_PER_DAY, "h": MS_PER_HOUR, "m": 60 * MS_PER_S, "s": MS_PER_S}
MOST_MS = 365_250 * MS_PER_DAY
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_END_MS = round(dt.datetime(_LAST_YEAR + 1, 1, 1, tzinfo=dt.UTC).timestamp()) * MS_PER_S
# No GPU was sampled before March 1973: a smaller number is seconds, or a day such as 20260120.
_SECONDS_UP_TO = 100_000_000_000
_DAYS_WITH_HOURS = 7
# The least that a figure per month may rest on.
MONTH_FROM_MS = MS_PER_DAY
# Readers take turns, and scrapes are lost: who was seen up to this near both ends of a window was there throughout.
EDGES_MS = MS_PER_HOUR
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([wdhms]?)")


Instant = str | int | dt.date | dt.datetime
Length = str | dt.timedelta


def instant_ms(given: Instant) -> int:
    """A day or time as milliseconds since 1970: ISO 8601 text, a date, a datetime, or milliseconds already.

    Without a zone it is UTC.
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return _milliseconds(given)
    text = given.isoformat() if isinstance(given, dt.date) else str(given)
    try:
        when = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            f"{text!r} is not a time", hint="write 2026-01-20, 2026-01-20T08:30 or 2026-01-20T08:30+01:00"
        ) from None
    when = when if when.tzinfo else when.replace(tzinfo=dt.UTC)
    if not _FIRST_YEAR <= when.year <= _LAST_YEAR:
        raise InputError(
            f"{text!r} is not between {_FIRST_YEAR} and {_LAST_YEAR}",
            hint="leave it out for all samples, or write a time such as 2026-01-20",
        )
    return round(when.timestamp() * MS_PER_S)


def _milliseconds(given: int) -> int:
    """A whole number as milliseconds; refused where it may be seconds, and where no sample can be."""
    if 0 < given < _SECONDS_UP_TO:
        hint = f"for seconds since 1970 write {given * MS_PER_S}; or write a time such as 2026-01-20"
        raise InputError(f"{given} is a time in 1970 to 1973 if it is milliseconds", hint=hint)
    if not 0 <= given < _END_MS:
        hint = "write milliseconds since 1970, or a time such as 2026-01-20"
        raise InputError(f"{given} ms since 1970 is not between {_FIRST_YEAR} and {_LAST_YEAR}", hint=hint)
    return given


def length_ms(given: Length, *, bare: str = "") -> int:
    """A length such as 7d, 12h or 90m, or a timedelta, in milliseconds; `bare` is the unit of a number without one."""
    text = f"{given.total_seconds()}s" if isinstance(given, dt.timedelta) else str(given)
    found = _LENGTH.fullmatch(text.strip().lower())
    unit = (found[2] or bare) if found else ""
    amount = float(found[1]) * _UNIT_MS[unit] if found and unit else 0.0
    if amount > MOST_MS:
        hint = "give a shorter length, or leave it out"
        raise InputError(f"{_cut(text)!r} is longer than a thousand years", hint=hint)
    length = round(amount)
    if not length:
        raise InputError(
            f"{text!r} is not a length of time", hint="write a number and w, d, h, m or s: 7d, 12h, 90m, 60s"
        )
    return length


def duration(length_ms: int) -> str:
    """A length of time in one or two units: 45 s, 31 min, 2 h 05 min, 3 d 4 h."""
    if length_ms < MS_PER_MIN:
        return f"{length_ms // MS_PER_S} s"
    if length_ms < MS_PER_HOUR:
        return f"{length_ms // MS_PER_MIN} min"
    if length_ms < MS_PER_DAY:
        minutes = length_ms % MS_PER_HOUR // MS_PER_MIN
        return f"{length_ms // MS_PER_HOUR} h" + (f" {minutes:02d} min" if minutes else "")
    days, hours = length_ms // MS_PER_DAY, length_ms % MS_PER_DAY // MS_PER_HOUR
    return f"{days} d" + (f" {hours} h" if hours and days < _DAYS_WITH_HOURS else "")


def too_short_for_a_month(seen_ms: float) -> Unknown | None:
    """Why the time that was seen says nothing of a month; None where it is long enough.

    It lasts from the first sample to the end of the last one's span: samples of a whole day are a day.
    """
    if seen_ms >= MONTH_FROM_MS:
        return None
    return Unknown(f"seen for {short_duration(seen_ms)} only; a month needs 24 h or more")


def lasts_for_a_month(seen_ms: int, window_ms: int) -> bool:
    """Whether a GPU was there for long enough: `seen_ms` in all, `window_ms` of it in the window that is asked for.

    A GPU that was seen for a day and more counts in a window of a day whose very ends lack its samples.
    """
    return min(seen_ms, window_ms + EDGES_MS) >= MONTH_FROM_MS


def short_duration(length_ms: float) -> str:
    """A length of time; below a second in tenths."""
    return duration(round(length_ms)) if length_ms >= MS_PER_S else f"{length_ms / MS_PER_S:.1f} s"


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def today() -> dt.date:
    """The day it is, in UTC: the age of a price is counted from it."""
    return dt.datetime.now(tz=dt.UTC).date()
