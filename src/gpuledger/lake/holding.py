"""Which rows does the lake hold of some devices, found without fetching the files of a whole fleet?

A part notes when each of its devices ends: for samples that come later its footer is all that is read. Of a large part
in a bucket only the row groups of the devices are read, without a copy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.lake.layout import Lake, Part
from gpuledger.lake.parts import LAST, open_part, with_all_columns
from gpuledger.lake.sorting.order import device_names

# A part in a bucket is copied where at least this share of its row groups is needed.
_MOST_GROUPS = 0.5


def rows_held(lake: Lake, parts: Sequence[Part], names: list[str], since_ms: int | None = None) -> pa.Table | None:
    """The rows that parts hold of some devices, whose names are in order.

    `since_ms`: rows of devices that end before may be left out.
    """
    found, wanted = [], set(names)
    for part in parts:
        for group in _groups(lake, part, names, since_ms):
            coded = device_names(group)
            inside = pa.array([t in wanted for t in coded.dictionary.to_pylist()])
            found.append(group.filter(inside.take(coded.indices)))
    return pa.concat_tables(found).unify_dictionaries().combine_chunks() if found else None


def _groups(lake: Lake, part: Part, names: list[str], since_ms: int | None) -> Iterator[pa.Table]:
    """The row groups of a part that may hold some devices."""
    source = lake.source(part)
    place = lake.place(part) if source is not None else lake.path(part)
    with open_part(place, source=source) as file:
        wanted = _wanted(file, names, since_ms)
        if source is None or len(wanted) < _MOST_GROUPS * file.num_row_groups:
            yield from (with_all_columns(file.read_row_group(i)) for i in wanted)
            return
    with open_part(lake.path(part)) as file:
        yield from (with_all_columns(file.read_row_group(i)) for i in wanted)


def _wanted(file: pq.ParquetFile, names: list[str], since_ms: int | None) -> list[int]:
    noted = (file.metadata.metadata or {}).get(LAST.encode())
    if noted is not None:
        last = msgspec.json.decode(noted, type=dict[str, int])
        names = [n for n in names if n in last and (since_ms is None or last[n] >= since_ms)]
    boards = sorted({name.split("/", maxsplit=1)[0] for name in names})
    column = file.schema_arrow.get_field_index("gpu_uuid")
    return [i for i in range(file.num_row_groups) if _in_group(file.metadata.row_group(i).column(column), boards)]


def _in_group(column: pq.ColumnChunkMetaData, boards: list[str]) -> bool:
    stats = column.statistics
    if stats is None or not stats.has_min_max:
        return bool(boards)
    at = bisect_left(boards, str(stats.min))
    return at < len(boards) and boards[at] <= str(stats.max)
