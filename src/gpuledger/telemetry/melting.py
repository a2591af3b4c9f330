"""How does a table with all GPUs in one row become one with a row per GPU?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.telemetry.mapping import Mapping
from gpuledger.telemetry.sources import Opened

GPU, HOST = "gpu", "gpu host"
Key = tuple[str, str]


@dataclass
class Wide:
    """The columns that all GPUs share, and by GPU (index, host) the column of each reading."""

    shared: list[str]
    gpus: dict[Key, dict[str, str]] = field(default_factory=dict)

    def add(self, gpu: str, host: str, reading: str, column: str) -> None:
        """Note the GPU and the reading that a column holds; of two for the same, the first stays."""
        self.gpus.setdefault((gpu, host), {}).setdefault(reading, column)

    @property
    def readings(self) -> list[str]:
        """All readings, in the order they came."""
        return list(dict.fromkeys(r for columns in self.gpus.values() for r in columns))


def melted(opened: Opened, wide: Wide, mapping: Mapping) -> Opened:
    """The table with a row per GPU; a GPU without any reading in a row has none."""
    hosts = any(host for _, host in wide.gpus)

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        shared = [c for c in wide.shared if c in columns]
        readings = [r for r in wide.readings if r in columns]
        wanted = [of[r] for of in wide.gpus.values() for r in readings if r in of]
        for batch in opened.batches([*shared, *wanted], tuple(c for c in shared if c in labels)):
            for (gpu, host), of in wide.gpus.items():
                arrays = {c: batch.column(c) for c in shared}
                arrays |= {GPU: _constant(gpu, batch.num_rows), HOST: _constant(host, batch.num_rows)}
                arrays |= {r: _reading(batch, wide, of, r) for r in readings}
                known = _known([arrays[r] for r in readings if r in of])
                if known is not None:
                    yield pa.record_batch([arrays[c] for c in columns], columns).filter(known)

    names = [*wide.shared, GPU, *([HOST] if hosts else []), *wide.readings]
    return Opened(names, batches, None, opened.wrong_rows, opened.text, mapping, notes=opened.notes)


def _constant(text: str, rows: int) -> pa.DictionaryArray:
    return pa.array([text] * rows, pa.string()).dictionary_encode()


def _reading(batch: pa.RecordBatch, wide: Wide, of: dict[str, str], reading: str) -> pa.Array:
    """The GPU's own column, or an empty one like that of another GPU."""
    if reading in of:
        return batch.column(of[reading])
    other = next(columns[reading] for columns in wide.gpus.values() if reading in columns)
    return pa.nulls(batch.num_rows, batch.column(other).type)


def _known(columns: list[pa.Array]) -> pa.Array | None:
    """Which rows have a reading; None without columns."""
    found = None
    for column in columns:
        empty = pc.equal(column, "") if pa.types.is_string(column.type) else pc.is_null(column, nan_is_null=True)
        mine = pc.invert(pc.fill_null(empty, True))
        found = mine if found is None else pc.or_(found, mine)
    return found
