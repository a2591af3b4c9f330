"""How is one figure written for a reader?"""

from __future__ import annotations

from gpuledger.units import Unknown, utc

NOT_KNOWN = "not known"


def number(value: float | int | Unknown | None, digits: int = 1) -> str:
    """A number with thousands apart, or that it is not known."""
    if value is None or isinstance(value, Unknown):
        return NOT_KNOWN
    return f"{value:,.{digits}f}"


def percent(value: float | Unknown | None, digits: int = 1) -> str:
    """A percentage."""
    text = number(value, digits)
    return text if text == NOT_KNOWN else f"{text} %"


def count(value: int, one: str, many: str = "") -> str:
    """ "1 GPU", "50 GPUs"."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def instant(at_ms: int) -> str:
    """An instant in UTC, to the minute."""
    return f"{utc(at_ms):%Y-%m-%d %H:%M}"


def size(value: int) -> str:
    """Bytes in the unit that keeps the number short."""
    amount, units = float(value), ["TB", "GB", "MB", "kB", "B"]
    while amount >= 1000 and len(units) > 1:
        amount, _ = amount / 1000, units.pop()
    return f"{amount:,.{0 if units[-1] == 'B' else 1}f} {units[-1]}"
