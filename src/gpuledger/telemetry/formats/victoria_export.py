"""How is an export of VictoriaMetrics (/api/v1/export) read?

{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","UUID":"GPU-1"},"values":[45,46],"timestamps":[1768900000000,...]}

One series per line, or several lines for a long one; times in ms; null where a value is missing.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.series import FARTHEST_MS, Points
from gpuledger.telemetry.series.answers import UNREADABLE
from gpuledger.telemetry.series.opening import MOST_WRONG_LINES, SHOWN_CHARS, opened, read_once
from gpuledger.telemetry.series.pivot import pivot
from gpuledger.telemetry.unpacking import text_lines

_START = re.compile(rb'\s*\{\s*"metric"\s*:\s*\{')


class _Line(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    values: list[float | str | None]
    timestamps: list[int]


def _score(head: Head) -> Seen:
    """An object that starts with the labels of a metric."""
    return sure(_START.match(head.first) and 'JSON that starts {"metric": {')


def _read(path: Path) -> Opened:
    """All series are read here: a row needs the metrics of its device, which stand far apart."""
    points, wrong = Points(), list[tuple[int, str]]()
    decoder = msgspec.json.Decoder(_Line)
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        try:
            one = decoder.decode(line)
            at_ms, values = _numbers(one)
        except (*UNREADABLE, ValueError, OverflowError):
            wrong.append((number, line[:SHOWN_CHARS]))
            if len(wrong) > MOST_WRONG_LINES:
                raise FileFault(
                    path, f"more than {MOST_WRONG_LINES:,} lines are not series", hint="export it again"
                ) from None
        else:
            points.add_block(points.series(one.metric), at_ms, values)
    return opened(path, pivot(points), wrong)


def _numbers(one: _Line) -> tuple[np.ndarray, np.ndarray]:
    """The instants in ms and the values of a line, NaN where there is none ("Infinity" and the like are text)."""
    if len(one.values) != len(one.timestamps):
        raise ValueError("as many values as times")
    at_ms = np.array(one.timestamps, np.int64)
    if (np.abs(at_ms) >= FARTHEST_MS).any():
        raise ValueError("a time is not an instant")
    return at_ms, np.array([np.nan if v is None else float(v) for v in one.values], np.float64)


FORMATS.register("victoria_metrics")(
    Format("export of VictoriaMetrics", Kind.TELEMETRY, _score, lambda path: read_once(path, _read))
)
