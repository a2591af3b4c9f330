"""What does `dcgmi dmon -e FIELDS` print?

A header of short field names (`#Entity  GPUTL  POWER`), a line of units that starts with ID, and a line per entity and
round, `GPU 0  98  412.500`; the header comes again every 14 lines. Cells are as wide as their column, so that names
with blanks can be cut out by place. It prints no time.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened
from gpuledger.telemetry.tool_logs import Rows, Wrong, layout, of_log, without_asking
from gpuledger.telemetry.unpacking import text_lines

_HEADER = re.compile(r"#\s?Entity\s+\S")
_ROW = re.compile(r"\s*GPU (\d+)\b")
_OTHER = re.compile(r"\s*(GPU-I|GPU-CI|vGPU|Switch|CPU|CPU Core|Link) \d+")
_PEEK_LINES = 64


class DcgmiDmon:
    """Lines of dcgmi dmon, one per GPU and round."""

    def fits(self, head: Head) -> Fit:
        """By the header, which may come after messages."""
        return Fit.SURE if any(_HEADER.match(line) for line in head.lines()) else Fit.NO

    def open(self, path: Path) -> Opened:
        """The header is looked for here; the lines are cut when asked."""
        first = [line for _, line in zip(range(_PEEK_LINES), text_lines(path), strict=False)]
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

        opened = of_log(path, ["gpu", *fields], rows, without_asking(layout("dcgmi_dmon"), *known))
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


SOURCES.register("dcgmi_dmon")(DcgmiDmon())
