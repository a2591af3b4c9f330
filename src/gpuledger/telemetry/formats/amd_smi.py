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
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Rows, Wrong, csv_cells, first_of, layout, of_log, without_asking
from gpuledger.telemetry.mapping.rules import Mapping, TimeRule
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


# Watts, degrees, MHz and percent as bare numbers (ROCm 6 and 7); -w adds epoch seconds.
_MEASURED = {
    "power_w": ("power_usage", "socket_power"),
    "gpu_temp_c": ("hotspot_temperature", "hotspot"),
    "sm_clock_mhz": ("gfx_clk", "gfx_clock", "gfx_0_clk"),
    "mem_clock_mhz": ("mem_clock", "mem_0_clk"),
}
_INDEX = {"gpu_index": ("gpu",)}
MONITOR = layout(
    "amd-smi monitor",
    {
        **_MEASURED,
        "mem_temp_c": ("memory_temperature",),
        "gpu_util_ratio %": ("gfx", "gfx_usage"),
        "mem_copy_util_ratio %": ("mem", "mem_usage"),
        "dec_util_ratio %": ("decoder",),
        "fb_used_bytes": ("vram_used [MiB]", "vram_used [GiB]", "fb_used [MiB]"),
        "fb_free_bytes": ("vram_free [MiB]", "vram_free [GiB]"),
        "pcie_replays": ("pcie_replay",),
    },
    _INDEX,
    time=TimeRule(("timestamp",)),
    ignored=(
        "max_power", "vram_total [MiB]", "vram_total [GiB]", "vram_percent", "encoder", "vclock", "dclock", "xcp",
        "pcie_bw",
    ),
)  # fmt: skip
METRIC = layout(
    "amd-smi metric",
    {
        **_MEASURED,
        "mem_temp_c": ("mem",),
        "gpu_util_ratio %": ("gfx_activity",),
        "mem_copy_util_ratio %": ("umc_activity",),
        "fb_used_bytes MiB": ("used_vram",),
        "fb_free_bytes MiB": ("free_vram",),
    },
    _INDEX,
    time=TimeRule(("timestamp",)),
)
# rocm-smi --csv (ROCm 5 to 7): the units are in the names.
ROCM = layout(
    "rocm-smi",
    {
        "gpu_util_ratio": ("GPU use (%)",),
        "mem_copy_util_ratio": ("GPU Memory Read/Write Activity (%)", "GPU memory use (%)"),
        "power_w": ("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"),
        "power_limit_w": ("Max Graphics Package Power (W)",),
        "gpu_temp_c": ("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"),
        "mem_temp_c": ("Temperature (Sensor memory) (C)",),
        "fb_used_bytes": ("VRAM Total Used Memory (B)",),
        "sm_clock_mhz": ("sclk clock speed:",),
        "mem_clock_mhz": ("mclk clock speed:",),
    },
    {"gpu_index": ("device",), "gpu_uuid": ("Unique ID",), "gpu_model": ("Card Series", "Card series")},
    time=TimeRule(),
    blank=("", "N/A", "N/A (Secondary die)", "None", "Unsupported"),
)


class AmdTable:
    """The CSV of one of AMD's tools; `is_header` gives the layout of its header, `key` is its column of GPUs."""

    def __init__(self, is_header: Callable[[list[str]], Mapping | None], key: str) -> None:
        self._is_header, self._key = is_header, key

    def score(self, head: Head) -> Seen:
        """By the header, which may come after warnings."""
        return sure(next((f"the header {line[:40]}" for line in head.lines if self._is_header(csv_cells(line))), None))

    def read(self, path: Path) -> Opened:
        """The header is looked for here; the lines are cut when asked."""
        first = [csv_cells(line) for line in first_of(path, _PEEK_LINES)]
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

        chosen = self._is_header(header)
        assert chosen is not None
        opened = of_log(path, names, rows, without_asking(chosen, *known))
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


def _amd_smi(cells: list[str]) -> Mapping | None:
    """Which layout of amd-smi a header has; None for other lines."""
    if "gpu" not in cells[:2]:
        return None
    kinds = ((METRIC, _METRIC), (MONITOR, _MONITOR))
    return next((made for made, marks in kinds if len(marks & set(cells)) >= 2), None)


def _rocm_smi(cells: list[str]) -> Mapping | None:
    return ROCM if cells[:1] == ["device"] and _ROCM.search(",".join(cells)) else None


for _key, _name, _table in (
    ("amd_smi", "amd-smi --csv", AmdTable(_amd_smi, "gpu")),
    ("rocm_smi", "rocm-smi --csv", AmdTable(_rocm_smi, "device")),
):
    FORMATS.register(_key)(Format(_name, Kind.TELEMETRY, _table.score, _table.read))
