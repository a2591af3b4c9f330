"""Which number does a text hold: with a decimal point or a decimal comma, with or without thousands separated?

1,900 is 1900 in one country and 1.9 in another: it has two readings, and neither is taken in silence. The other values
of its column may tell: 1,900.50 and 384,00 can be read in one way only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from gpuledger.errors import InputError


class Mark(StrEnum):
    """What stands before the decimals."""

    POINT = "."
    COMMA = ","


_SPACES = " \u00a0\u2009\u202f"
_SIGNED = re.compile(
    rf"(?P<bracket>\()?(?P<sign>[+-]?)(?:(?:US)?\$[{_SPACES}]?(?P<after>[+-]?))?"
    rf"(?P<digits>[\d.,][\d.,'’{_SPACES}]*(?:[eE][+-]?\d+)?)(?(bracket)\))"
)
_GROUPS = rf"[1-9]\d{{0,2}}(?P<between>[%s'’{_SPACES}])\d{{3}}(?:(?P=between)\d{{3}})*"
# Lakhs are separated by two digits: 1,90,000. Programs write small numbers with exponents: 1e-05.
_FORMS = {
    Mark.POINT: re.compile(
        rf"(?:{_GROUPS % ','}|[1-9]\d?(?:,\d\d)+,\d{{3}}|\d+)(?:\.\d*)?|\.\d+|(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+"
    ),
    Mark.COMMA: re.compile(rf"(?:{_GROUPS % '.'}|\d+)(?:,\d+)?|\d+(?:,\d+)?[eE][+-]?\d+"),
}
_NO_DIGITS = re.compile(rf"['’{_SPACES}]")


class Unclear(ValueError):
    """A text that is no number, or may be two; `hint` says what to write instead."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


class Ambiguous(Unclear):
    """A number such as 1,900, which is 1.9 in one country and 1900 in another."""


@lru_cache(maxsize=1 << 14)
def readings(text: str) -> Mapping[Mark, Decimal]:
    """The numbers a text may be, by what stands before its decimals; none where it is no number.

    A dollar sign, and brackets around what is below zero, may be there.
    """
    found = _SIGNED.fullmatch(text.strip())
    if found is None or (found["sign"] and (found["after"] or found["bracket"])):
        return {}
    below = bool(found["bracket"]) or "-" in {found["sign"], found["after"]}
    out = {}
    for mark, form in _FORMS.items():
        if form.fullmatch(found["digits"]):
            other = "," if mark is Mark.POINT else "."
            plain = Decimal(_NO_DIGITS.sub("", found["digits"]).replace(other, "").replace(",", "."))
            out[mark] = -plain if below else plain
    return out


@dataclass(frozen=True)
class Shown:
    """What stands before the decimals of a column, and the value that shows it; None where no value does."""

    mark: Mark | None = None
    text: str = ""


NOTHING = Shown()


def shown_by(texts: Iterable[str], *, points: bool = False) -> Shown:
    """What a column shows: its first value with one reading; `points`: points in it are known to be decimal points."""
    for text in texts:
        found = readings(text)
        if len(found) == 1:
            return Shown(next(iter(found)), text)
        if points and found and "." in text and "," not in text:
            return Shown(Mark.POINT, text)
    return NOTHING


def number_in(text: str, column: Shown = NOTHING, *, points: bool = True) -> Decimal:
    """The number of a text in a column; an `Unclear` where it is none, or may be two.

    `points`: a point before three digits stands before decimals where the column does not show otherwise.
    """
    found = readings(text)
    if not found:
        raise Unclear(f"{text!r} is not a number", "write a plain number such as 55.04")
    if column.mark is not None:
        if column.mark in found:
            return found[column.mark]
        raise Ambiguous(f"{text!r} and {column.text!r} have other decimal signs", "write both with a decimal point")
    if len({*found.values()}) == 1 or (points and "," not in text):
        return next(iter(found.values()))
    one, other = (f"{number:f}" for number in sorted(found.values(), key=abs))
    # What is to be written instead must not have two readings again.
    clear = f"{one}0" if "." in text else one
    raise Ambiguous(f"{text!r} can be {one} or {other}", f"write {clear} or {other}")


def number_given(text: str, name: str, kind: str, hint: str, *, points: bool = True) -> Decimal:
    """The number a person gave by itself under a name, such as an option; 2,50 is refused with the number to write."""
    lead = f"{name}: " if name else ""
    try:
        found = number_in(text, points=points)
    except Ambiguous as error:
        raise InputError(f"{lead}{error.problem}", hint=error.hint) from None
    except Unclear:
        raise InputError(f"{name} {text!r} is not a {kind}".lstrip(), hint=hint) from None
    if Mark.POINT not in readings(text):
        raise InputError(f"{lead}{text!r} has a decimal comma", hint=f"write {found:f}")
    return found


def plain_number(text: str, *, whole: bool = False) -> str:
    """The number as Python writes it, without a dollar sign; other text as it is.

    1,024,000 and 1,024.5 separate thousands; 2,5 and 1.024,50 have a decimal comma. 1,900 may be either and is refused,
    unless the number must be `whole`.
    """
    bare = text.strip().removeprefix("$").strip()
    if "," not in bare:
        return bare
    found = readings(bare)
    if whole and Mark.POINT in found:
        return f"{found[Mark.POINT]:f}"
    return f"{number_in(bare):f}" if found else bare


def has_decimal_comma(text: str) -> bool:
    """Whether a number is written with a decimal comma."""
    return "," in text and readings(text).keys() == {Mark.COMMA}
