"""How is an answer of the Prometheus API read?

The points of a series stay bytes until they are read as numbers in one go: a day of a fleet has millions of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import msgspec
import numpy as np

from gpuledger.telemetry.series import FARTHEST_MS, Points

# What msgspec raises on JSON it cannot read: broken, not UTF-8 inside, nested too deeply.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOTHING = msgspec.Raw()
_PUNCTUATION = b'[]" \t\r\n'


class Series(msgspec.Struct, frozen=True):
    """One series of an answer: its labels, and its points (a matrix) or its one point (a vector)."""

    metric: dict[str, str]
    values: msgspec.Raw = _NOTHING
    value: msgspec.Raw = _NOTHING


class Data(msgspec.Struct, frozen=True, rename="camel"):
    """What was asked for."""

    result_type: str = ""
    result: msgspec.Raw = _NOTHING


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """One answer of the API; `data` is anything but for queries."""

    status: str
    data: msgspec.Raw = _NOTHING
    error_type: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    is_partial: bool = False


class NotSeries(ValueError):
    """An answer that has no series."""


def series_of(data: msgspec.Raw) -> list[Series]:
    """The series of an answer to a query."""
    found = msgspec.json.decode(bytes(data) or b"{}", type=Data)
    if found.result_type not in ("matrix", "vector"):
        raise NotSeries(f"the answer is a {found.result_type or 'list'}, not series")
    return msgspec.json.decode(bytes(found.result) or b"[]", type=list[Series])


def add_series(points: Points, found: Iterable[Series], *, from_ms: int = 0) -> None:
    """Add the points of series from an instant on; `NotSeries` where they are not numbers."""
    for one in found:
        at_ms, values = numbers(one)
        inside = at_ms >= from_ms
        points.add_block(points.series(one.metric), at_ms[inside], values[inside])


def numbers(one: Series) -> tuple[np.ndarray, np.ndarray]:
    """Instants in ms and values of a series' points [[1768900000.5, "45"], ...]."""
    text = (bytes(one.values) or bytes(one.value)).translate(None, _PUNCTUATION)
    if not text:
        return np.zeros(0, np.int64), np.zeros(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.fromstring(text, np.float64, sep=",")
    except (ValueError, DeprecationWarning) as error:
        raise NotSeries("its points are not pairs of a time and a number") from error
    if len(numbers) % 2:
        raise NotSeries("its points are not pairs of a time and a number")
    if not (np.abs(numbers[::2]) < FARTHEST_MS / 1000).all():
        raise NotSeries("a time of its points is not an instant")
    return np.rint(numbers[::2] * 1000).astype(np.int64), numbers[1::2].copy()
