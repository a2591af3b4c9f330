"""How is a Parquet file of telemetry streamed?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.sources import SOURCES, Opened

BATCH_ROWS = 1 << 18
_MAGIC = b"PAR1"


class ParquetSource:
    """Parquet, one batch of rows at a time."""

    def fits(self, path: Path, head: bytes) -> bool:
        """Parquet starts with its own magic bytes; the suffix decides for a file cut so short that it lost them."""
        return head.startswith(_MAGIC) or path.suffix.lower() == ".parquet"

    def open(self, path: Path) -> Opened:
        """The footer is read here, so that a truncated file is refused before anything is taken from it."""
        try:
            file = pq.ParquetFile(path)
        except OSError as error:
            raise map_os_error(error, path, "read") from error
        except pa.ArrowException as error:
            raise FileFault(path, f"not a whole Parquet file: {error}", hint="copy or export the file again") from error
        names, rows = list(file.schema_arrow.names), file.metadata.num_rows
        file.close()
        if rows == 0:
            raise FileFault(path, "it has columns but not one row", hint="check the time range of the export")

        def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
            try:
                reader = pq.ParquetFile(path, read_dictionary=list(labels), pre_buffer=False)
                with reader:
                    yield from reader.iter_batches(BATCH_ROWS, columns=columns, use_threads=True)
            except (pa.ArrowException, OSError) as error:
                raise FileFault(path, f"broken inside: {error}", hint="copy or export the file again") from error

        return Opened(names, batches, rows)


SOURCES.register("parquet")(ParquetSource())
