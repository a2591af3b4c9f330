"""Which GPU is a row of that names none, or only an index?

Several GPUs that no column names are identified by their order in each round, where times and readings agree on it; a
header that comes again after time went back begins the log of another host. What stays open is refused, after reading,
for every format: never is one GPU made of two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import FileFault
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import Converted, convert
from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.mapping import Given, Mapping, fitted, shipped
from gpuledger.telemetry.one_gpu import (
    READINGS,
    SLOW,
    cut_off,
    gpus_at_once,
    gpus_in_round,
    gpus_in_turn,
    why_several,
    why_several_untimed,
    why_turns,
)
from gpuledger.telemetry.same_gpus import HOSTS_APART, NAME_GPUS, TOLERANCE_MS, numbers_of, row_keys
from gpuledger.telemetry.stamps import StampReader, Untimed
from gpuledger.telemetry.unpacking import open_plain, text_lines
from gpuledger.units import MS_PER_S

T = TypeVar("T")
PLACE, LOG = "order in the round", "log of the file"
_SHARED = 0.1  # of the rows of a part, with those of another: chance gives none
_FEWEST_HEADERS, _MOST_UNTIMED = 3, 16
_FRACTION = re.compile(r":\d\d[.,]\d")
_TWO_AT_ONCE = (
    "its header comes twice before the first row: two programs wrote into it at once, on two hosts, whose GPUs of one"
    " index would count as one, or on one"
)


def told_apart(path: Path, opened: Opened, rules: Mapping) -> Opened:
    """The file with a column more where its rows do not say all: the place in its round, or the log of a host."""
    present = set(opened.names)
    filled = {label for label, sources in rules.labels.items() if present & set(sources)} | {*rules.constants}
    named = "gpu_uuid" in filled or {"gpu_index", "host"} <= filled
    if not opened.text or rules.wide or rules.name in shipped() or named:
        return opened
    if "gpu_index" not in filled:
        return _in_rounds(path, opened, rules)
    opened = replace(opened, cut=None)  # rows are compared with those before them
    return _in_logs(path, opened, rules) if opened.restarts else opened


def _in_rounds(path: Path, opened: Opened, rules: Mapping) -> Opened:
    """The rows as those of one GPU, or of several by their order in each round."""
    timed = any(name in opened.names for name in (*rules.time.sources, rules.time.joined, *rules.time.clock))
    several = _looked_up("rounds", path, rules, lambda: _several(path, opened, rules, timed))
    if several:
        note = f"no column names the GPU of a row: {several} GPUs identified by their order in each round"
        made = _with_column(opened, PLACE, lambda first, count: np.arange(first, first + count) % several)
        return replace(made, mapping=_labeled(rules, "gpu_index", PLACE), notes=[*opened.notes, note])
    shown = "its times are those of a single GPU" if timed else "nothing shows that there are several"
    note = f"no column names the GPU of a row; {shown}, read as GPU 0"
    one = msgspec.structs.replace(rules, constants=rules.constants | {"gpu_index": "0"})
    return replace(opened, mapping=one, notes=[*opened.notes, note], cut=None)


def _labeled(rules: Mapping, label: str, source: str) -> Mapping:
    return msgspec.structs.replace(rules, labels={**rules.labels, label: (source,)})


def _with_column(opened: Opened, name: str, words: Callable[[int, int], np.ndarray]) -> Opened:
    """The file with one more column, by the number of a row; it can no longer be cut."""
    inner = opened.batches

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        row, wanted = 0, [c for c in columns if c != name] or opened.names[:1]
        for batch in inner(wanted, tuple(label for label in labels if label != name)):
            made = pa.array(words(row, batch.num_rows)).cast(pa.string()).dictionary_encode()
            row += batch.num_rows
            yield pa.record_batch({c: made if c == name else batch.column(c) for c in columns})

    return replace(opened, names=[*opened.names, name], batches=batches, cut=None, by_column=None)


# What was found in the file looked through last: an import opens a file several times.
_last: dict[tuple[object, ...], Any] = {}


def _looked_up(what: str, path: Path, rules: Mapping, look: Callable[[], T]) -> T:
    """What a look through the file finds, or found when it was the same file."""
    about = path.stat()
    known = (rules.name, rules.file, tuple(rules.labels), tuple(rule.column for rule in rules.values))
    key = (what, path, about.st_mtime_ns, about.st_size, *known)
    if key not in _last:
        found = look()
        _last.clear()
        _last[key] = found
    made: T = _last[key]
    return made


def _several(path: Path, opened: Opened, rules: Mapping, timed: bool) -> int:
    """How many GPUs without a name a file holds in each round, 0 where its rows are those of one; a fault where they
    may be of several that their order does not tell apart.
    """
    each = 0 if timed else _under_each_header(path, opened.restarts)
    if each > 1:
        return each
    tables = [made.table for made in _converted(path, opened, rules) if made.table.num_rows]
    if not tables:
        return 0
    seen = pa.concat_tables(tables, promote_options="permissive")
    hosts = pc.fill_null(seen["host"].cast(pa.string()), "") if "host" in seen.column_names else None
    for host in [None] if hosts is None else hosts.unique().to_pylist():
        mine = seen if hosts is None else seen.filter(pc.equal(hosts, host))
        slow = READINGS if timed else SLOW
        readings = {column: numbers_of(mine, column) for column in slow if column in mine.column_names}
        at_us = mine[schema.TIME].to_numpy() * 1000
        if (
            why := why_several(at_us, readings)
            if timed
            else why_turns(readings)
            if each
            else why_several_untimed(readings)
        ):
            models = mine["gpu_model"].to_pylist() if "gpu_model" in mine.column_names else []
            sure = timed and host is None and (not cut_off(at_us) or _in_fractions(path, opened, rules))
            ways = (gpus_in_round(at_us), gpus_in_turn(at_us, readings, models), gpus_at_once(at_us, readings, models))
            if sure and any(ways):
                return next(filter(None, ways))
            raise FileFault(path, f"its columns do not say which GPU a row is of, and {why}", hint=NAME_GPUS)
    return 0


def _under_each_header(path: Path, header: bytes) -> int:
    """How many rows follow each header of a file that has one for each round; 0 where that differs, or it has few.

    A query prints its header, then a row for each GPU of the host.
    """
    line, sizes = header.decode().rstrip("\r\n"), list[int]()
    for text in text_lines(path) if header else ():
        if text == line:
            sizes.append(0)
        elif sizes and text.strip():
            sizes[-1] += 1
            if sizes[-1] > _MOST_UNTIMED:
                return 0
    whole = set(sizes[:-1])
    return whole.pop() if len(sizes) >= _FEWEST_HEADERS and len(whole) == 1 else 0


def _in_fractions(path: Path, opened: Opened, rules: Mapping) -> bool:
    """Whether times are written with fractions of a second, which a spreadsheet cuts off."""
    time = fitted(path, opened.names, rules).bound.time
    first = next(opened.batches([time], (time,)), None) if time else None
    return first is not None and _FRACTION.search(str(first.column(0)[0].as_py())) is not None


def _converted(path: Path, opened: Opened, rules: Mapping) -> Iterator[Converted]:
    """All rows in the schema's columns, as those of one GPU where they name none."""
    given = Given(at_ms=0, every_ms=MS_PER_S)
    known = set(opened.names) & set(rules.labels.get("gpu_index", ()))
    named = rules if known else msgspec.structs.replace(rules, constants=rules.constants | {"gpu_index": "0"})
    bound = fitted(path, opened.names, named, given).bound.only(("gpu_index", *READINGS))
    stamps = StampReader(rules.time.formats, unit=rules.time.unit, untimed=Untimed(path, given))
    labels = (*bound.label_columns(), *(name for name in (bound.time, bound.clock) if name))
    for batch in opened.batches(bound.source_columns(), labels):
        yield convert(batch, bound, stamps)


def _in_logs(path: Path, opened: Opened, rules: Mapping) -> Opened:
    """The rows as those of one host, or of several whose logs stand one after the other."""
    parts = _looked_up("logs", path, rules, lambda: _logs(path, opened, rules))
    count = max((log for _, log in parts), default=0) + 1
    if count == 1:
        return opened
    words = np.array([f"{path.name.partition('.')[0]} log {number}" for number in range(1, count + 1)])
    starts, logs = np.array([row for row, _ in parts]), np.array([log for _, log in parts])

    def of_rows(first: int, rows: int) -> np.ndarray:
        found: np.ndarray = words[logs[np.searchsorted(starts, np.arange(first, first + rows), "right") - 1]]
        return found

    note = (
        f"its header comes again after time went back: the logs of {count} hosts, called '{words[0]}' to"
        f" '{words[-1]}'; logs of one host belong into one file in the order of time"
    )
    made = _with_column(opened, LOG, of_rows)
    return replace(made, mapping=_labeled(rules, "host", LOG), notes=[*opened.notes, note])


def _logs(path: Path, opened: Opened, rules: Mapping) -> list[tuple[int, int]]:
    """The rows at which parts of a file begin, as time goes back there, in a file whose header comes again, and the log
    that each part is of: one that repeats rows of another is of the same.
    """
    if not _comes_again(path, opened.restarts):
        return []
    starts, keys, row, last = [0], [list[np.ndarray]()], 0, 0
    for made in _converted(path, opened, rules):
        at_ms, found = made.table[schema.TIME].to_numpy(), row_keys(made.table)
        rows = np.arange(row, row + len(at_ms) + len(made.faults))[made.kept]
        back = np.flatnonzero(np.diff(at_ms, prepend=last or at_ms[:1]) < -TOLERANCE_MS)
        for begin, end in pairwise([0, *back.tolist(), len(at_ms)]):
            if begin in back:
                starts.append(int(rows[begin]))
                keys.append([])
            keys[-1].append(found[begin:end])
        row, last = row + len(at_ms) + len(made.faults), int(at_ms[-1]) if len(at_ms) else last
    logs, met = list[int](), list[np.ndarray]()
    for part in map(np.concatenate, keys):
        shared = [np.isin(part, one).mean() for one in met]
        logs.append(next((number for number, share in enumerate(shared) if share >= _SHARED), len(met)))
        met[logs[-1] :] = [np.concatenate([*met[logs[-1] : logs[-1] + 1], part]), *met[logs[-1] + 1 :]]
    return list(zip(starts, logs, strict=True))


def _comes_again(path: Path, header: bytes) -> bool:
    """Whether a line comes again in a file; a fault where it comes twice at once."""
    with open_plain(path) as stream:
        seen, kept = 0, b""
        while found := stream.read(1 << 22):
            text = kept + bytes(found)
            if not seen and 2 * header in text:
                raise FileFault(path, _TWO_AT_ONCE, hint=HOSTS_APART)
            seen, kept = seen + text.count(header), text[-len(header) + 1 :]
            if seen > 1:
                return True
    return False
