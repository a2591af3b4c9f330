"""What do `nvidia-smi dmon` and `nvidia-smi pmon` print?

Two header lines (`#Date Time gpu pwr ...` and the units), then a line per GPU and round; the header comes again after
some lines. `-o DT` prints date and time, `-o T` the time of day, neither of them nothing. `--format csv` puts commas
between the cells, and adding nounit leaves out the second header line.

pmon prints a line per process and round. A sample is of a GPU: the shares of its processes are added up, at most 100 %,
as their time slices follow each other; so is their memory. A GPU without a process (`-`) has no readings: in a
container pmon does not see the processes of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Rows, Wrong, first_of, layout, of_log, without_asking
from gpuledger.telemetry.mapping.rules import TimeRule
from gpuledger.telemetry.unpacking import text_lines

_PEEK_LINES = 200
_FIRST = ("Date", "Time", "gpu")
_KNOWN = frozenset({"pwr", "sm", "mem", "mclk", "pviol", "fb", "sbecc", "rxpci", "pid", "gract", "smutil"})
_BLANK = ("", "-", "N/A", "[N/A]", "ERR!")
_UTIL = {
    "gpu_util_ratio %": ("sm [%]", "sm"),
    "mem_copy_util_ratio %": ("mem [%]", "mem"),
    "enc_util_ratio %": ("enc [%]", "enc"),
    "dec_util_ratio %": ("dec [%]", "dec"),
    "fb_used_bytes MiB": ("fb [MiB]", "fb"),
}
_TIME, _LABELS = TimeRule(("time",), clock=("clock",)), {"gpu_index": ("gpu",)}
# As driver 580 prints them: the names of the first header line with the units of the second, where MB is MiB; without
# units (--format csv,nounit) the names alone. --gpm-metrics adds the activity of the pipes.
DMON = layout(
    "nvidia-smi dmon",
    {
        "power_w": ("pwr [W]", "pwr"),
        "gpu_temp_c": ("gtemp [C]", "temp [C]", "gtemp", "temp"),
        "mem_temp_c": ("mtemp [C]", "mtemp"),
        **_UTIL,
        "mem_clock_mhz": ("mclk [MHz]", "mclk"),
        "sm_clock_mhz": ("pclk [MHz]", "pclk"),
        "engine_ratio": ("gract [%]",),
        "sm_ratio": ("smutil [%]",),
        "occupancy_ratio": ("smocc [%]",),
        "integer_ratio": ("intutil [%]",),
        "tensor_ratio": ("mmaact [%]",),
        "dfma_ratio": ("dfmat [%]",),
        "hmma_ratio": ("hmmat [%]",),
        "imma_ratio": ("immat [%]",),
        "dram_ratio": ("dram [%]",),
        "fp64_ratio": ("fp64 [%]",),
        "fp32_ratio": ("fp32 [%]",),
        "fp16_ratio": ("fp16 [%]",),
        "pcie_tx_bytes_per_s": ("pcitx [MiB/s]",),
        "pcie_rx_bytes_per_s": ("pcirx [MiB/s]",),
    },
    _LABELS,
    time=_TIME,
    every="1s",
    ignored=tuple(
        name
        for plain, unit in (
            ("jpg", "%"), ("ofa", "%"), ("pviol", "%"), ("tviol", "bool"), ("bar1", "MiB"), ("ccpm", "MiB"),
            ("sbecc", "errs"), ("dbecc", "errs"), ("pci", "errs"), ("rxpci", "MiB/s"), ("txpci", "MiB/s"),
        )
        for name in (plain, f"{plain} [{unit}]")
    ),
    blank=_BLANK,
)  # fmt: skip
PMON = layout("nvidia-smi pmon", _UTIL, _LABELS, time=_TIME, every="1s", blank=_BLANK)


@dataclass(frozen=True)
class Columns:
    """What the header says: names, units by name, and whether commas stand between the cells."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    commas: bool

    def cells(self, line: str) -> list[str]:
        """The cells of a line."""
        return [c.strip() for c in line.split(",")] if self.commas else line.split()

    def timed(self, cells: list[str]) -> list[str]:
        """The cells with date and time as one."""
        return [iso(cells[0], cells[1]), *cells[2:]] if self.dated else cells

    @property
    def dated(self) -> bool:
        """Whether a row has date and time."""
        return self.names[:2] == ("Date", "Time")

    @property
    def called(self) -> list[str]:
        """The columns by name and unit, date and time as one."""
        units = (unit.removeprefix("GPM:").replace("MB", "MiB") for unit in self.units)
        made = [n if n == "gpu" or not u else f"{n} [{u}]" for n, u in zip(self.names, units, strict=True)]
        if self.dated:
            return ["time", *made[2:]]
        return ["clock", *made[1:]] if self.names[0] == "Time" else made


def iso(date: str, time: str) -> str:
    """Date and time of a row in ISO 8601."""
    return f"{date[:4]}-{date[4:6]}-{date[6:]} {time}"


def header(lines: Iterator[str] | list[str]) -> Columns | None:
    """The header among the first lines of a log; None where there is none."""
    names: tuple[str, ...] = ()
    commas = False
    for line in lines:
        words = tuple(line.lstrip("#").replace(",", " ").split())
        if not names and line.startswith("#") and "gpu" in words[:3] and words[0] in _FIRST and _KNOWN & set(words):
            names, commas = words, "," in line
        elif names:
            is_units = line.startswith("#") and len(words) == len(names)
            return Columns(names, words if is_units else ("",) * len(names), commas)
    return None


def data_lines(path: Path, columns: Columns) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without headers; a fault where a header names other columns than the first."""
    for number, line in enumerate(text_lines(path), 1):
        if line.startswith("#"):
            words = tuple(line.lstrip("#").replace(",", " ").split())
            if "gpu" in words[:3] and words != columns.names:
                raise FileFault(path, f"its columns change at line {number}", hint="split the file there")
        elif line.strip():
            yield number, line


def _score(head: Head, of_processes: bool) -> Seen:
    """By the first header line."""
    found = header(head.lines)
    return sure(found and ("pid" in found.names) is of_processes and f"the header # {' '.join(found.names)[:40]}")


def _read_dmon(path: Path) -> Opened:
    """The header is looked for here; the lines are cut when asked."""
    first = first_of(path, _PEEK_LINES)
    columns = header(first)
    if columns is None:
        raise FileFault(path, "it has no line of column names", hint="let dmon print its header")
    gpu, count = columns.names.index("gpu"), len(columns.names)

    def rows(path: Path) -> Rows:
        for number, line in data_lines(path, columns):
            cells = columns.cells(line)
            yield columns.timed(cells) if len(cells) == count else Wrong(number, line)

    seen = [c[gpu] for line in first if not line.startswith("#") and len(c := columns.cells(line)) == count]
    once = ["every"] if len(set(seen)) == len(seen) else []
    return of_log(path, columns.called, rows, without_asking(DMON, *once))


FORMATS.register("nvidia_smi_dmon")(
    Format("nvidia-smi dmon", Kind.TELEMETRY, lambda head: _score(head, False), _read_dmon)
)


_SHARES = ("sm", "mem", "enc", "dec")
_NOTE = "the utilization of a GPU is that of its processes added up, at most 100 %; pmon prints no power"


def _read_pmon(path: Path) -> Opened:
    """The lines of a GPU's processes are added up."""
    columns = header(first_of(path, _PEEK_LINES))
    if columns is None:
        raise FileFault(path, "it has no line of column names", hint="let pmon print its header")
    kept = [n for n in (*_SHARES, "fb") if n in columns.names]
    time = [columns.called[0]] if columns.called[0] in ("time", "clock") else []
    names = [*time, "gpu", *(f"{n} [{'MiB' if n == 'fb' else '%'}]" for n in kept)]
    opened = of_log(path, names, lambda path: _rows(path, columns, kept), PMON)
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
    yield from (int(cell) for cell in cells if cell.isdecimal() and len(cell) < 10)


FORMATS.register("nvidia_smi_pmon")(
    Format("nvidia-smi pmon", Kind.TELEMETRY, lambda head: _score(head, True), _read_pmon)
)
