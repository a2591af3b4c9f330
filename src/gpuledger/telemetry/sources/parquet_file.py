"""How is a Parquet file of telemetry streamed?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.bounds import refuse_claims
from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.sources import SOURCES, Batches, Fit, Groups, Head, Opened

BATCH_ROWS = 1 << 18


class ParquetSource:
    """Parquet, one batch of rows at a time."""

    def fits(self, head: Head) -> Fit:
        """Parquet starts with its own magic bytes; the suffix decides for a file cut so short that it lost them."""
        return Fit.SURE if head.parquet or head.path.suffix.lower() == ".parquet" else Fit.NO

    def open(self, path: Path) -> Opened:
        """The footer is read here, so that a truncated file is refused before anything is taken from it."""
        try:
            file = pq.ParquetFile(path)
        except OSError as error:
            raise map_os_error(error, path, "read") from error
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise FileFault(path, f"not a whole Parquet file: {error}", hint="copy or export the file again") from error
        types, rows = {f.name: f.type for f in file.schema_arrow}, file.metadata.num_rows
        names, groups = list(file.schema_arrow.names), file.num_row_groups
        sizes = [file.metadata.row_group(i).num_rows for i in range(groups)]
        facts = file.metadata
        file.close()
        refuse_claims(path, max(rows, sum(sizes)))
        if rows == 0:
            raise FileFault(path, "it has columns but not one row", hint="check the time range of the export")

        def opened(some: range) -> Opened:
            return Opened(names, _batches(path, types, some), sum(sizes[i] for i in some))

        def cut(parts: int) -> list[Opened]:
            return [opened(range(groups * i // parts, groups * (i + 1) // parts)) for i in range(parts)]

        whole = opened(range(groups))
        whole.cut = cut
        whole.groups = Groups(sizes, opened, lambda column: _ends_ms(facts, types.get(column), column))
        return whole


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


def _batches(path: Path, types: dict[str, pa.DataType], groups: range) -> Batches:
    """What reads some row groups."""

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for name in columns:
            if pa.types.is_nested(types[name]):
                raise FileFault(
                    path, f"column {name!r} holds {types[name]}, not single values", hint="export one value per row"
                )
        try:
            reader = pq.ParquetFile(path, read_dictionary=list(labels), pre_buffer=False)
            with reader:
                for group in groups:
                    if reader.metadata.row_group(group).num_rows <= 2 * BATCH_ROWS:
                        found = _batch_of(reader.read_row_group(group, columns, use_threads=False))
                        while found:
                            yield _plain(found.pop())  # and nothing of it stays here
                    else:
                        some = reader.iter_batches(BATCH_ROWS, [group], columns, use_threads=False)
                        yield from map(_plain, some)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FileFault(path, f"broken inside: {error}", hint="copy or export the file again") from error

    return batches


def _batch_of(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows of a table as one batch; none where it has no row."""
    return table.combine_chunks().to_batches()


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch in types the rest of the room knows: integers, floats, stamps, text, and text as dictionaries."""
    for place, field in enumerate(batch.schema):
        column = batch.column(place)
        if pa.types.is_dictionary(field.type) and field.type.value_type != pa.string():
            column = column.dictionary_decode()
        plain = _plain_type(column.type)
        if plain != field.type:
            column = column.cast(plain, safe=plain == pa.string())
            batch = batch.set_column(place, field.name, column)
        if plain == pa.string():
            column.validate(full=True)  # Parquet does not promise that its text is UTF-8
        elif pa.types.is_dictionary(plain):
            column.dictionary.validate(full=True)
    return batch


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_uint64(kind) or pa.types.is_float16(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_dictionary)
    return kind if any(check(kind) for check in known) else pa.string()


SOURCES.register("parquet")(ParquetSource())
