"""Which number does a cell hold: with a decimal point or a decimal comma, with or without thousands separated?"""

from __future__ import annotations

import re

_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_ONE_GROUP = re.compile(r"[+-]?\d{1,3},\d{3}")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")


class Ambiguous(ValueError):
    """A number such as 1,900, which is 1.9 in one country and 1900 in another."""


def plain_number(text: str, *, whole: bool = False) -> str:
    """The number as Python writes it, without a dollar sign; other text as it is.

    1,024,000 and 1,024.5 separate thousands; 2,5 and 1.024,50 have a decimal comma. 1,900 may be either and is refused,
    unless the number must be `whole`.
    """
    found = text.strip().removeprefix("$").strip()
    if _ONE_GROUP.fullmatch(found) and not whole and not found.startswith(("0,", "-0,", "+0,")):
        raise Ambiguous(found)
    if _GROUPED.fullmatch(found) and not found.startswith("0,"):
        return found.replace(",", "")
    if _DECIMAL_COMMA.fullmatch(found):
        return found.replace(".", "").replace(",", ".")
    return found


def has_decimal_comma(text: str) -> bool:
    """Whether a number is written with a decimal comma."""
    try:
        return "," in text and "," not in (found := plain_number(text)) and found != text.replace(",", "")
    except Ambiguous:
        return False
