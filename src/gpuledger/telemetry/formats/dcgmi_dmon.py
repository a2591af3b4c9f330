"""What does `dcgmi dmon -e FIELDS` print?

A header of short field names (`#Entity  GPUTL  POWER`), a line of units that starts with ID, and a line per entity and
round, `GPU 0  98  412.500`; the header comes again every 14 lines. Cells are as wide as their column, so that names
with blanks can be cut out by place. It prints no time.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Rows, Wrong, first_of, layout, of_log, without_asking
from gpuledger.telemetry.mapping.rules import TimeRule
from gpuledger.telemetry.unpacking import text_lines

_HEADER = re.compile(r"#\s?Entity\s+\S")
_ROW = re.compile(r"\s*GPU (\d+)\b")
_OTHER = re.compile(r"\s*(GPU-I|GPU-CI|vGPU|Switch|CPU|CPU Core|Link) \d+")
_PEEK_LINES = 64
# The short names of DCGM's field table (dcgm_fields.cpp, DCGM 3 and 4), their units as DCGM has them.
LAYOUT = layout(
    "dcgmi dmon",
    {
        "gpu_util_ratio %": ("GPUTL",),
        "mem_copy_util_ratio %": ("MCUTL",),
        "enc_util_ratio %": ("ECUTL",),
        "dec_util_ratio %": ("DCUTL",),
        "power_w": ("POWER",),
        "power_limit_w": ("EPLMT", "PMLMT"),
        "energy_mj": ("TOTEC",),
        "sm_clock_mhz": ("SMCLK",),
        "mem_clock_mhz": ("MMCLK",),
        "gpu_temp_c": ("TMPTR",),
        "mem_temp_c": ("MMTMP",),
        "fb_used_bytes MiB": ("FBUSD",),
        "fb_free_bytes MiB": ("FBFRE",),
        "throttle_bits": ("DVCCTR",),
        "engine_ratio": ("GRACT",),
        "sm_ratio": ("SMACT",),
        "occupancy_ratio": ("SMOCC",),
        "tensor_ratio": ("TENSO",),
        "imma_ratio": ("TIMMA",),
        "hmma_ratio": ("THMMA",),
        "dfma_ratio": ("TDFMA",),
        "dram_ratio": ("DRAMA",),
        "fp64_ratio": ("FP64A",),
        "fp32_ratio": ("FP32A",),
        "fp16_ratio": ("FP16A",),
        "integer_ratio": ("INTAC",),
        "pcie_tx_bytes_per_s": ("PCITX",),
        "pcie_rx_bytes_per_s": ("PCIRX",),
    },
    {"gpu_index": ("gpu",), "gpu_uuid": ("UUID#",), "gpu_model": ("DVNAM",)},
    time=TimeRule(),
    every="1s",
    blank=("", "N/A"),
    blank_from=140737488355328,
)


def _score(head: Head) -> Seen:
    """By the header, which may come after messages."""
    return sure(next((f"the header {line.strip()[:30]!r}" for line in head.lines if _HEADER.match(line)), None))


def _read(path: Path) -> Opened:
    """The header is looked for here; the lines are cut when asked."""
    first = first_of(path, _PEEK_LINES)
    header = next((line for line in first if _HEADER.match(line)), None)
    if header is None:
        raise FileFault(path, "it has no line of field names", hint="let dcgmi dmon print its header")
    fields = header.replace("# Entity", "#Entity").split()[1:]
    gpus = [found[1] for line in first if (found := _ROW.match(line))]
    known = ["every"] if len(set(gpus)) == len(gpus) else []
    known += ["host"] if "UUID#" in fields else []
    notes: list[str] = []

    def rows(path: Path) -> Rows:
        notes.clear()
        yield from _rows(path, header, fields, notes)

    opened = of_log(path, ["gpu", *fields], rows, without_asking(LAYOUT, *known))
    opened.notes = notes
    return opened


def _rows(path: Path, header: str, fields: list[str], notes: list[str]) -> Rows:
    starts = [m.start() for m in re.finditer(r"\S+", header.replace("# Entity", "#Entity "))][1:]
    others: set[str] = set()
    for number, line in enumerate(text_lines(path), 1):
        if found := _ROW.match(line):
            cells = line[found.end() :].split()
            if len(cells) != len(fields):  # a name with blanks in it
                ends = [*starts[1:], None]
                cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
            good = len(cells) == len(fields) and all(cells)
            yield [found[1], *("" if c.endswith("...") else c for c in cells)] if good else Wrong(number, line)
        elif _HEADER.match(line) and line.split()[-len(fields) :] != fields:
            raise FileFault(path, f"its fields change at line {number}", hint="split the file there")
        elif other := _OTHER.match(line):
            others.add(other[1])
    if others:
        notes.append(f"rows of {', '.join(sorted(others))} were passed over: which GPU they are on is not in the file")


FORMATS.register("dcgmi_dmon")(Format("dcgmi dmon", Kind.TELEMETRY, _score, _read))
