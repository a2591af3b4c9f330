"""How are the metrics that nvitop collects read?

`ResourceMetricCollector.collect()` returns one row of all GPUs, in columns such as
`train/gpu:0/gpu_utilization (%)/last`, which scripts write to CSV or Parquet. Versions without the last reading have
the mean since the collector was started or cleared: rows that are means since the same start are refused, as they are
not readings of their time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import layout
from gpuledger.telemetry.mapping import TimeRule
from gpuledger.telemetry.mapping.shape import melted
from gpuledger.telemetry.mapping.wide import plan_of

_COLUMN = re.compile(r"(.*?/?)(?:cuda:\d+ \()?gpu:(\d+)\)?/([a-z_]+ \([^)]+\))/(mean|last)")
_CHECKED_ROWS = 1000


LAYOUT = layout(
    "nvitop metrics",
    {
        "gpu_util_ratio": ("gpu_utilization (%)",),
        "mem_copy_util_ratio": ("memory_utilization (%)",),
        "fb_used_bytes": ("memory_used (MiB)",),
        "fb_free_bytes": ("memory_free (MiB)",),
        "gpu_temp_c": ("temperature (C)",),
        "power_w": ("power_usage (W)",),
        "power_limit_w": ("power_limit (W)",),
    },
    {"gpu_index": ("gpu",), "host": ("host", "hostname", "node")},
    blank=("", "nan", "NaN"),
)


def _score(head: Head) -> Seen:
    """By a column of a GPU in the header."""
    cells = next(iter(head.lines), "").split(",")
    return sure(next((f"the column {cell}" for cell in cells if _COLUMN.fullmatch(cell.strip('"'))), None))


def _open(path: Path) -> Opened:
    from gpuledger.telemetry.formats.csv_file import open_csv  # tables of other files do without

    opened = open_csv(path)
    reads = _from_table(path, opened.names)
    return reads(opened) if reads else opened


def _from_table(path: Path, names: list[str]) -> Callable[[Opened], Opened] | None:
    """Tables with nvitop's columns, whatever file they are in."""
    found = [match for name in names if (match := _COLUMN.fullmatch(name)) and "pid:" not in match[1]]
    last = [match for match in found if match[4] == "last"]
    return partial(_read, path, last or found) if found else None


def _read(path: Path, found: list[re.Match[str]], opened: Opened) -> Opened:
    tag = found[0][1]
    last = found[0][4] == "last"
    time, length = f"{tag}{'last_timestamp' if last else 'timestamp'}", f"{tag}duration (s)"
    taken = {name for name in opened.names if _COLUMN.fullmatch(name)}
    mine = ((match[2], "", match[3], match[0]) for match in found if match[1] == tag)
    plan = plan_of((n for n in opened.names if n not in taken), mine)
    if {match[1] for match in found} != {tag}:
        opened.notes.append(f"metrics of the tag {tag.rstrip('/')!r} are read; those of other tags are passed over")
    if not last and time in opened.names and length in opened.names:
        _refuse_growing(path, opened, time, length)
    mapping = msgspec.structs.replace(LAYOUT, time=TimeRule((time,)))
    return melted(opened, plan, mapping)


def _refuse_growing(path: Path, opened: Opened, time: str, length: str) -> None:
    """A fault where the rows are means over ever longer stretches since one start."""
    batch = next(iter(opened.batches([time, length], ())), None)
    opened.wrong_rows.clear()  # they come again
    if batch is None or batch.num_rows < 3:
        return
    rows = batch.slice(0, _CHECKED_ROWS)
    try:
        at, seconds = (rows.column(c).cast(pa.float64()).to_numpy(zero_copy_only=False) for c in (time, length))
    except pa.ArrowInvalid:
        return
    if np.ptp(at - seconds) < 0.05 * np.ptp(at):
        raise FileFault(
            path,
            "each row is the mean since the collector was started, not since the row before",
            hint="take a newer nvitop, which has the last reading too, or call collector.clear() after collect()",
        )


FORMATS.register("nvitop")(Format("nvitop metrics", Kind.TELEMETRY, _score, _open, _from_table))
