"""How are the system metrics of Weights & Biases read?

`run.history(stream="events")` saved as CSV or Parquet, or wandb-events.jsonl of a run: a row every few seconds with all
GPUs, in columns such as `system.gpu.0.powerWatts`, or `system.gpu.0.powerWatts/l:node-1` where the run labels its
hosts. Activity of SMs and pipes was a share in some versions of the SDK and is percent in others: a file whose values
never exceed 1 does not tell which, and its activity is left out.

The CSV of a panel has one metric of a run, in columns such as `run - system.gpu.0.gpu`, with its smallest and largest
value in `...__MIN` and `...__MAX`. It is read where its x-axis is the time, or seconds since the run started, which
the user names; over steps it has no times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Rows, Wrong, first_of, layout, of_log, without_asking
from gpuledger.telemetry.mapping.rules import TimeRule
from gpuledger.telemetry.mapping.shape import melted
from gpuledger.telemetry.mapping.wide import plan_of
from gpuledger.telemetry.unpacking import text_lines
from gpuledger.units import some

_PANEL = re.compile(r"(.+) - (system[./]gpu\.\d+\..+?)(__MIN|__MAX)?")
_COLUMN = re.compile(r"system[./]gpu\.(\d+)\.(\w+)(?:/l:(.+))?")
_ACTIVITY = re.compile(r"(smActive|smOccupancy|dramActive|pipe\w+Active)")
_PEEK_LINES = 200
# Names and units as the SDK writes them (gpu_stats, wandb 0.13 to 0.31): percent, watts, MHz, degrees, bytes. The CSV
# of a panel has `Wall Time`, or seconds since the run started.
LAYOUT = layout(
    "W&B system metrics",
    {
        "gpu_util_ratio": ("gpu [%]",),
        "mem_copy_util_ratio %": ("memory",),
        "enc_util_ratio %": ("encoderUtilization",),
        "fb_used_bytes": ("memoryAllocatedBytes",),
        "power_w": ("powerWatts",),
        "power_limit_w": ("enforcedPowerLimitWatts",),
        "gpu_temp_c": ("temp",),
        "sm_clock_mhz": ("smClock",),
        "mem_clock_mhz": ("memoryClock",),
        "sm_ratio": ("smActive [%]",),
        "occupancy_ratio": ("smOccupancy [%]",),
        "tensor_ratio": ("pipeTensorActive [%]",),
        "hmma_ratio": ("pipeTensorHmmaActive [%]",),
        "dram_ratio": ("dramActive [%]",),
        "fp64_ratio": ("pipeFp64Active [%]",),
        "fp32_ratio": ("pipeFp32Active [%]",),
        "fp16_ratio": ("pipeFp16Active [%]",),
    },
    {
        "gpu_index": ("gpu",),
        "host": ("host", "hostname", "node", "gpu host"),
        "run_id": ("run_id", "run.id", "_run_id", "run"),
        "gpu_model": ("gpu_model", "gpu_type"),
    },
    time=TimeRule(("_timestamp", "Wall Time"), elapsed=("Relative Time (Process)", "Relative Time (Wall)")),
    blank=("", "nan", "NaN", "None"),
)


def _score(head: Head) -> Seen:
    """By a column of a GPU in the header, or in a line of JSON."""
    first = next(iter(head.lines), "")
    found = None if first.startswith("[") else _COLUMN.search(first)
    return sure(found and f"the column {found[0]}")


def _open(path: Path) -> Opened:
    """JSON lines or CSV."""
    from gpuledger.telemetry.formats.csv_file import open_csv  # tables of other files do without

    as_json = next(text_lines(path), "").startswith("{")
    opened = _json_lines(path) if as_json else open_csv(path)
    reads = _from_table(path, opened.names)
    return reads(opened) if reads else opened


def _from_table(path: Path, names: list[str]) -> Callable[[Opened], Opened] | None:
    """Tables with W&B's columns, whatever file they are in."""
    if panel := [match for name in names if (match := _PANEL.fullmatch(name))]:
        _check_panel(path, names, {match[1] for match in panel})
        return _read
    return _read if any(_COLUMN.fullmatch(name) for name in names) else None


def _check_panel(path: Path, names: list[str], runs: set[str]) -> None:
    """Refuse the CSV of a panel that does not show when, or of which run, a GPU was seen."""
    hint = (
        "export all metrics of a run with their times instead: wandb.Api().run('TEAM/PROJECT/RUN')"
        ".history(stream='events', samples=100_000).to_csv('events.csv')"
    )
    time = LAYOUT.time
    if not any(name in names for name in (*time.sources, *time.elapsed)):
        words = f"it is the CSV of a W&B panel over {names[0]!r}, which does not show the time of a reading"
        raise FileFault(path, words, hint=hint)
    if len(runs) > 1:
        raise FileFault(path, f"it is the CSV of a W&B panel with {len(runs)} runs ({some(sorted(runs))})", hint=hint)


def _read(opened: Opened) -> Opened:
    panel = {name: match for name in opened.names if (match := _PANEL.fullmatch(name))}
    plain = {name: name if name not in panel else panel[name][2] for name in opened.names}
    extremes = {name for name, match in panel.items() if match[3]}
    found = {n: match for n in opened.names if n not in extremes and (match := _COLUMN.fullmatch(plain[n]))}
    activity = [name for name, match in found.items() if _ACTIVITY.fullmatch(match[2])]
    unclear = 0 < _largest(opened, activity) <= 1
    columns = []
    for name, match in found.items():
        index, reading, host = match.groups()
        if name in activity or reading == "gpu":
            reading = f"{reading} [%]"
        if not (unclear and name in activity):
            columns.append((index, host or "", reading, name))
    plan = plan_of((n for n in opened.names if n not in found and n not in panel), columns)
    if panel:
        opened.notes.append(
            "a W&B panel exports a sample of one metric; run.history(stream='events', samples=100_000) has all of them"
        )
        if elapsed := next((n for n in opened.names if n in LAYOUT.time.elapsed), ""):
            opened.notes.append(f"its times are --at plus the seconds in {elapsed!r}, without pauses of the run")
    if unclear:
        opened.notes.append("activity of SMs and pipes is left out: values up to 1 may be shares or percent")
    hosts = [] if any(not host for _, host in plan.gpus) else ["host"]
    return melted(opened, plan, without_asking(LAYOUT, *hosts))


def _largest(opened: Opened, columns: list[str]) -> float:
    """The largest number in these columns."""
    largest = 0.0
    for batch in opened.batches(columns, ()) if columns else ():
        for column in batch.columns:
            numbers = [_number(v) for v in pc.unique(column).to_pylist()] if column.type == pa.string() else None
            largest = max(largest, *numbers) if numbers else max(largest, pc.max(column).as_py() or 0.0)
    opened.wrong_rows.clear()  # they come again
    return largest


def _number(text: str | None) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if value == value else 0.0  # noqa: PLR0124 - not a number


def _json_lines(path: Path) -> Opened:
    first = (_event(line) for line in first_of(path, _PEEK_LINES))
    names = list(dict.fromkeys(name for event in first if event for name in event))
    return of_log(path, names, partial(_json_rows, names), LAYOUT)


def _json_rows(names: list[str], path: Path) -> Rows:
    for number, line in enumerate((line for line in text_lines(path) if line.strip()), 1):
        event = _event(line)
        yield Wrong(number, line) if event is None else [_text(event.get(name)) for name in names]


def _event(line: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


FORMATS.register("wandb_events")(Format("W&B system metrics", Kind.TELEMETRY, _score, _open, _from_table))
