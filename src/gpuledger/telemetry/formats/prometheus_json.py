"""How is an answer of the Prometheus API read, saved to a file by curl or a script?"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from gpuledger.bounds import whole
from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.answers import UNREADABLE, Answer, NotSeries, add_series, series_of
from gpuledger.telemetry.series.opening import opened, read_once
from gpuledger.telemetry.series.pivot import pivot
from gpuledger.telemetry.unpacking import open_plain, unreadable

_START = re.compile(rb'\s*\{\s*"(status|data|resultType)"\s*:')


def _score(head: Head) -> Seen:
    """An object that starts as every answer of the API does."""
    answer = _START.match(head.first) and (b'"status"' in head.first or b'"resultType"' in head.first)
    return sure(answer and "JSON that starts as an answer of the API")


def _read(path: Path) -> Opened:
    """The answers of /api/v1/query_range or /api/v1/query are read whole: one, or one per line."""
    points, notes = Points(), list[str]()
    for number, raw in enumerate(_answers(path), start=1):
        try:
            answer = msgspec.json.decode(raw, type=Answer)
            if answer.status != "success":
                raise FileFault(
                    path,
                    f"answer {number} is an error of the server: {answer.error or answer.error_type}",
                    hint="run the query again and save its answer",
                )
            if answer.is_partial:
                raise FileFault(
                    path,
                    f"answer {number} is partial: the server could not reach all of its data",
                    hint="run the query again when all stores of the server answer",
                )
            notes += [f"answer {number}: the server warns: {words}" for words in answer.warnings or ()]
            add_series(points, series_of(answer.data))
        except (*UNREADABLE, NotSeries) as error:
            raise FileFault(
                path,
                f"answer {number} is not a whole answer of the Prometheus API: {error}",
                hint="save the answer of /api/v1/query_range again; a range that is too long may have been cut off",
            ) from error
    found = opened(path, pivot(points), [])
    found.notes += notes
    return found


def _answers(path: Path) -> list[bytes]:
    """The answers of the file: all of it, or its lines where each of them is one."""
    try:
        with open_plain(path) as file:
            raw = whole(file, path)
    except OSError as error:
        raise unreadable(path, error) from error
    lines = [line for line in raw.splitlines() if line.strip()]
    return lines if len(lines) > 1 and all(_START.match(line) for line in lines) else [raw]


FORMATS.register("prometheus")(
    Format("answer of the Prometheus API", Kind.TELEMETRY, _score, lambda path: read_once(path, _read))
)
