"""What does `nvidia-smi pmon` print?

A line per process and round, in the layout of dmon. A sample is of a GPU: the shares of its processes are added up, at
most 100 %, as their time slices follow each other; so is their memory. A GPU without a process (`-`) has no readings:
in a container pmon does not see the processes of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened
from gpuledger.telemetry.sources.nvidia_smi_dmon import Columns, data_lines, header, iso, peeked
from gpuledger.telemetry.tool_logs import Rows, Wrong, layout, of_log

_SHARES = ("sm", "mem", "enc", "dec")
_NOTE = "the utilization of a GPU is that of its processes added up, at most 100 %; pmon prints no power"


class NvidiaSmiPmon:
    """Lines of pmon, added up by GPU and round."""

    def fits(self, head: Head) -> Fit:
        """By the first header line."""
        found = header(head.lines())
        return Fit.SURE if found and "pid" in found.names else Fit.NO

    def open(self, path: Path) -> Opened:
        """The header is looked for here; the lines are cut and added up when asked."""
        columns = header(peeked(path))
        if columns is None:
            raise FileFault(path, "it has no line of column names", hint="let pmon print its header")
        kept = [n for n in (*_SHARES, "fb") if n in columns.names]
        time = [columns.called[0]] if columns.called[0] in ("time", "clock") else []
        names = [*time, "gpu", *(f"{n} [{'MB' if n == 'fb' else '%'}]" for n in kept)]
        opened = of_log(path, names, lambda path: _rows(path, columns, kept), layout("nvidia_smi_pmon"))
        opened.notes.append(_NOTE)
        return opened


def _rows(path: Path, columns: Columns, kept: list[str]) -> Rows:
    """One row per GPU and round."""
    places = [columns.names.index(n) for n in kept]
    gpu, pid = columns.names.index("gpu"), columns.names.index("pid")
    stamp = slice(0, gpu)
    group: list[list[str]] = []
    for number, line in data_lines(path, columns):
        cells = line.split(None, len(columns.names) - 1)  # the command, in the last one, may hold blanks
        if len(cells) < len(columns.names):
            yield Wrong(number, line)
            continue
        same = group and cells[: gpu + 1] == group[0][: gpu + 1] and all(cells[pid] != c[pid] for c in group)
        if group and not same:
            yield _added(group, stamp, gpu, kept, places)
            group = []
        group.append(cells)
    if group:
        yield _added(group, stamp, gpu, kept, places)


def _added(group: list[list[str]], stamp: slice, gpu: int, kept: list[str], places: list[int]) -> list[str]:
    """The lines of one GPU's processes as one row; a reading that no process has stays empty."""
    sums = []
    for name, place in zip(kept, places, strict=True):
        known = list(_numbers(cells[place] for cells in group))
        total = min(sum(known), 100) if name in _SHARES else sum(known)
        sums.append(str(total) if known else "")
    stamps = group[0][stamp]
    time = [iso(*stamps)] if len(stamps) == 2 else stamps
    return [*time, group[0][gpu], *sums]


def _numbers(cells: Iterator[str]) -> Iterator[int]:
    yield from (int(cell) for cell in cells if cell.isdecimal())


SOURCES.register("nvidia_smi_pmon")(NvidiaSmiPmon())
