"""What does `nvidia-smi -q -x` print?

XML of all GPUs at one instant, as drivers since 450 write it (versions 10 to 13); `-l` repeats the document. Of a board
the reading of the GPU counts, not that of the module it is on. A board that is cut into MIG slices has no utilization.
"""

from __future__ import annotations

import datetime as dt
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Row, Wrong, mig_note, of_rows
from gpuledger.telemetry.unpacking import text_lines

_MARK = re.compile(rb"<nvidia_smi_log>|nvsmi_device_v\d+\.dtd")
_POWER = ("gpu_power_readings", "power_readings")
# By column the places it may stand in, the first that holds a reading counting.
_PLACES = {
    "util [%]": ("utilization/gpu_util",),
    "copy util [%]": ("utilization/memory_util",),
    "encoder [%]": ("utilization/encoder_util",),
    "decoder [%]": ("utilization/decoder_util",),
    "power [W]": tuple(
        f"{block}/{name}" for block in _POWER for name in ("average_power_draw", "power_draw", "instant_power_draw")
    ),
    "power limit [W]": tuple(
        f"{block}/{name}" for block in _POWER for name in ("current_power_limit", "enforced_power_limit", "power_limit")
    ),
    "default limit [W]": tuple(f"{block}/default_power_limit" for block in _POWER),
    "sm clock [MHz]": ("clocks/sm_clock",),
    "memory clock [MHz]": ("clocks/mem_clock",),
    "temperature [C]": ("temperature/gpu_temp",),
    "memory temperature [C]": ("temperature/memory_temp",),
    "memory used [MiB]": ("fb_memory_usage/used",),
    "memory free [MiB]": ("fb_memory_usage/free",),
    "memory total [MiB]": ("fb_memory_usage/total",),
}
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?) ?(?:%|W|MHz|C|MiB)")
MOST_LINES = 200_000  # of a document; a GPU takes some 500
_STAMP = "%a %b %d %H:%M:%S %Y"


def _score(head: Head) -> Seen:
    """By the document's type or its outermost element."""
    found = _MARK.search(head.first)
    return sure(found and found[0].decode())


def _read(path: Path) -> Opened:
    """The documents are read as rows are asked for."""
    first = next(_documents(path), None)
    if isinstance(first, Wrong) or first is None or first.find("gpu") is None:
        raise FileFault(path, "it is a report of nvidia-smi -q -x without a GPU", hint="run nvidia-smi -q -x again")
    cut = [len(gpu.findall("mig_devices/mig_device")) for gpu in first.iter("gpu") if _in_slices(gpu)]
    return of_rows(path, "nvidia-smi -q -x", _rows, *mig_note(len(cut), sum(cut)))


def _in_slices(gpu: ET.Element) -> bool:
    return (gpu.findtext("mig_mode/current_mig") or "").strip() == "Enabled"


def _rows(path: Path) -> Iterator[Row | Wrong]:
    for report in _documents(path):
        if isinstance(report, Wrong):
            yield report
            continue
        time = _time(report)
        for gpu in report.iter("gpu"):
            names = {"uuid": "uuid", "model": "product_name"}
            row = {column: (gpu.findtext(place) or "").strip() for column, place in names.items()}
            row |= {column: _cell(gpu, places) for column, places in _PLACES.items()}
            yield row | ({"time": time} if time else {})


def _cell(gpu: ET.Element, places: tuple[str, ...]) -> str:
    """A reading without its unit; empty where the GPU does not report it."""
    found = (_NUMBER.fullmatch((gpu.findtext(place) or "").strip()) for place in places)
    return next((match[1] for match in found if match), "")


def _time(report: ET.Element) -> str:
    """The time of a document, as ISO 8601; empty where it has none."""
    text = (report.findtext("timestamp") or "").strip()
    try:
        return dt.datetime.strptime(text, _STAMP).isoformat(" ")
    except ValueError:
        return ""


def _documents(path: Path) -> Iterator[ET.Element | Wrong]:
    """The documents of a file, one after the other; one that is cut off is a wrong row."""
    lines: list[str] = []
    for number, line in enumerate(text_lines(path), 1):
        if not lines and "<nvidia_smi_log>" not in line:
            continue
        if len(lines) < MOST_LINES:
            lines.append(line)
        if "</nvidia_smi_log>" in line:
            yield _parsed(lines, number)
            lines = []
    if lines:
        yield Wrong(number, lines[0])


def _parsed(lines: list[str], number: int) -> ET.Element | Wrong:
    text = "\n".join(lines)
    try:  # from its first element on: without a document type it can define no entities
        return ET.fromstring(text[text.index("<nvidia_smi_log>") :])  # noqa: S314
    except ET.ParseError:
        return Wrong(number, lines[0])


FORMATS.register("nvidia_smi_xml")(Format("nvidia-smi -q -x", Kind.TELEMETRY, _score, _read))
