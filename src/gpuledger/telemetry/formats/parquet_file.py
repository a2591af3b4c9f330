"""How is a Parquet file of telemetry streamed?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.bounds import refuse_claims
from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.formats import FORMATS, Cells, Format, Groups, Head, Kind, Opened, Seen, sure

BATCH_ROWS = 1 << 18


def _score(head: Head) -> Seen:
    """Parquet starts with its own magic bytes; the suffix decides for a file cut so short that it lost them."""
    return sure("the magic bytes of Parquet" if head.parquet else head.path.suffix.lower() == ".parquet" and "its name")


def _read(path: Path) -> Opened:
    """The footer is read here, so that a truncated file is refused before anything is taken from it."""
    try:
        about = path.stat()
        facts, kinds = _footer(path, about.st_mtime_ns, about.st_size)
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise FileFault(path, f"not a whole Parquet file: {error}", hint="copy or export the file again") from error
    types, rows = {f.name: f.type for f in kinds}, facts.num_rows
    names, groups = list(kinds.names), facts.num_row_groups
    sizes = [facts.row_group(i).num_rows for i in range(groups)]
    refuse_claims(path, max(rows, sum(sizes)))
    if rows == 0:
        raise FileFault(path, "it has columns but not one row", hint="check the time range of the export")

    def opened(some: range) -> Opened:
        reader = _Reader(path, facts, types, some)
        return Opened(names, reader.batches, sum(sizes[i] for i in some), by_column=reader.by_column)

    def cut(parts: int) -> list[Opened]:
        return [opened(range(groups * i // parts, groups * (i + 1) // parts)) for i in range(parts)]

    whole = opened(range(groups))
    whole.cut = cut
    whole.groups = Groups(sizes, opened, lambda column: _ends_ms(facts, types.get(column), column))
    return whole


@lru_cache(maxsize=8)  # a file is opened once for each of its pieces
def _footer(path: Path, _changed_ns: int, _size: int) -> tuple[pq.FileMetaData, pa.Schema]:
    """What a file says of itself."""
    with pq.ParquetFile(path) as file:
        return file.metadata, file.schema_arrow


_PER_MS = {"milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}


def _ends_ms(facts: pq.FileMetaData, kind: pa.DataType | None, column: str) -> list[tuple[int, int]] | None:
    """The first and the last time of each row group, where the file notes them."""
    if kind is None or not pa.types.is_timestamp(kind):
        return None
    place = next(i for i in range(facts.num_columns) if facts.schema.column(i).path == column)
    per_ms = _PER_MS.get(json.loads(facts.schema.column(place).logical_type.to_json()).get("timeUnit", ""))
    noted = [facts.row_group(number).column(place).statistics for number in range(facts.num_row_groups)]
    if per_ms is None or not all(stats is not None and stats.has_min_max for stats in noted):
        return None
    return [(stats.min_raw // per_ms, stats.max_raw // per_ms) for stats in noted]


class _Reader:
    """Reads some row groups."""

    def __init__(self, path: Path, facts: pq.FileMetaData, types: dict[str, pa.DataType], groups: range) -> None:
        self._path, self._facts, self._types, self._groups = path, facts, types, groups

    def batches(self, columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """The rows, all columns at a time."""
        for cells in self.by_column(columns, labels):
            yield pa.record_batch([cells.column(name) for name in columns], columns)

    def by_column(self, columns: list[str], labels: tuple[str, ...]) -> Iterator[Cells]:
        """The rows, each column when it is asked for."""
        for name in columns:
            if pa.types.is_nested(self._types[name]):
                problem = f"column {name!r} holds {self._types[name]}, not single values"
                raise FileFault(self._path, problem, hint="export one value per row")
        with (
            _intact(self._path),
            pq.ParquetFile(self._path, metadata=self._facts, read_dictionary=list(labels), pre_buffer=False) as reader,
        ):
            for group in self._groups:
                if 0 < reader.metadata.row_group(group).num_rows <= 2 * BATCH_ROWS:
                    yield _RowGroup(self._path, reader, group)
                else:
                    yield from map(_plain_batch, reader.iter_batches(BATCH_ROWS, [group], columns, use_threads=False))


class _RowGroup:
    """A row group of which a column is read when it is asked for."""

    def __init__(self, path: Path, reader: pq.ParquetFile, group: int) -> None:
        self._path, self._reader, self._group = path, reader, group
        self.num_rows: int = reader.metadata.row_group(group).num_rows

    def column(self, name: str) -> pa.Array:
        """The cells of a column."""
        with _intact(self._path):
            found = self._reader.read_row_group(self._group, [name], use_threads=False).column(name)
            return _plain(found.chunk(0) if found.num_chunks == 1 else found.combine_chunks())


@contextmanager
def _intact(path: Path) -> Iterator[None]:
    """Say of a file that Arrow cannot read that it is broken."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileFault(path, f"broken inside: {error}", hint="copy or export the file again") from error


def _plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([_plain(column) for column in batch.columns], batch.schema.names)


def _plain(column: pa.Array) -> pa.Array:
    """Cells in types the rest of the room knows: integers, floats, stamps, text, and text as dictionaries."""
    if pa.types.is_dictionary(column.type) and column.type.value_type != pa.string():
        column = column.dictionary_decode()
    plain = _plain_type(column.type)
    if plain != column.type:
        column = column.cast(plain, safe=plain == pa.string())
    if plain == pa.string():
        column.validate(full=True)  # Parquet does not promise that its text is UTF-8
    elif pa.types.is_dictionary(plain):
        column.dictionary.validate(full=True)
    return column


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_uint64(kind) or pa.types.is_float16(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_dictionary)
    return kind if any(check(kind) for check in known) else pa.string()


FORMATS.register("parquet")(Format("Parquet table", Kind.TELEMETRY, _score, _read))
