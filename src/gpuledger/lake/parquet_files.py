"""How is a Parquet file written so that a disk that fills up is reported once, and plainly?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class ParquetFileWriter(pq.ParquetWriter):  # type: ignore[misc]  # Arrow has no types
    """Arrow's writer, silent when it is dropped.

    A file that cannot be finished has raised its error already. Arrow would try to finish it once more when the writer
    is dropped, and print a traceback.
    """

    def __del__(self) -> None:
        """Close the file where that was not done."""
        with contextlib.suppress(OSError, pa.ArrowException):
            super().__del__()


def write_parquet(table: pa.Table, file: Path, **options: Any) -> None:
    """Write a table as one file."""
    with ParquetFileWriter(file, table.schema, **options) as writer:
        writer.write_table(table)
