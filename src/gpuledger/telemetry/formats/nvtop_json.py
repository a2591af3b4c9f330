"""What does `nvtop -s` print? A list of devices, integrated graphics among them, without a time or an identifier.

Values are text with a unit ("73%"), or null where a device does not report them. Release 3.3.0 forgets commas.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.json_text import documents, json_rows, plain
from gpuledger.telemetry.formats.logs import BATCH_ROWS, Row, Wrong
from gpuledger.units import some

_COLUMNS = {
    "gpu_util": "util [%]",
    "encode": "encoder [%]",
    "decode": "decoder [%]",
    "power_draw": "power [W]",
    "temp": "temperature [C]",
    "gpu_clock": "sm clock [MHz]",
    "mem_clock": "memory clock [MHz]",
    "mem_used": "memory used [B]",
    "mem_free": "memory free [B]",
    "mem_total": "memory total [B]",
}


def _score(head: Head) -> Seen:
    """By two of its keys."""
    text = "\n".join(head.lines)
    return sure('"device_name"' in text and '"gpu_clock"' in text and '"device_name" and "gpu_clock"')


def _read(path: Path) -> Opened:
    integrated = dict.fromkeys(
        str(device.get("device_name"))
        for _, device in islice(_devices(path), BATCH_ROWS)
        if isinstance(device, dict) and device.get("fan_speed") == "CPU Fan"
    )
    notes = [f"nvtop lists integrated graphics like a GPU: {some([*integrated])}"] if integrated else []
    return json_rows(path, "nvtop -s", _rows, *notes)


def _devices(path: Path) -> Iterator[tuple[int, Any | Wrong]]:
    """The devices with their place in the list."""
    for devices in documents(path):
        yield from enumerate([devices] if isinstance(devices, Wrong) else devices if isinstance(devices, list) else ())


def _rows(path: Path) -> Iterator[Row | Wrong]:
    for place, device in _devices(path):
        if isinstance(device, Wrong):
            yield device
        elif isinstance(device, dict):
            cells = {"gpu": str(place), "model": str(device.get("device_name") or "")}
            cells |= {column: plain(device.get(key)) for key, column in _COLUMNS.items()}
            yield {column: cell for column, cell in cells.items() if cell}


FORMATS.register("nvtop_json")(Format("nvtop -s", Kind.TELEMETRY, _score, _read))
