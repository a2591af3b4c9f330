"""How is a Parquet file of telemetry streamed?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.bounds import refuse_claims
from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.sources import SOURCES, Batches, Fit, Head, Opened

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
        return whole


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
                some = {"row_groups": list(groups), "columns": columns, "use_threads": True}
                for batch in reader.iter_batches(BATCH_ROWS, **some):
                    yield _plain(batch)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FileFault(path, f"broken inside: {error}", hint="copy or export the file again") from error

    return batches


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
