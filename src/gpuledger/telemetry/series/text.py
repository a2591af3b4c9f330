"""How are lines of an exposition page, of OpenMetrics text and of a TSDB dump read?

DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45                      a page
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45 1768900000000        a page with times, in ms
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45 1768900000.5         OpenMetrics, in seconds
{UUID="GPU-1", __name__="DCGM_FI_DEV_GPU_UTIL", gpu="0"} 45 1768900000000    promtool tsdb dump
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gpuledger.telemetry.series.exporters import NAME

_METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_.]*="(?:[^"\\]|\\.)*"'
# Everything up to the closing brace is the series; it is looked up as it stands.
LINE = re.compile(
    rf"\s*(?P<series>{_METRIC}|(?:{_METRIC})?\s*\{{\s*(?:{_LABEL}[\s,]*)*\}})"
    r"\s+(?P<numbers>[^#]+)(?:#.*)?"
)
_SERIES = re.compile(rf"\s*(?P<name>{_METRIC})?\s*(?:\{{(?P<labels>.*)\}})?\s*", re.DOTALL)
_PAIR = re.compile(r'\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_.]*)\s*=\s*"(?P<text>(?:[^"\\]|\\.)*)"\s*,?')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
# Seconds below, milliseconds above, for any time from 2000 to 2100.
_SECONDS_BELOW = 1e11


class Sample(NamedTuple):
    """One line: the text of its series, its value, and its time in ms where the line has one."""

    series: str
    value: float
    at_ms: int | None


def sample(line: str) -> Sample | None:
    """The line as a sample; None where it is not one."""
    found = LINE.fullmatch(line)
    numbers = numbers_of(found["numbers"]) if found else None
    return Sample(found["series"], *numbers) if found and numbers else None


def numbers_of(text: str) -> tuple[float, int | None] | None:
    """The value and the time in ms that stand behind a series; None where they are not numbers."""
    words = text.split()
    try:
        value = float(words[0])
        if len(words) == 1:
            return value, None
        time = float(words[1])
        return (value, round(time * 1000 if abs(time) < _SECONDS_BELOW else time)) if len(words) == 2 else None
    except (ValueError, OverflowError, IndexError):
        return None


def series_labels(text: str) -> dict[str, str] | None:
    """The labels a series is written with, the metric's name among them; None where the text is not a series."""
    found = _SERIES.fullmatch(text)
    if found is None or (found["name"] is None and found["labels"] is None):
        return None
    labels = {NAME: found["name"]} if found["name"] else {}
    inner, place = found["labels"] or "", 0
    while place < len(inner):
        pair = _PAIR.match(inner, place)
        if pair is None:
            return labels if not inner[place:].strip() else None
        labels[pair["name"]] = _ESCAPE.sub(lambda e: _ESCAPED.get(e[1], e[0]), pair["text"])
        place = pair.end()
    return labels
