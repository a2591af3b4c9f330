"""What does `nvidia-smi --query-gpu=... --format=csv` print?

A header with units, then a line per GPU and round; `-l` and `-lms` repeat the lines, a loop in a shell the header too.
Cells carry their unit unless nounits was asked for, and what a GPU does not report is in brackets ([N/A]). The header
may have been left out, and other lines may stand above it.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import msgspec

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.csv_file import Form, open_table
from gpuledger.telemetry.formats.logs import first_of, layout, mig_note, without_asking
from gpuledger.telemetry.mapping.rules import Mapping as Layout
from gpuledger.telemetry.mapping.rules import TimeRule
from gpuledger.telemetry.nvidia_smi_rows import FREE, POWER, USED, UTIL, columns_of, in_words, is_row
from gpuledger.telemetry.unpacking import text_lines

# No other tool prints these; any one of them in the header is enough.
_MARKS = re.compile(r"(utilization\.(gpu|memory)|power\.draw|memory\.(used|free|total)|clocks\.[a-z.]+) \[")
_PLAIN_MARKS = frozenset({"pci.bus_id", "temperature.gpu", "temperature.memory", "driver_version", "pstate"})
_STAMP = re.compile(r'"?\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}"?[,;\t]')
_WITH_UNIT = re.compile(r"-?[\d.]+ ?[^\W\d]|-?[\d.]+ ?%")
_NAME = re.compile(r"[A-Za-z_][\w.]*( \[[^\]]+\])?")
_PROCESS = re.compile(r"GPU-[0-9a-f-]{8,}, \d+, [^,]*[A-Za-z/\[][^,]*, (\d+ MiB|\[N/A\])\s*$")  # with its PID
_COMMAND = re.compile(r"\bnvidia-smi(\.exe)?\b")
_SEPARATORS = ",;\t"
_AROUND = ' \t"'  # what may stand around a name
_PEEK_LINES, _LINES_ABOVE, _ROWS_LOOKED_AT = 65, 20, 4096
_TOLD = frozenset({UTIL, POWER, USED, FREE})
_NO_GPUS = "No devices were found"
# Only headers have these.
_HEADER_MARKS = (b"timestamp", b"[%]", b"[W]", b"[MiB]", b"[MHz]")
LAYOUT = layout(
    "nvidia-smi --query-gpu",
    {
        "gpu_util_ratio": ("utilization.gpu [%]",),
        "mem_copy_util_ratio": ("utilization.memory [%]",),
        "enc_util_ratio": ("utilization.encoder [%]",),
        "dec_util_ratio": ("utilization.decoder [%]",),
        "power_w": ("power.draw [W]", "power.draw.average [W]", "power.draw.instant [W]"),
        "power_limit_w": ("enforced.power.limit [W]", "power.limit [W]"),
        "sm_clock_mhz": (
            "clocks.current.sm [MHz]", "clocks.sm [MHz]", "clocks.current.graphics [MHz]", "clocks.gr [MHz]",
        ),
        "mem_clock_mhz": ("clocks.current.memory [MHz]", "clocks.mem [MHz]"),
        "gpu_temp_c": ("temperature.gpu",),
        "mem_temp_c": ("temperature.memory",),
        "fb_used_bytes": ("memory.used [MiB]",),
        "fb_free_bytes": ("memory.free [MiB]",),
        "throttle_bits hex": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
        "remapped_correctable_rows": ("remapped_rows.correctable",),
        "remapped_uncorrectable_rows": ("remapped_rows.uncorrectable",),
    },
    {
        "gpu_uuid": ("uuid", "gpu_uuid", "board"),
        "gpu_index": ("index",),
        "gpu_model": ("name", "gpu_name"),
        "host": ("hostname",),
    },
    time=TimeRule(("timestamp",), formats=("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")),
    required=("time", "gpu_uuid"),
    ignored=("pci.bus_id", "memory.total [MiB]", "memory.reserved [MiB]", "driver_version", "count", "pstate"),
    blank=(
        "", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]", "[Not Found]", "ERR!",
    ),
    kept=(
        "name", "gpu_name", "memory.total [MiB]", "serial", "gpu_serial", "pci.bus_id", "gpu_bus_id", "pci.device_id",
    ),
)  # fmt: skip


def _score(head: Head) -> Seen:
    """By a header cell that only nvidia-smi prints, or by its stamps where the header was left out."""
    lines = head.lines
    if lines and lines[0].startswith(_NO_GPUS):
        return sure(_NO_GPUS)
    at = _begins_at(lines)
    return sure(None if at is None else f"line {at + 1}: {lines[at][:60]}")


def _begins_at(lines: list[str]) -> int | None:
    """Which of the first lines is the header or, without one, the first row; None where the text is of another kind.

    The lines above may be blank, the command, what a shell says; not a table, whose header theirs would not be.
    """
    sizes = set[int]()
    for place, line in enumerate(lines[:_LINES_ABOVE]):
        cells = _cells(line, max(_SEPARATORS, key=line.count))
        if _COMMAND.search(line) or not line.strip():
            continue
        if _PROCESS.search(line):
            return None
        row = _STAMP.match(line) or is_row(cells)
        if _MARKS.search(line) or (", " in line and _PLAIN_MARKS & set(cells)) or row:
            mine = row or all(_NAME.fullmatch(cell) for cell in cells)
            return place if not place or (mine and len(cells) not in sizes - {1}) else None
        sizes.add(len(cells))
    return None


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip(_AROUND) for cell in line.split(separator)]


def _read(path: Path) -> Opened:
    """The header is read here, or the columns are found by the first rows."""
    first = first_of(path, _PEEK_LINES)
    if first[0].startswith(_NO_GPUS):
        raise FileFault(path, "nvidia-smi found no GPU there", hint="run it on a host with a GPU: nvidia-smi -L")
    above = _begins_at(first) or 0
    header = first[above]
    separator = max(_SEPARATORS, key=header.count)
    if _STAMP.match(header) or is_row(_cells(header, separator)):
        return _without_header(path, above, separator)
    if above + 1 == len(first):
        raise FileFault(path, "it has a header but not one row", hint="let nvidia-smi run longer")
    names = _cells(header, separator)
    names = [n if names.index(n) == place else f"{n} again {place}" for place, n in enumerate(names)]
    line = next(islice(text_lines(path, ends=True), above, None)).removeprefix("\ufeff").encode()
    rows = [_cells(line, separator) for line in first[above + 1 :] if line != header]
    return _opened(Form(path, names, separator, above + 1, line, _HEADER_MARKS), rows)


def _without_header(path: Path, above: int, separator: str) -> Opened:
    """Rows whose columns their units and values tell."""
    lines = first_of(path, above + _ROWS_LOOKED_AT)[above:]
    cut = [_cells(line, separator) for line in lines]
    rows = [row for row in cut if len(row) == len(cut[0])]
    rows = rows[:-1] if len(rows) > 1 and rows[-1] is cut[-1] else rows  # the last may be cut in a cell
    told = columns_of(rows)
    note = in_words(told, rows)
    if not set(told) & _TOLD:
        problem = f"nvidia-smi wrote it without a header, and no column can be identified as a reading ({note})"
        raise FileFault(path, problem, hint="print it with --format=csv, without noheader")
    names = [name or f"column {place}" for place, name in enumerate(told, 1)]
    opened = _opened(Form(path, names, separator, above), rows)
    opened.notes.insert(0, note)
    return opened


def _opened(form: Form, rows: list[list[str]]) -> Opened:
    """The log of this form; `rows`: the cells of the first ones."""
    opened, names, mapping = open_table(form), form.names, LAYOUT
    key = next((names.index(n) for n in ("uuid", "gpu_uuid", "index", "pci.bus_id") if n in names), None)
    if key is not None and names[key] == "pci.bus_id":  # names the board on its host just as well
        labels = {n: s for n, s in mapping.labels.items() if n != "gpu_index"} | {"gpu_uuid": ("pci.bus_id",)}
        mapping = msgspec.structs.replace(mapping, labels=labels)
    mapping = _with_bare_names(mapping, names, rows)
    devices = [row[key] for row in rows if len(row) == len(names)] if key is not None else []
    known = ["host"] if {"uuid", "gpu_uuid"} & set(names) else []
    known += ["every"] if "timestamp" in names or 0 < len(set(devices)) == len(devices) else []
    opened.mapping = without_asking(mapping, *known)
    opened.notes += mig_note(_in_slices(names, rows, key), None)
    opened.restarts = form.header
    return opened


def _in_slices(names: list[str], rows: list[list[str]], key: int | None) -> int:
    """How many GPUs of the first rows are cut into MIG slices."""
    if "mig.mode.current" not in names:
        return 0
    on = [row for row in rows if len(row) == len(names) and row[names.index("mig.mode.current")] == "Enabled"]
    return len({row[key] for row in on}) if key is not None else bool(on)


def _with_bare_names(mapping: Layout, names: list[str], rows: list[list[str]]) -> Layout:
    """The layout where a reading's name has lost its unit, and each of its cells has one."""
    rules = []
    for rule in mapping.values:
        bare = [s.partition(" [")[0] for s in rule.sources if s not in names and s.partition(" [")[0] in names]
        cells = [row[names.index(name)] for name in bare[:1] for row in rows if len(row) == len(names)]
        sure = cells and "[" in rule.sources[0] and all(_WITH_UNIT.match(c) or c in mapping.blank_text for c in cells)
        rules.append(msgspec.structs.replace(rule, sources=(*rule.sources, bare[0])) if sure else rule)
    return msgspec.structs.replace(mapping, values=tuple(rules))


FORMATS.register("nvidia_smi_query")(Format("nvidia-smi --query-gpu", Kind.TELEMETRY, _score, _read))
