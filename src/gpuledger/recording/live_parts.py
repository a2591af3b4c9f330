"""How do the rows of a few seconds become a part of the lake, and many such parts a few?

Whenever there are 32 parts of one size they are replaced by one of the next size. The rows of the smallest are still
at hand; larger ones are read back. Posting may have merged some of them in between: those are left alone.

Arrays are made from buffers: `pa.array` imports pandas wherever it is installed, to see whether it was given one of its
things, which takes half a second of CPU, more than a minute of sampling costs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.devices.device import Facts, Row
from gpuledger.errors import LakeError
from gpuledger.lake.layout import Lake, Manifest, Part
from gpuledger.lake.parquet_files import write_parquet
from gpuledger.lake.parts import PartWriter, open_part
from gpuledger.lake.sorting.order import in_order
from gpuledger.native.number_types import numpy_type
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, utc_day

Labels = Mapping[str, str]

FAN_IN = 32


class Batch(msgspec.Struct, frozen=True):
    """Rows of one device in order of time, with the labels of its owner; the first column is the time."""

    facts: Facts
    labels: Labels
    columns: tuple[str, ...]
    rows: list[Row]


def _day(row: Row) -> int:
    return int(row[0] or 0) // MS_PER_DAY


def _of_day(batches: list[Batch], day: int) -> list[Batch]:
    """The rows of one UTC day."""
    some = [msgspec.structs.replace(b, rows=[r for r in b.rows if _day(r) == day]) for b in batches]
    return [b for b in some if b.rows]


class LiveParts:
    """The parts one recording has added to a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._folder: Path | None = None
        self._opened = contextlib.ExitStack()
        self._small: dict[str, list[tuple[int, list[Batch]]]] = {}
        self._merged: dict[tuple[str, int], list[int]] = {}
        self._replaced: list[Path] = []
        self.rows = 0

    def append(self, batches: list[Batch]) -> None:
        """Add rows to the lake, all or none."""
        days = sorted({_day(row) for b in batches for row in b.rows})
        by_day = [(day, _of_day(batches, day) if len(days) > 1 else batches) for day in days]
        first = self._folder is None
        staged = [write_part(some, self._staging() / f"{day}.parquet", day) for day, some in by_day]
        with self._lake.locked():
            if first:  # what an earlier recording left when it was killed
                self._lake.sweep()
            after = self._committed(staged)
        for part, (_, some) in zip(after.parts[-len(staged) :], by_day, strict=True):
            self._small.setdefault(part.day, []).append((part.id, some))
            self.rows += part.rows

    def _committed(self, staged: list[tuple[Path, Part]]) -> Manifest:
        """Commit. Where only the last step failed, forcing the manifest to disk, the rows are in: not again."""
        try:
            return self._lake.commit(staged)
        except LakeError:
            after = self._lake.manifest()
            last = [msgspec.structs.replace(p, id=0, file="") for p in after.parts[-len(staged) :]]
            if last != [part for _, part in staged]:
                raise
            return after

    def tidy(self) -> None:
        """Merge where many parts have piled up."""
        for day, parts in list(self._small.items()):
            if len(parts) >= FAN_IN:
                self._merge_small(day)
        for (day, level), ids in list(self._merged.items()):
            if len(ids) >= FAN_IN:
                self._merged[day, level] = []
                self._keep(day, level + 1, self._merge_read_back(day, ids))

    def close(self) -> None:
        """Merge what is small and leave nothing behind."""
        try:
            for day in list(self._small):
                self._merge_small(day)
            self._forget_replaced()
        finally:
            self._opened.close()

    def _staging(self) -> Path:
        """A folder on the lake's disk for as long as the recording runs."""
        if self._folder is None:
            self._folder = self._opened.enter_context(self._lake.staging())
        return self._folder

    def _keep(self, day: str, level: int, part: int | None) -> None:
        if part is not None:
            self._merged.setdefault((day, level), []).append(part)

    def _merge_small(self, day: str) -> None:
        mine = dict(self._small.pop(day))
        with self._lake.locked():
            parts = [p for p in self._lake.manifest().of_day(day) if p.id in mine]
            if len(parts) > 1:
                joined = _join([b for p in parts for b in mine[p.id]])
                number = parts[0].first_ms // MS_PER_DAY
                file, part = write_part(joined, self._staging() / "merged.parquet", number, compression="zstd")
                self._keep(day, 1, self._replace(parts, file, part))
            else:
                self._keep(day, 1, parts[0].id if parts else None)

    def _merge_read_back(self, day: str, ids: list[int]) -> int | None:
        with self._lake.locked():
            parts = [p for p in self._lake.manifest().of_day(day) if p.id in set(ids)]
            if len(parts) < 2:
                return parts[0].id if parts else None
            tables = []
            for part in parts:
                with open_part(self._lake.path(part)) as file:
                    tables.append(file.read())
            writer = PartWriter(self._staging() / "merged.parquet", parts[0].first_ms // MS_PER_DAY)
            writer.add(in_order(pa.concat_tables(tables).unify_dictionaries().combine_chunks()))
            return self._replace(parts, writer.file, writer.close())

    def _replace(self, parts: list[Part], file: Path, part: Part) -> int:
        self._forget_replaced()
        after = self._lake.replace(parts, file, part)
        self._replaced = [self._lake.path(p) for p in parts]
        return after.parts[-1].id

    def _forget_replaced(self) -> None:
        """Delete files that were merged a while ago: a reader may still have been at them when they were."""
        for file in self._replaced:
            file.unlink(missing_ok=True)
        self._replaced = []


def _join(batches: list[Batch]) -> list[Batch]:
    """One batch for each device, owner and set of columns."""
    joined: dict[tuple[object, ...], Batch] = {}
    for b in batches:
        key = (b.facts.name, *sorted(b.labels.items()), b.columns)
        if key in joined:
            joined[key].rows.extend(b.rows)
        else:
            joined[key] = msgspec.structs.replace(b, rows=list(b.rows))
    return list(joined.values())


def live_table(batches: list[Batch]) -> pa.Table:
    """Batches as one table of the schema, one after the other."""
    counts = tuple(len(b.rows) for b in batches)
    named = [_device_labels(b.facts) | dict(b.labels) for b in batches]
    cells = [dict(zip(b.columns, zip(*b.rows, strict=True), strict=True)) for b in batches]
    silence = [(None,) * n for n in counts]
    arrays = []
    for field in schema.arrow_schema():
        if pa.types.is_dictionary(field.type):
            arrays.append(labels(tuple(found.get(field.name) for found in named), counts))
        elif field.name == "slice_ratio":
            arrays.append(numbers(spread([b.facts.slice_ratio for b in batches], counts), field.type))
        elif any(field.name in found for found in cells):
            values = [v for found, blank in zip(cells, silence, strict=True) for v in found.get(field.name, blank)]
            arrays.append(numbers(values, field.type))
        else:
            arrays.append(blanks(sum(counts), field.type))
    return pa.table(arrays, schema=schema.arrow_schema())


def _device_labels(facts: Facts) -> dict[str, str]:
    found = {
        "gpu_uuid": facts.gpu_uuid,
        "gpu_index": str(facts.index),
        "gpu_model": facts.gpu_model,
        "gpu_instance_id": facts.gpu_instance_id,
    }
    return {name: value for name, value in found.items() if value}


def write_part(batches: list[Batch], file: Path, day: int, compression: str = "none") -> tuple[Path, Part]:
    """Rows of one UTC day as a file in order of device and time; for a few rows compressing does not pay."""
    batches = sorted(batches, key=lambda b: b.facts.name)
    names = [] if compression == "none" else list(schema.labels())
    table = live_table(batches)
    at_ms = [int(row[0] or 0) for b in batches for row in b.rows]
    devices = spread([b.facts.name for b in batches], [len(b.rows) for b in batches])
    if any(a[0] == b[0] and a[1] >= b[1] for a, b in pairwise(zip(devices, at_ms, strict=True))):
        table = in_order(table)  # owners take turns or share, or the clock was set back
    write_parquet(table, file, compression=compression, use_dictionary=names)
    ends = (devices[0], devices[-1])
    return file, Part(0, utc_day(day * MS_PER_DAY), "", len(at_ms), min(at_ms), max(at_ms), *ends)


T = TypeVar("T")


def numbers(values: Sequence[float | int | None], kind: pa.DataType) -> pa.Array:
    """Numbers of a fixed width, NULL where None."""
    width = numpy_type(kind)
    if None not in values:
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.array(values, dtype=width))])
    known = np.array([v is not None for v in values])
    filled: np.ndarray = np.array([0 if v is None else v for v in values], dtype=width)
    bits = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(filled)])


@lru_cache(maxsize=256)
def labels(values: tuple[str | None, ...], counts: tuple[int, ...]) -> pa.Array:
    """Each text as often as said, coded by a dictionary; NULL where None. Owners change seldom: worth remembering."""
    words = sorted({v for v in values if v is not None})
    if not words:
        return pa.nulls(sum(counts), pa.dictionary(pa.int32(), pa.string()))
    codes = [None if v is None else words.index(v) for v in values]
    coded = [w.encode() for w in words]
    ends = np.array([0, *accumulate(len(c) for c in coded)], dtype=np.int32)
    texts = pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))])
    return pa.DictionaryArray.from_arrays(numbers(spread(codes, counts), pa.int32()), texts)


@lru_cache(maxsize=64)
def blanks(count: int, kind: pa.DataType) -> pa.Array:
    """Nothing but NULL."""
    return pa.nulls(count, kind)


def spread(values: Sequence[T], counts: Sequence[int]) -> list[T]:
    """Each value as often as said."""
    return [v for v, n in zip(values, counts, strict=True) for _ in range(n)]
