"""What does Zeus write?

`python -m zeus.monitor power` prints the local time and the watts of each GPU, over several lines where they are long.
The log file of a ZeusMonitor has a line per measured window: when it started, its name, its seconds, and the joules of
each GPU. A window becomes a sample at its start with its mean power. Windows may lie within each other (an epoch and
its steps): only those that hold no other are taken, so that no second counts twice.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Rows, Wrong, csv_cells, layout, of_log
from gpuledger.telemetry.unpacking import text_lines

_NAMES = ["time", "gpu", "power [W]"]
_WINDOWS = "start_time,window_name,elapsed_time,"
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)")
_WATTS = re.compile(r"'GPU(\d+)': ([0-9.eE+-]+)")


LAYOUT = layout("Zeus", {"power_w": ("power [W]",)}, {"gpu_index": ("gpu",)}, asks=("host", "gpu_model"), blank=("",))


def _score(head: Head) -> Seen:
    """By the header of the windows, or by a time followed by watts."""
    lines = head.lines
    if lines and lines[0].startswith(_WINDOWS):
        return sure(f"a header that starts {_WINDOWS}")
    stamped = next((place for place, line in enumerate(lines) if _STAMP.match(line)), len(lines))
    watts = _WATTS.search(" ".join(lines[stamped : stamped + 3]))
    return sure(watts and f"a time, then {watts[0]}")


def _read(path: Path) -> Opened:
    """Power lines stream; windows are read whole, as which ones lie within others shows at the end only."""
    if next(text_lines(path), "").startswith(_WINDOWS):
        notes: list[str] = []
        opened = of_log(path, _NAMES, lambda path: _windows(path, notes), LAYOUT)
        opened.notes = notes
        return opened
    return of_log(path, _NAMES, _power_lines, LAYOUT)


def _power_lines(path: Path) -> Rows:
    time = ""
    for line in text_lines(path):
        if found := _STAMP.match(line):
            time = found[1]
        elif line.startswith("Total"):  # the sums at the end have no time
            time = ""
        if time:
            yield from ([time, gpu, watts] for gpu, watts in _WATTS.findall(line))


def _windows(path: Path, notes: list[str]) -> Rows:
    notes.clear()
    rows = map(csv_cells, text_lines(path))
    gpus = [name.removeprefix("gpu").removesuffix("_energy") for name in next(rows)[3:]]
    kept: list[tuple[float, float, list[str]]] = []
    for number, cells in enumerate(rows, 2):
        try:
            start, seconds = float(cells[0]), float(cells[-len(gpus) - 1])
        except (ValueError, IndexError):
            yield Wrong(number, ",".join(cells))
            continue
        if len(cells) != 3 + len(gpus) or not start + seconds > start:
            yield Wrong(number, ",".join(cells))
        else:
            kept.append((start, start + seconds, cells[3:]))
    inner = list(_innermost(kept))
    if len(inner) < len(kept):
        notes.append(f"{len(kept) - len(inner)} of {len(kept)} windows hold other windows and were passed over")
    for start, end, joules in inner:
        for gpu, energy in zip(gpus, joules, strict=True):
            yield [repr(start), gpu, str(float(energy) / (end - start)) if _is_number(energy) else energy]


def _innermost(windows: list[tuple[float, float, list[str]]]) -> Iterator[tuple[float, float, list[str]]]:
    """The windows that overlap no shorter one, in the order of time."""
    taken: list[tuple[float, float]] = []
    chosen = []
    for window in sorted(windows, key=lambda w: (w[1] - w[0], w[0])):
        start, end = window[:2]
        place = bisect_left(taken, (start, end))
        near = taken[max(place - 1, 0) : place + 1]
        if all(end <= a or b <= start for a, b in near):
            taken.insert(place, (start, end))
            chosen.append(window)
    yield from sorted(chosen, key=lambda w: w[0])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


FORMATS.register("zeus")(Format("Zeus", Kind.TELEMETRY, _score, _read))
