"""How is a figure written for a reader, known or not?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.efficiency.naming import short_uuid
from gpuledger.errors import UnknownName
from gpuledger.report.adding import places_for
from gpuledger.units import Bounds, Range, Unknown, utc

NARROW = "\u202f"  # narrow no-break space: a unit never starts a line of its own
MINUS = "\u2212"
TIED = re.compile(r"(?<=\d)[ \u202f](?=%|kg\b|kWh\b)")  # the space within a figure


@cache
def _names() -> dict[str, dict[str, str]]:
    return load_toml(data_dir("gpuledger.report", "names.toml"), dict[str, dict[str, str]])


def number(value: float | Decimal, places: int = 0) -> str:
    """1234567.8 as 1,234,568; a true minus sign, and never a negative zero."""
    text = f"{abs(value):,.{places}f}"
    return f"{MINUS}{text}" if value < 0 and any(d in text for d in "123456789") else text


def percent(value: float) -> str:
    """70.4 %."""
    return f"{number(value, 1)}{NARROW}%"


def round_percent(value: float) -> str:
    """70 %, for limits and targets."""
    return f"{number(value)}{NARROW}%"


def points(value: float) -> str:
    """A difference of two percentages."""
    return f"{number(value, 1)}{NARROW}pp"


def factor(value: float) -> str:
    """A ratio such as PIF, three places."""
    return number(value, 3)


def whole(value: float) -> str:
    """A count."""
    return number(value)


def amount(written: str, one: str, many: str = "") -> str:
    """An amount as written, and its unit: "1 GPU-hour", "1.5 GPU-hours"."""
    return f"{written} {one if written == '1' else many or one + 's'}"


def gpus(count: int) -> str:
    """1 GPU, 2 GPUs."""
    return amount(number(count), "GPU")


def tenth(value: float) -> str:
    """One place: hours, watts, GPUs."""
    return number(value, 1)


def signed(value: float) -> str:
    """A slope, with its sign."""
    return f"+{number(value, 3)}" if value > 0 else number(value, 3)


def loose(value: float) -> str:
    """A figure of whatever size: one place from ten up (and for nothing at all), else three."""
    return number(value, 1 if abs(value) >= 10 or not value else 3)


def usd(value: float | Decimal, places: int = 2) -> str:
    """Dollars, to the cent unless `places` says otherwise; the sign comes before the dollar."""
    text = number(value, places)
    return f"{MINUS}${text.removeprefix(MINUS)}" if text.startswith(MINUS) else f"${text}"


def money(value: float | Decimal) -> str:
    """Dollars of any size: to the cent, or with three digits where the whole is less than a dollar."""
    return usd(value, places_for(value))


def rate(value: float | Decimal) -> str:
    """Dollars an hour: four places where the fourth says something."""
    return usd(value, 2 if round(value, 2) == round(value, 4) else 4)


def instant(value: float) -> str:
    """A stored instant, UTC, to the minute."""
    return utc(int(value)).strftime("%Y-%m-%d %H:%M")


def shares(value: Mapping[str, float]) -> str:
    """A small table of shares on one line, largest first."""
    order = sorted(value.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{plain(name)} {percent(share)}" for name, share in order if share > 0) or "none"


def plain(value: object) -> str:
    """A name as people write it; an absent one is said to be absent."""
    if value is None or value == "":
        return "none given"
    return str(value).replace("compute_bound", "compute-bound")


def remark(value: object) -> str:
    """Words that may be absent without being missed."""
    return "" if value is None else str(value)


def tie(text: str) -> str:
    """Keep a figure and its %, kg or kWh on one line."""
    return TIED.sub(NARROW, text)


def capital(words: str) -> str:
    """Words with a capital."""
    return words[:1].upper() + words[1:]


def title(value: object) -> str:
    """A name with a capital."""
    return capital(plain(value))


def band(value: object) -> str:
    """The name of a utilization band."""
    return _names()["bands"].get(str(value), str(value))


def series(value: object) -> str:
    """The name of a series in words."""
    return _names()["series"].get(str(value), str(value))


def model(value: object) -> str:
    """A GPU's model without the maker's name, which its own name implies."""
    words = plain(value)
    return next((words.removeprefix(f"{m} ") for m in _names()["makers"] if words.startswith(f"{m} ")), words)


def device(value: object) -> str:
    """Enough of a device's UUID to find it."""
    return short_uuid(str(value))


def yes_no(value: object) -> str:
    """A yes or a no."""
    return "yes" if value else "no"


_STYLES = (
    percent, round_percent, points, factor, whole, tenth, signed, loose, usd, money, rate, instant, shares, plain,
    remark, title, band, series, model, device, yes_no,
)  # fmt: skip
STYLES: dict[str, Callable[[Any], str]] = {style.__name__: style for style in _STYLES}
WORDS = frozenset({"plain", "remark", "title", "band", "series", "model", "device", "yes_no"})


def write(value: object, style: str) -> str:
    """A figure in its style; a range as middle (low to high); an unknown with its reason."""
    if style not in STYLES:
        raise UnknownName("style", style, STYLES)
    form = STYLES[style]
    if isinstance(value, Unknown):
        return str(value)
    if value == "" and style not in WORDS:
        return ""  # nothing to say here, which is not the same as not known
    if isinstance(value, Range):
        low, high = form(value.low), form(value.high)
        if isinstance(value, Bounds) and low != high:
            return f"{low.partition(NARROW)[0]} to {high}"
        return form(value.middle) if low == high else f"{form(value.middle)} ({low.partition(NARROW)[0]} to {high})"
    if value is None and style not in WORDS:
        return "none"
    return form(value)


def sort_key(value: object) -> float | str | None:
    """What a column sorts by; None sorts last."""
    if isinstance(value, Range):
        return value.middle
    if value is None or isinstance(value, Unknown):
        return None
    if isinstance(value, (bool, int, float, Decimal)):
        return float(value)
    if isinstance(value, Mapping):
        return max(value.values(), default=0.0)
    return str(value)


def period(start_ms: int, end_ms: int) -> str:
    """The window of a statement in words."""
    return f"{instant(start_ms)} to {instant(end_ms)} UTC"
