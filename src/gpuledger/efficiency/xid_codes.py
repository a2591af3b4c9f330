"""Which driver errors (XID) did GPUs report? Lines of the ledger count them; only samples have their codes.

A code is read where a driver error appeared, as posting counts it: the value changed, and to another one than 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.efficiency.health import HealthAnalysis, HealthRow
from gpuledger.lake.batch import as_dictionary, device_name
from gpuledger.lake.parts import open_part, part_readable
from gpuledger.lake.steady_labels import read_group, steady_groups
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, Unknown, utc_day

XID, EVENTS = "xid", "xid_events"
MOST = 20  # GPUs whose samples are looked at: as many as a table of faults shows
MANY = 200  # GPUs with errors: above, the codes of a few take as long to read as half of the statement
NOT_KEPT = Unknown("code not kept: the ledger counts driver errors, and their samples are gone")
_IN_BUCKET = Unknown("code not read: the samples are in a bucket")
_NOT_READ = Unknown(f"code not read: it is for the {MOST} GPUs with the worst faults, and on the page of a GPU")
_TOO_MANY = Unknown(f"code not read: more than {MANY} GPUs have driver errors; filter them, or open the page of a GPU")
_OF_OTHERS = Unknown("code unclear: the GPU had errors of other owners too; leave out the filters to see the codes")
_NONE = -1  # no value
Last = dict[str, tuple[int, int]]  # by device the last value, and when
Codes = dict[str, Counter[int]]


def with_codes(health: HealthAnalysis, books: Books, boards: Collection[str] | None = None) -> HealthAnalysis:
    """The same with the codes of driver errors, as far as samples have them: of these GPUs, else of the worst."""
    wrong = [row for row in health.rows if row.xid_events and (boards is None or row.gpu_uuid in boards)]
    if not wrong:
        return health
    if boards is None and len(wrong) > MANY:
        unread = (replace(row, xid_codes=_TOO_MANY) if row.xid_events else row for row in health.rows)
        return replace(health, rows=tuple(unread))
    wrong = wrong[:MOST]
    found = _codes(books, {row.gpu_uuid: row.xid_events for row in wrong})
    codes = {row.gpu_uuid: found if isinstance(found, Unknown) else _of(row, found, books.scope) for row in wrong}
    rows = (
        replace(row, xid_codes=codes.get(row.gpu_uuid, _NOT_READ if boards is None else row.xid_codes))
        if row.xid_events
        else row
        for row in health.rows
    )
    return replace(health, rows=tuple(rows))


def _of(row: HealthRow, found: Codes, scope: Scope) -> tuple[int, ...] | Unknown:
    codes = found.get(row.gpu_uuid, Counter())
    if scope.names_owners and codes.total() > row.xid_events:
        return _OF_OTHERS
    return tuple(sorted(codes)) or NOT_KEPT


def _codes(books: Books, counted: Mapping[str, int]) -> Codes | Unknown:
    """How often each code appeared on each board; of the instances of a board the one with the most counts.

    Only days with errors are read. An error between the last sample of a day and the first of the next is posted on the
    day, and its code is in the next day's samples.
    """
    if not books.lake.manifest().parts:
        return {}
    days, scope = _days(books, counted), books.scope
    start, end = scope.since_ms or 0, scope.until_ms or 1 << 62
    last: Last = {}
    by_device: dict[tuple[str, str], Counter[int]] = {}
    for day in sorted({day + ahead for day in days for ahead in (0, MS_PER_DAY)}):
        boards = days.get(day, set()) | {
            b for b in days.get(day - MS_PER_DAY, ()) if _most(by_device).get(b, Counter()).total() < counted[b]
        }
        for part in books.lake.manifest().of_day(utc_day(day)) if boards else ():
            if books.lake.source(part) is not None:
                return _IN_BUCKET
            for board, device, at_ms, code in _appeared(books.lake.path(part), boards, last):
                if start <= at_ms < end:
                    by_device.setdefault((board, device), Counter())[code] += 1
    return _most(by_device)


def _days(books: Books, boards: Collection[str]) -> dict[int, set[str]]:
    """By day the boards with driver errors."""
    out: dict[int, set[str]] = {}
    for day_ms, rows in books.blocks((), (EVENTS,)):
        with_errors = rows["gpu_uuid"][rows[EVENTS] > 0]
        named = books.names["gpu_uuid"].text(np.unique(with_errors))
        out.setdefault(day_ms, set()).update(name for name in named if name and name in boards)
    return {day: found for day, found in out.items() if found}


def _most(by_device: Mapping[tuple[str, str], Counter[int]]) -> Codes:
    out: Codes = {}
    for (board, _), codes in by_device.items():
        out[board] = max(out.get(board, Counter()), codes, key=Counter.total)
    return out


def _appeared(path: Path, boards: Collection[str], last: Last) -> Iterator[tuple[str, str, int, int]]:
    """Board, device, instant and code of each driver error in a part; `last` goes on from part to part."""
    with open_part(path) as file, part_readable(path):
        names, noted = file.schema_arrow.names, steady_groups(file)
        for i in range(file.num_row_groups):
            if XID in names and _may_have(file.metadata.row_group(i), names, boards):
                columns = [schema.TIME, *schema.DEVICE, XID]
                yield from _changes(read_group(file, i, columns, noted[i] if noted else None)[0], boards, last)


def _may_have(group: pq.RowGroupMetaData, names: list[str], boards: Collection[str]) -> bool:
    """Whether a row group may have driver errors of these boards, by its statistics."""
    codes, uuids = (group.column(names.index(name)).statistics for name in (XID, "gpu_uuid"))
    if codes is not None and (codes.max <= 0 if codes.has_min_max else codes.null_count is not None):
        return False
    known = uuids is not None and uuids.has_min_max
    return not known or any(str(uuids.min) <= board <= str(uuids.max) for board in boards)


def _changes(table: pa.Table, boards: Collection[str], last: Last) -> Iterator[tuple[str, str, int, int]]:
    """Rows are in order of device and time: what a row changed from is the row before it, or the part before it."""
    names = as_dictionary(table["gpu_uuid"])
    codes = names.indices.to_numpy(zero_copy_only=False)
    mine = [codes == i for i, name in enumerate(names.dictionary.to_pylist()) if name in boards]
    if not mine:
        return
    table = table.take(pa.array(np.flatnonzero(np.logical_or.reduce(mine))))
    uuids, instances = (as_dictionary(table[name]) for name in schema.DEVICE)
    uuid, instance = (found.indices.fill_null(-1).to_numpy(zero_copy_only=False) for found in (uuids, instances))
    at = table[schema.TIME].to_numpy()
    code = np.nan_to_num(table[XID].to_numpy(zero_copy_only=False), nan=_NONE).astype(np.int64)
    first = np.append(True, (uuid[1:] != uuid[:-1]) | (instance[1:] != instance[:-1]))
    ends = np.append(np.flatnonzero(first)[1:] - 1, len(at) - 1)

    def named(i: int) -> tuple[str, str]:
        board, part = uuids.dictionary[int(uuid[i])].as_py(), int(instance[i])
        return board, device_name(board, None if part < 0 else instances.dictionary[part].as_py())

    for i in np.flatnonzero(code > 0).tolist():
        board, device = named(i)
        before, when = (int(code[i - 1]), int(at[i - 1])) if not first[i] else last.get(device, (int(code[i]), 0))
        if before not in (_NONE, code[i]) and at[i] - when <= MS_PER_DAY:
            yield board, device, int(at[i]), int(code[i])
    last |= {named(i)[1]: (int(code[i]), int(at[i])) for i in ends.tolist()}
