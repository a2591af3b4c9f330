"""What do `amd-smi monitor --csv`, `amd-smi metric --csv` and `rocm-smi --csv` print?

A table with a header, after warnings at times; in a loop the header comes again with each round. Only amd-smi with -w
prints times (epoch seconds). amd-smi prints used memory in MiB, or in GiB with one digit after the point where
the columns are those of a bare `amd-smi monitor`.

Partitions of a board (CPX and others) are GPUs of their own for amd-smi. The first one, with xcp 0, has the readings of
the whole board; the others have none, and are passed over: as GPUs of their own they would be paid for like boards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened
from gpuledger.telemetry.tool_logs import Rows, Wrong, csv_cells, layout, of_log, without_asking
from gpuledger.telemetry.unpacking import text_lines

# Two of these are enough: the columns depend on what was asked for.
_MONITOR = frozenset(
    [
        "power_usage",
        "max_power",
        "hotspot_temperature",
        "memory_temperature",
        "gfx_clk",
        "gfx_clock",
        "gfx",
        "mem",
        "mem_clock",
        "encoder",
        "decoder",
        "vram_used",
        "vram_free",
        "vram_total",
        "vram_percent",
        "xcp",
        "pcie_bw",
        "pcie_replay",
    ]
)
_METRIC = frozenset(
    [
        "gfx_activity",
        "umc_activity",
        "mm_activity",
        "socket_power",
        "gfx_voltage",
        "soc_voltage",
        "gfx_0_clk",
        "mem_0_clk",
        "edge",
        "hotspot",
        "total_vram",
        "used_vram",
        "free_vram",
    ]
)
_ROCM = re.compile(r"GPU use \(%\)|Power \(W\)|Temperature \(Sensor|VRAM Total|Card [Ss]eries|clock speed:")
_CLOCK = re.compile(r"\((\d+)\s*M[Hh]z\)")
_PEEK_LINES = 64
_PARTITION = "xcp"
_PASSED_OVER = (
    "rows of further partitions of a board (xcp 1 and up) were passed over: amd-smi prints the readings of the board"
    " with its first one"
)


class AmdTable:
    """The CSV of one of AMD's tools; `is_header` knows its header, `key` is its column of GPUs."""

    def __init__(self, is_header: Callable[[list[str]], str], key: str) -> None:
        self._is_header, self._key = is_header, key

    def fits(self, head: Head) -> Fit:
        """By the header, which may come after warnings."""
        return Fit.SURE if any(self._is_header(csv_cells(line)) for line in head.lines()) else Fit.NO

    def open(self, path: Path) -> Opened:
        """The header is looked for here; the lines are cut when asked."""
        first = [csv_cells(line) for _, line in zip(range(_PEEK_LINES), text_lines(path), strict=False)]
        header = next((cells for cells in first if self._is_header(cells)), None)
        if header is None:
            raise FileFault(path, "it has no line of column names", hint="let the tool print its header")
        data = [c for c in first if len(c) == len(header) and c != header]
        gpus = [c[header.index(self._key)] for c in data]
        known = ["every"] if len(set(gpus)) == len(gpus) else []
        known += ["host"] if "Unique ID" in header else []
        names = _with_units(header, data)
        clocks = [place for place, name in enumerate(names) if name.endswith("clock speed:")]
        key, xcp = header.index(self._key), header.index(_PARTITION) if _PARTITION in header else None
        if xcp is not None and data and all(_is_part(c, xcp) for c in data):
            raise FileFault(
                path,
                "it has no row with the readings of a whole board (xcp 0)",
                hint="let amd-smi print all GPUs: no -g",
            )
        notes: list[str] = []

        def rows(path: Path) -> Rows:
            notes.clear()
            seen = False
            for number, line in enumerate(text_lines(path), 1):
                cells = csv_cells(line)
                if self._is_header(cells):
                    if cells != header:
                        raise FileFault(path, f"its columns change at line {number}", hint="split the file there")
                    seen = True
                elif seen and line.strip() and not line.startswith(("WARNING", "=")):
                    good = len(cells) == len(header) and re.fullmatch(r"(card)?\d+", cells[key])
                    if good and xcp is not None and _is_part(cells, xcp):
                        notes[:] = [_PASSED_OVER]
                        continue
                    yield _plain(cells, clocks) if good else Wrong(number, line)

        opened = of_log(path, names, rows, without_asking(layout(self._is_header(header)), *known))
        opened.notes = notes
        return opened


def _is_part(cells: list[str], xcp: int) -> bool:
    """Whether a row is of a further partition of the board, whose readings stand in the row of the first."""
    return cells[xcp].isdecimal() and int(cells[xcp]) > 0


def _plain(cells: list[str], clocks: list[int]) -> list[str]:
    """The cells with `99%` as 99 and `(1980Mhz)` as 1980."""
    cells = [cell.removesuffix("%") for cell in cells]
    for place in clocks:
        found = _CLOCK.search(cells[place])
        cells[place] = found[1] if found else ""
    return cells


def _with_units(header: list[str], data: list[list[str]]) -> list[str]:
    """The names, with the unit of amd-smi's memory columns: whole numbers are MiB, others GiB."""
    memory = [n for n in header if n in ("vram_used", "vram_free", "vram_total")]
    cells = [row[header.index(n)] for row in data for n in memory]
    unit = "GiB" if any("." in cell for cell in cells) else "MiB"
    return [f"{n} [{unit}]" if n in memory else n for n in header]


def _amd_smi(cells: list[str]) -> str:
    """Which layout of amd-smi a header has; empty for other lines."""
    if "gpu" not in cells[:2]:
        return ""
    kinds = {"amd_smi_metric": _METRIC, "amd_smi_monitor": _MONITOR}
    return next((name for name, marks in kinds.items() if len(marks & set(cells)) >= 2), "")


def _rocm_smi(cells: list[str]) -> str:
    return "rocm_smi" if cells[:1] == ["device"] and _ROCM.search(",".join(cells)) else ""


SOURCES.register("amd_smi")(AmdTable(_amd_smi, "gpu"))
SOURCES.register("rocm_smi")(AmdTable(_rocm_smi, "device"))
