"""What does `nvidia-smi` show on its screen?

A box per GPU: a line with its index and name, one with its readings, since driver 450 one on MIG. The local time stands
above all boxes, except with older drivers on Windows. A loop (`-l`, `watch`, a shell) repeats the screen. As the widths
of the columns differ by driver, cells are found by the bars between them. A table of MIG devices may follow, whose rows
are counted, and one of processes. A name that is cut (`NVIDIA GeForce RTX 30...`) is not a model.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpuledger.errors import FileFault, UnknownKind
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Opened, Seen
from gpuledger.telemetry.formats.logs import Row, Wrong, mig_note, of_rows
from gpuledger.telemetry.unpacking import text_lines

# How samples are recorded where a report holds none.
RECORD = (
    "record samples: nvidia-smi --query-gpu=timestamp,name,uuid,index,utilization.gpu,memory.used,power.draw"
    " --format=csv -l 5 > gpus.csv"
)
_SPLIT = "split the file into one for each host; for each: gpuledger import FILE --host NAME --lake DIR"
_LOOP_STEP, _PAUSES = np.timedelta64(2, "s"), 0.1
_TITLE = re.compile(r"\| {0,9}NVIDIA-SMI +\d[\d.]*")
_DATE = re.compile(r"\b[A-Z][a-z]{2} ([A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d) (?:[A-Z]{2,5} )?(\d{4})\W*$")
_BORDER = re.compile(r"(?:[^|+]*\+-)?[\s+|=>-]*")
_BOX = re.compile(
    r"\| {0,9}(?P<gpu>\d{1,4}) {1,9}(?P<name>[^\s|][^\n|]{0,50}?) {1,40}(?:On|Off|N/A|WDDM|TCC|MCDM|ERR!) {0,9}"
    r"\| {0,9}(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]|N/A)\s"
)
_MIG_ON = re.compile(r"\|\s*Enabled\*?\s*\|?\s*$")
_SLICE = re.compile(r"\|\s*\d+\s+(\d+)\s+\d+\s+\d+\s*\|\s*\d+MiB")
_LOST = re.compile(r"Unable to determine the device handle for (GPU ?\S*?):")
_NODE = re.compile(r"\s*([\w.-]+):\s*")
# By column the cell of the line with the readings, and how it is found there.
_CELLS = {
    "temperature [C]": (0, re.compile(r"\b(\d+)C\b")),
    "power [W]": (0, re.compile(r"\b(\d+)W\s*/")),
    "power limit [W]": (0, re.compile(r"/\s*(\d+)W\b")),
    "memory used [MiB]": (1, re.compile(r"\b(\d+)Mi?B\s*/")),
    "memory total [MiB]": (1, re.compile(r"/\s*(\d+)Mi?B\b")),
    "util [%]": (2, re.compile(r"^\s*(\d+)%")),
}


def local_time(text: str) -> str:
    """A time as nvidia-smi prints it, in ISO 8601; empty where there is none."""
    found = _DATE.search(text)
    try:
        return dt.datetime.strptime(f"{found[1]} {found[2]}", "%b %d %H:%M:%S %Y").isoformat(" ") if found else ""
    except ValueError:
        return ""


def _score(head: Head) -> Seen:
    """By the line with the driver's version, or a box; surely where it is among the first lines."""
    first = "\n".join(head.lines)
    found = _TITLE.search(first) or _TITLE.search(head.page) or ("|" in head.page and _BOX.search(head.page))
    return Seen(Fit.SURE if found.end() <= len(first) else Fit.LIKELY, found[0].strip(" |")) if found else NOT_SEEN


def _read(path: Path) -> Opened:
    """The screens are read as rows are asked for."""
    boxes = [(row["gpu"], row.get("time", "")) for row in _rows(path) if not isinstance(row, Wrong)]
    if not boxes:
        raise UnknownKind(path, "it is the screen of nvidia-smi without a GPU, not samples over time", hint=RECORD)
    _check_rounds(path, [time for gpu, time in boxes if time and gpu == boxes[0][0]])
    return of_rows(path, "nvidia-smi", _rows, *_notes(path))


def _rows(path: Path) -> Iterator[Row | Wrong]:
    above = time = ""
    box: re.Match[str] | None = None
    places: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(text_lines(path), 1):
        found, title, stamp = _BOX.search(line), _TITLE.search(line), local_time(line)
        if box and (found or title):
            yield Wrong(number, box[0])
        if found:
            _check_host(path, found, places)
            box = found
        elif title:
            box, time, above = None, above, ""
        elif stamp:
            above = stamp
        elif box and "|" in line:
            yield _row(box, line, time) or Wrong(number, line)
            box = None
        elif not _BORDER.fullmatch(line):
            above = ""
    if box:
        yield Wrong(number, box[0])


def _row(box: re.Match[str], line: str, time: str) -> Row | None:
    """The readings below the name of a GPU; None where the line is cut off."""
    cells = line.split("|")[1:]
    if len(cells) < 3:
        return None
    found = {column: form.search(cells[place]) for column, (place, form) in _CELLS.items()}
    row = {"gpu": box["gpu"]} | {column: match[1] if match else "" for column, match in found.items()}
    whole = not box["name"].endswith("...") and box["name"] != "ERR!"
    return row | ({"time": time} if time else {}) | ({"model": box["name"]} if whole else {})


def _check_host(path: Path, box: re.Match[str], places: dict[str, tuple[str, str]]) -> None:
    """A fault where a GPU is in another place than before: the screens are of several hosts."""
    node = _NODE.fullmatch(box.string[: box.start()])
    here = (node[1] if node else "", box["bus"])
    there = places.setdefault(box["gpu"], here)
    if there != here:
        problem = f"GPU {box['gpu']} is at {' '.join(there).strip()} and at {' '.join(here).strip()}: several hosts"
        raise FileFault(path, problem, hint=_SPLIT)


def _check_rounds(path: Path, stamps: list[str]) -> None:
    """A fault where screens of one second, which a fast loop prints too, are far apart from the next ones."""
    seconds = np.unique(np.array(stamps, "datetime64[s]"))
    if len(seconds) < len(stamps) and (len(seconds) < 3 or np.mean(np.diff(seconds) > _LOOP_STEP) > _PAUSES):
        problem = (
            f"{len(stamps)} screens are of {len(seconds)} seconds: of several hosts, or of a loop too fast to tell"
        )
        raise FileFault(path, problem, hint=_SPLIT)


def _notes(path: Path) -> list[str]:
    """What boards the first screen shows in slices, and which GPUs did not answer."""
    screens = boards = 0
    lost: dict[str, None] = {}
    instances: list[str] = []
    for line in text_lines(path):
        screens += _TITLE.search(line) is not None
        if screens < 2:
            boards += _MIG_ON.search(line) is not None
            instances += _SLICE.findall(line)
        if found := _LOST.search(line):
            lost[found[1]] = None
    gone = [f"{', '.join(lost)} did not answer nvidia-smi and is not counted"] if lost else []
    return [*mig_note(boards, len(instances), instances), *gone]


FORMATS.register("nvidia_smi_screen")(Format("screen of nvidia-smi", Kind.TELEMETRY, _score, _read))
