"""What does `gpustat --json` print? The time, the host, and the GPUs, in the units of gpustat; null for unsupported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.json_text import documents, json_rows, plain
from gpuledger.telemetry.formats.logs import Row, Wrong

_MARKS = ('"query_time"', '"gpus"')
_LABELS = {"uuid": "uuid", "name": "model"}
_COLUMNS = {
    "index": "gpu",
    "temperature.gpu": "temperature [C]",
    "utilization.gpu": "util [%]",
    "utilization.enc": "encoder [%]",
    "utilization.dec": "decoder [%]",
    "power.draw": "power [W]",
    "enforced.power.limit": "power limit [W]",
    "memory.used": "memory used [MiB]",
    "memory.total": "memory total [MiB]",
}


def _score(head: Head) -> Seen:
    """By its two outermost keys."""
    text = "\n".join(head.lines)
    return sure(all(mark in text for mark in _MARKS) and " and ".join(_MARKS))


def _read(path: Path) -> Opened:
    return json_rows(path, "gpustat --json", _rows)


def _rows(path: Path) -> Iterator[Row | Wrong]:
    for round_ in documents(path):
        if isinstance(round_, Wrong):
            yield round_
            continue
        gpus = round_.get("gpus") if isinstance(round_, dict) else None
        for gpu in gpus if isinstance(gpus, list) else ():
            labels = {"host": round_.get("hostname"), "time": round_.get("query_time")}
            labels |= {column: gpu.get(key) for key, column in _LABELS.items()}
            cells = {column: plain(gpu.get(key)) for key, column in _COLUMNS.items()}
            yield {column: str(cell) for column, cell in (labels | cells).items() if cell not in (None, "")}


FORMATS.register("gpustat_json")(Format("gpustat --json", Kind.TELEMETRY, _score, _read))
