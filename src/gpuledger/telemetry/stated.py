"""What does a file not say that can be stated instead of asked?

A log of one host names no host, one without times was written when the file was. Of a single file that much is stated,
with the option that replaces it. Files that are read together are asked: their GPU 0 may be one GPU or several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.catalog.gpus import gpus_like
from gpuledger.errors import map_os_error
from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.mapping import Given, Mapping, fitted, recognized
from gpuledger.telemetry.mapping.rules import ASKS
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.telemetry.unpacking import first_bytes, text_lines
from gpuledger.times import length_ms
from gpuledger.units import MS_PER_S, day_start_ms, utc, utc_day

# The A800 and the H800 have the same limit and memory, and the catalog does not have them.
_WITH_TWINS = ("A100", "H100")
_AMOUNT = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Stated:
    """What is taken for true of a file, and the option that says otherwise."""

    what: str
    option: str


def stated_words(stated: Sequence[Stated]) -> str:
    """One line of what was assumed: host 'gpus' after the file's name (--host), ..."""
    return ", ".join(f"{one.what} ({one.option.partition(' ')[0]})" for one in stated)


def completed(path: Path, name: str, mapping: Mapping | None, given: Given) -> tuple[Given, list[Stated]]:
    """What the user said of a file, and what else can be stated of it; `name`: what the user calls the file."""
    opened = open_shaped(path, mapping)
    rules = mapping or opened.mapping or recognized(opened.names)
    if rules is None:
        return given, []
    found = fitted(path, opened.names, rules, given)
    labels, every_ms, at_ms, stated = dict(given.labels), given.every_ms, given.at_ms, dict[str, str]()
    if "host" in found.asked:
        labels["host"] = Path(name).name.split(".")[0] or name
        stated["host"] = f"host {labels['host']!r} after the file's name"
    if "gpu_model" in rules.asks and "gpu_model" not in {*found.bound.labels, *found.bound.constants}:
        stated["gpu_model"] = "GPU model unknown"
        if like := _model_like(opened):
            labels["gpu_model"], stated["gpu_model"] = like
    bound, mean = found.bound, False
    if "every" in found.asked and rules.every:
        every_ms = length_ms(rules.every)
        stated["every"] = f"{rules.every} between readings"
    elif not (bound.time or bound.clock or bound.elapsed) and every_ms is None:
        mean = True
        stated |= {"every": "times unknown, so each GPU has the mean of its rows"} if "every" in found.asked else {}
    if "time" in found.asked:
        at_ms, stated["time"] = _started(path, bool(bound.clock), every_ms)
        at_ms -= _lasted_ms(opened, bound.elapsed) if bound.elapsed else 0
    return Given(at_ms, labels, every_ms, mean), [Stated(what, ASKS[asked]) for asked, what in stated.items()]


def _model_like(opened: Opened) -> tuple[str, str] | None:
    """The only GPU of the catalog with the default power limit and the memory that all rows have, and words about it.

    The limit in force may have been lowered to that of another GPU, so it shows nothing.
    """
    limit = next((n for n in opened.names if n.startswith(("default limit", "power.default_limit"))), None)
    memory = next((n for n in opened.names if n.startswith(("memory total [MiB]", "memory.total [MiB]"))), None)
    batch = next(opened.batches([limit, memory], ()), None) if limit and memory else None
    if batch is None:
        return None
    pairs = {tuple(map(_amount, row.values())) for row in batch.to_pylist()}
    watts, mib = next(iter(pairs))
    if len(pairs) > 1 or not (watts and mib):
        return None
    found = gpus_like(watts, mib)
    words = f"by its default limit of {watts:g} W and {mib:,.0f} MiB; prices and peaks rest on that"
    alone = len(found) == 1 and not found[0].startswith(_WITH_TWINS)
    return (found[0], f"GPU model {found[0]} {words}") if alone else None


def _amount(cell: object) -> float:
    """The number of a cell, with or without its unit; 0 where there is none."""
    found = _AMOUNT.search(str(cell))
    return float(found[0]) if found else 0.0


def _started(path: Path, clock: bool, every_ms: int | None) -> tuple[int, str]:
    """When the readings of a file began, by when it was written; `clock`: the time of day is known, not the day."""
    try:
        written_ms = int(path.stat().st_mtime) * MS_PER_S
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    if clock:
        return day_start_ms(utc_day(written_ms)), f"the day the file was written, {utc_day(written_ms)}"
    start_ms = written_ms - (every_ms or 0) * _lines(path)
    return start_ms, f"times from when the file was written, {utc(written_ms):%Y-%m-%d %H:%M} UTC"


def _lasted_ms(opened: Opened, elapsed: str) -> int:
    """How long a file that counts seconds goes on."""
    cells = (cell for batch in opened.batches([elapsed], ()) for cell in batch.column(0).to_pylist())
    return round(max(map(_amount, cells), default=0.0) * MS_PER_S)


def _lines(path: Path) -> int:
    """How many lines a text has: at least as many as rounds."""
    return 0 if b"\x00" in first_bytes(path, 4096) else sum(1 for _ in text_lines(path))
