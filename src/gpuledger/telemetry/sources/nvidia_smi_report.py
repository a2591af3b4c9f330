"""What does `nvidia-smi -q -x` print?

XML of all GPUs at one instant, as drivers since 450 write it; `-l` repeats the document. A row is a GPU of a document,
in the columns of nvidia-smi's queries. Of a board the reading of the GPU counts, not that of the module it is on.
"""

from __future__ import annotations

import datetime as dt
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened
from gpuledger.telemetry.tool_logs import Rows, Wrong, layout, of_log, without_asking
from gpuledger.telemetry.unpacking import text_lines

_MARK = re.compile(rb"<nvidia_smi_log>|nvsmi_device_v\d+\.dtd")
_POWER = ("gpu_power_readings", "power_readings")
# By column of a query the places it may stand in, the first that holds a reading counting.
_PLACES = {
    "uuid": ("uuid",),
    "name": ("product_name",),
    "utilization.gpu [%]": ("utilization/gpu_util",),
    "utilization.memory [%]": ("utilization/memory_util",),
    "utilization.encoder [%]": ("utilization/encoder_util",),
    "utilization.decoder [%]": ("utilization/decoder_util",),
    "power.draw [W]": tuple(
        f"{block}/{name}"
        for block in _POWER
        for name in ("average_power_draw", "power_draw", "instant_power_draw")
    ),
    "power.limit [W]": tuple(
        f"{block}/{name}" for block in _POWER for name in ("current_power_limit", "enforced_power_limit", "power_limit")
    ),
    "clocks.current.sm [MHz]": ("clocks/sm_clock",),
    "clocks.current.memory [MHz]": ("clocks/mem_clock",),
    "temperature.gpu": ("temperature/gpu_temp",),
    "temperature.memory": ("temperature/memory_temp",),
    "memory.used [MiB]": ("fb_memory_usage/used",),
    "memory.free [MiB]": ("fb_memory_usage/free",),
}  # fmt: skip
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?) ?(?:%|W|MHz|C|MiB)")
MOST_LINES = 200_000  # of a document; a GPU takes some 500
_STAMP = "%a %b %d %H:%M:%S %Y"


class NvidiaSmiReport:
    """The reports of nvidia-smi -q -x."""

    def fits(self, head: Head) -> Fit:
        """By the document's type or its outermost element."""
        return Fit.SURE if _MARK.search(head.first) else Fit.NO

    def open(self, path: Path) -> Opened:
        """The documents are read as rows are asked for."""
        first = next(_documents(path), None)
        if isinstance(first, Wrong) or first is None or first.find("gpu") is None:
            raise FileFault(path, "it is a report of nvidia-smi -q -x without a GPU", hint="run nvidia-smi -q -x again")
        names = ["timestamp", *_PLACES] if _time(first) else list(_PLACES)
        rows = _rows if _time(first) else _untimed
        opened = of_log(path, names, rows, without_asking(layout("nvidia_smi_query"), "host", "every"))
        opened.notes += _of_slices(first)
        return opened


def _of_slices(report: ET.Element) -> list[str]:
    """What boards that are cut into slices do not report."""
    cut = [len(gpu.findall("mig_devices/mig_device")) for gpu in report.iter("gpu") if _slices(gpu)]
    if not cut:
        return []
    on = f"MIG is on for {len(cut)} of the GPUs, in {sum(cut)} slices: such a board reports no utilization"
    return [f"{on}; nvidia-smi dmon --gpm-metrics and dcgm-exporter have that of each slice"]


def _slices(gpu: ET.Element) -> bool:
    return (gpu.findtext("mig_mode/current_mig") or "").strip() == "Enabled"


def _rows(path: Path) -> Rows:
    for report in _documents(path):
        if isinstance(report, Wrong):
            yield report
            continue
        for gpu in report.iter("gpu"):
            yield [_time(report), *(_cell(gpu, name, places) for name, places in _PLACES.items())]


def _untimed(path: Path) -> Rows:
    return (row if isinstance(row, Wrong) else row[1:] for row in _rows(path))


def _cell(gpu: ET.Element, name: str, places: tuple[str, ...]) -> str:
    """A cell as a query prints it without units; empty where the GPU does not report it."""
    for place in places:
        text = (gpu.findtext(place) or "").strip()
        if name in ("uuid", "name"):
            return text
        if found := _NUMBER.fullmatch(text):
            return found[1]
    return ""


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


SOURCES.register("nvidia_smi_report")(NvidiaSmiReport())
