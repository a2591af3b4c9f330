"""What does `nvidia-smi -q` print?

A report of names and values, as drivers since 450 write it: a time, then a block per GPU whose parts are set apart by
how far they are indented; `-l` repeats it, and `-d` prints some of the parts only. Of a board the readings of the GPU
count, not those of its memory or of the module it is on, nor those of its MIG slices. Names change with the drivers:
`Power Readings` became `GPU Power Readings` with 530, `Power Draw` an average and an instant with 550 (Windows has the
instant only), and the limit has a block of its own since 610.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger.errors import UnknownKind
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Opened, Seen
from gpuledger.telemetry.formats.logs import Row, Wrong, mig_note, of_rows
from gpuledger.telemetry.formats.nvidia_smi_screen import RECORD, local_time
from gpuledger.telemetry.unpacking import text_lines

_TITLE = re.compile(r"= ?NVSMI LOG ?=")
_GPU = re.compile(r"([ \t]*)GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])[ \t]*")
_GPU_LINE = re.compile(rf"^{_GPU.pattern}$", re.MULTILINE)
_TIME = re.compile(r"\s*Timestamp\s*: ")
_NO_GPU = re.compile(r"\s*Attached GPUs\s*: 0\s*$")
_UUID = re.compile(r"GPU-(?!0{8}-0{4}-0{4}-0{4}-0{12})[0-9a-f-]{36}")
_STEP = 4  # blanks by which a part is indented
_POWER = ("gpu power readings", "power readings")
_LIMIT = (*_POWER, "gpu power readings/gpu ceiling power limit")
# By column the places it may stand in, the first that holds a reading counting.
_PLACES = {
    "util [%]": ("utilization/gpu",),
    "copy util [%]": ("utilization/memory",),
    "encoder [%]": ("utilization/encoder",),
    "decoder [%]": ("utilization/decoder",),
    "power [W]": tuple(
        f"{part}/{name}" for part in _POWER for name in ("average power draw", "power draw", "instantaneous power draw")
    ),
    "power limit [W]": tuple(
        f"{part}/{name}" for part in _LIMIT for name in ("current power limit", "enforced power limit", "power limit")
    ),
    "default limit [W]": tuple(f"{part}/default power limit" for part in _LIMIT),
    "sm clock [MHz]": ("clocks/sm",),
    "memory clock [MHz]": ("clocks/memory",),
    "temperature [C]": ("temperature/gpu current temp",),
    "memory temperature [C]": ("temperature/memory current temp",),
    "memory used [MiB]": ("fb memory usage/used",),
    "memory free [MiB]": ("fb memory usage/free",),
    "memory total [MiB]": ("fb memory usage/total",),
}
_READINGS = frozenset(place for places in _PLACES.values() for place in places)
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?) ?(?:%|W|MHz|C|MiB)")


@dataclass
class _Block:
    """What a report says of a GPU, by the parts it stands in; `instances`: of its MIG devices."""

    bus: str
    time: str
    line: int
    indent: int
    said: dict[str, str] = field(default_factory=dict)
    instances: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """One more line: the head of a part, or a name and its value."""
        depth = (len(line) - len(line.lstrip()) - self.indent) // _STEP
        name, colon, value = (word.strip() for word in line.partition(":"))
        if depth < 1 or not name:
            return
        self.parts[depth - 1 :] = [name.lower()]
        place = "/".join(self.parts)
        if place == "mig device/gpu instance id":
            self.instances.append(value)
        elif colon:
            self.said.setdefault(place, value)

    def cell(self, places: tuple[str, ...]) -> str:
        """A reading without its unit; empty where the GPU does not report it."""
        found = (_NUMBER.fullmatch(self.said.get(place, "")) for place in places)
        return next((match[1] for match in found if match), "")


def _score(head: Head) -> Seen:
    """By the title, or by the place of a GPU where the file starts within a report."""
    first = "\n".join(head.lines)
    found = _TITLE.search(first) or _TITLE.search(head.page) or _GPU_LINE.search(head.page)
    return Seen(Fit.SURE if found.end() <= len(first) else Fit.LIKELY, found[0].strip()) if found else NOT_SEEN


def _read(path: Path) -> Opened:
    """The reports are read as rows are asked for."""
    if all(isinstance(row, Wrong) for row in _rows(path)):
        none = any(_NO_GPU.match(line) for line in text_lines(path))
        what = "with 0 attached GPUs" if none else "without a reading of a GPU"
        raise UnknownKind(path, f"it is the report of nvidia-smi -q {what}, not samples over time", hint=RECORD)
    first: dict[str, _Block] = {}
    for block in _blocks(path):
        first.setdefault(block.bus, block)
    cut = [block.instances for block in first.values() if block.said.get("mig mode/current") == "Enabled"]
    instances = [one for board in cut for one in board]
    return of_rows(path, "nvidia-smi -q", _rows, *mig_note(len(cut), len(instances), instances))


def _rows(path: Path) -> Iterator[Row | Wrong]:
    uuids: dict[str, str] = {}
    for block in _blocks(path):
        if not block.said.keys() & _READINGS:  # cut off above them, or a list of processes
            yield Wrong(block.line, f"GPU {block.bus}")
            continue
        uuid = block.said.get("gpu uuid", "")
        if _UUID.fullmatch(uuid):
            uuids[block.bus] = uuid
        name = {"uuid": uuids[block.bus]} if block.bus in uuids else {"gpu": block.bus}
        model = {"model": block.said["product name"]} if "product name" in block.said else {}
        time = {"time": block.time} if block.time else {}
        yield time | name | model | {column: block.cell(places) for column, places in _PLACES.items()}


def _blocks(path: Path) -> Iterator[_Block]:
    """The blocks of the GPUs in all reports of a file."""
    time, block = "", None
    for number, line in enumerate(text_lines(path), 1):
        found = _GPU.fullmatch(line)
        if block and (found or _TITLE.search(line)):
            yield block
            block = None
        if found:
            block = _Block(found[2], time, number, len(found[1]))
        elif _TITLE.search(line):
            time = ""
        elif block is None and _TIME.match(line):
            time = local_time(line)
        elif block:
            block.add(line.expandtabs(_STEP))
    if block:
        yield block


FORMATS.register("nvidia_smi_q")(Format("nvidia-smi -q", Kind.TELEMETRY, _score, _read))
