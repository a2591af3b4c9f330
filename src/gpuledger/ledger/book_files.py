"""How does a table of the books rest in a file?

Books of a lake are Parquet. The temporary books of `analyze FILE` are Arrow streams, written in half the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from gpuledger.lake.parquet_files import ParquetFileWriter, write_parquet

LASTING, TEMPORARY = ".parquet", ".arrow"
# Rows of a group: enough to be read at once, few enough to be held.
GROUP_ROWS = 1 << 15
_SMALL = 1 << 18  # bytes: read as a whole; Arrow would ask for each column by itself
_COMPRESSION = "lz4"  # about as small as under zstd where bytes are split by place, in a third of the time


class Writer(Protocol):
    """Writes a table group by group."""

    def write_table(self, table: pa.Table) -> None:
        """Write some rows."""

    def close(self) -> None:
        """Finish the file."""


class _Parquet:
    def __init__(self, file: Path, schema: pa.Schema, *, noted: Sequence[str]) -> None:
        labels = [f.name for f in schema if not pa.types.is_int64(f.type)]
        self._writer = ParquetFileWriter(
            file,
            schema,
            compression=_COMPRESSION,
            use_dictionary=labels,
            column_encoding={n: "BYTE_STREAM_SPLIT" for n in schema.names if n not in labels},
            write_statistics=[name for name in noted if name in schema.names],
            store_schema=False,  # labels come dictionary-coded or plain and read back as plain text
            write_batch_size=GROUP_ROWS,  # a thousand at a time, as is usual, takes a fifth longer
        )

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> None:
        self._writer.close()


class _Stream:
    def __init__(self, file: Path, schema: pa.Schema) -> None:
        self._sink = pa.OSFile(str(file), "wb")
        # On one thread: a process that has others is not copied (`lake.engines.copies`).
        options = ipc.IpcWriteOptions(compression=_COMPRESSION, use_threads=False)
        self._writer = ipc.new_stream(self._sink, schema, options=options)

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(table.combine_chunks())

    def close(self) -> None:
        self._writer.close()
        self._sink.close()


def write_to(file: Path, schema: pa.Schema, *, noted: Sequence[str] = ()) -> Writer:
    """A writer of one table; its name says how. `noted`: columns whose least and greatest value readers look for."""
    return _Stream(file, schema) if file.suffix == TEMPORARY else _Parquet(file, schema, noted=noted)


def write_small(file: Path, table: pa.Table) -> None:
    """Write a table of few rows at once."""
    if file.suffix == TEMPORARY:
        writer = write_to(file, table.schema)
        writer.write_table(table)
        writer.close()
        return
    write_parquet(table, file, compression=_COMPRESSION, store_schema=False)


def read_book(file: Path, columns: Sequence[str] | None = None, labels: Sequence[str] = ()) -> pa.Table:
    """A table, or those of its columns that it has; `labels` are coded by dictionaries, other texts are plain."""
    if file.suffix == TEMPORARY:
        with _mapped(file) as stream:
            return _coded(_some(stream.read_all(), columns), labels)
    with _opened(file, labels) as part:
        return part.read(columns=columns, use_threads=False)


def book_groups(file: Path, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[pa.Table]:
    """The same a group of rows at a time."""
    if file.suffix == TEMPORARY:
        with _mapped(file) as stream:
            for batch in stream:
                yield _coded(_some(pa.Table.from_batches([batch]), columns), labels)
        return
    with _opened(file, labels) as part:
        for group in range(part.num_row_groups):
            yield part.read_row_group(group, columns=columns)


@contextmanager
def _mapped(file: Path) -> Iterator[ipc.RecordBatchStreamReader]:
    options = ipc.IpcReadOptions(use_threads=False)
    with pa.memory_map(str(file)) as source, ipc.open_stream(source, options=options) as stream:
        yield stream


def _some(table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    there = set(table.column_names)
    return table if columns is None else table.select([c for c in dict.fromkeys(columns) if c in there])


def _coded(table: pa.Table, labels: Sequence[str]) -> pa.Table:
    for place, field in enumerate(table.schema):
        coded = pa.types.is_dictionary(field.type)
        if coded and field.name not in labels:
            table = table.set_column(place, field.name, table[place].cast(pa.string()))
        elif not coded and field.name in labels:
            table = table.set_column(place, field.name, table[place].dictionary_encode())
    return table


def _opened(file: Path, labels: Sequence[str]) -> AbstractContextManager[pq.ParquetFile]:
    """A Parquet file with its labels by number."""
    source = pa.BufferReader(file.read_bytes()) if file.stat().st_size < _SMALL else file
    try:
        return pq.ParquetFile(source, read_dictionary=list(labels))
    except KeyError:  # an older file lacks one
        there = pq.read_schema(file).names
        return pq.ParquetFile(file, read_dictionary=[name for name in labels if name in there])
