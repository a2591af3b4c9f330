"""What can be said of text that no tool is known to write: JSON, a column of numbers, or no table at all?"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from itertools import dropwhile

from gpuledger.telemetry.formats import FORMATS, HEAD_BYTES, NOT_SEEN, Fit, Format, Head, Kind, Seen
from gpuledger.telemetry.formats.refused import WAYS

MOST_KEYS, SHOWN_CHARS = 6, 40
# Of the lines of a table at least this share has the most frequent number of cells.
SAME_CELLS = 0.75
# Cells of more words than this are prose.
WORDS_OF_PROSE = 5
_SEPARATORS = ",;\t|"
_RECORD, _ROWS = f"{WAYS['nvidia']}; or {WAYS['rows']}", WAYS["rows"]
_KEY = re.compile(r'"([^"\\\n]{1,40})"\s*:')
_TIME = re.compile(r"(?i)time|date|stamp")
_NUMBER = re.compile(r"\s*-?\d+(\.\d*)?([eE]-?\d+)?\s*(%|W|mW|MiB|MB)?\s*")


def _json(head: Head) -> Seen:
    return NOT_SEEN if _is_result(head) else _keys(head)


def _result(head: Head) -> Seen:
    return _keys(head) if _is_result(head) else NOT_SEEN


def _is_result(head: Head) -> bool:
    """Whether it is one object of single values, none of them a time."""
    if len(head.first) >= HEAD_BYTES or not head.first.lstrip().startswith(b"{"):
        return False
    try:
        found = json.loads("\n".join(head.lines))
    except ValueError:
        return False
    return isinstance(found, dict) and not any(
        isinstance(value, dict | list) or _TIME.search(key) for key, value in found.items()
    )


def _keys(head: Head) -> Seen:
    """What the values are called, as far as the first lines say."""
    text = "\n".join(head.lines).lstrip()
    if not re.match(r'(\[\s*)?\{\s*["}]', text):
        return NOT_SEEN
    keys = list(dict.fromkeys(_KEY.findall(text)))
    more = ", ..." if len(keys) > MOST_KEYS else ""
    return Seen(Fit.LIKELY, f"the keys {', '.join(keys[:MOST_KEYS])}{more}" if keys else "an empty object")


def _numbers(head: Head) -> Seen:
    lines = _whole_lines(head)
    alone = len(lines) > 1 and _are_numbers(lines)
    return Seen(Fit.LIKELY, f"the lines {', '.join(lines[:3])}") if alone else NOT_SEEN


def _are_numbers(lines: list[str]) -> bool:
    return all(_NUMBER.fullmatch(line) for line in lines)


def _text(head: Head) -> Seen:
    """Text whose lines do not have the same number of cells."""
    lines = _whole_lines(head)
    words = len(lines[0].split()) / (lines[0].count(",") + 1) if lines else 0
    prose = len(lines) == 1 and words >= WORDS_OF_PROSE
    if not lines or (len(lines) > 1 and _are_numbers(lines[1:])) or (_is_table(lines) and not prose):
        return NOT_SEEN
    return Seen(Fit.LIKELY, f"the first line {lines[0].strip()[:SHOWN_CHARS]!r}")


def _is_table(lines: list[str]) -> bool:
    """Whether most lines have the same number of cells, by some separator."""
    for mark in (one for one in _SEPARATORS if one in lines[0]):
        cells = Counter(map(len, csv.reader(lines, delimiter=mark)))
        most, times = max(cells.items(), key=lambda pair: pair[1] * (pair[0] > 1))
        if most > 1 and times > SAME_CELLS * cells.total():
            return True
    return False


def _whole_lines(head: Head) -> list[str]:
    """The first lines that are not blank, without comments above them and without one that is cut."""
    lines = head.lines[:-1] if len(head.first) >= HEAD_BYTES else head.lines
    filled = [line for line in lines if line.strip()]
    return list(dropwhile(lambda line: line.startswith("#"), filled)) or filled


for _key, _name, _what, _way, _score in (
    ("json", "JSON", "JSON of a kind that is not known", _ROWS, _json),
    (
        "json_result",
        "JSON of one result",
        "JSON of one result without a time, not samples of GPUs",
        _RECORD,
        _result,
    ),
    ("numbers", "numbers", "a column of numbers: nothing says of what, or when", _ROWS, _numbers),
    ("text", "text", "text; no table and no log of a tool that is known", _RECORD, _text),
):
    FORMATS.register(_key)(Format(_name, Kind.REFUSED, _score, what=_what, way_out=_way))
