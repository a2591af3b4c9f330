"""How do rows that are in order get to files, and back a slice at a time?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec
import pyarrow as pa
from pyarrow import ipc

from gpuledger.lake.sorting.narrow import Narrow
from gpuledger.lake.sorting.runs import Piece, Run, Slice

Files = dict[str, ipc.RecordBatchFileReader]


def spilled(held: Sequence[Piece], folder: Path, number: int, *, by_day: bool) -> list[Run]:
    """Slices in memory moved to files: a record batch a slice, a file for each kind of columns (`by_day`: and day).

    `number`: of the first file.
    """
    files: dict[tuple[int, tuple[tuple[str, pa.DataType], ...]], list[Piece]] = defaultdict(list)
    for piece in held:
        assert piece.rows is not None
        kinds = tuple((name, column.type) for name, column in piece.rows.columns.items())
        files[piece.slice.day if by_day else 0, kinds].append(piece)
    runs: list[Run] = []
    for pieces in files.values():
        path = folder / f"run-{number + len(runs)}.arrow"
        batches = (pa.record_batch(piece.own().columns) for piece in pieces)
        first = next(batches)
        # Not packed: it is mapped into memory to be read, and only the rows wanted are touched.
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
        slices = [msgspec.structs.replace(piece.slice, index=index) for index, piece in enumerate(pieces)]
        runs.append(Run(str(path), slices))
    return runs


def read_back(file: str, wanted: Slice, files: Files) -> Narrow:
    """The rows of a slice; `files`: those that are mapped into memory."""
    if file not in files:
        files[file] = ipc.open_file(pa.memory_map(file))
    batch = files[file].get_batch(wanted.index)
    return Narrow(wanted.constants, dict(zip(batch.schema.names, batch.columns, strict=True)), wanted.packings)
