"""Which columns does a sample have, in what unit, and what may they hold?"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec
import pyarrow as pa

from gpuledger.catalog.files import data_dir, load_toml

Kind = Literal["time", "label", "level", "counter"]

TIME = "at_ms"
DEVICE = ("gpu_uuid", "gpu_instance_id")
OWNER = ("cluster", "namespace", "team", "user", "account", "workload", "run_id")
# Rows of one device at one instant that differ in these belong to different series and share the instant.
SERIES = (*OWNER, "pod", "container")

_TYPES = {"int64": pa.int64(), "float32": pa.float32(), "float64": pa.float64()}
LABEL_TYPE = pa.dictionary(pa.int32(), pa.string())


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column of a sample."""

    name: str
    kind: Kind
    type: Literal["string", "int64", "float32", "float64"]
    unit: str
    meaning: str
    min: float | None = None
    max: float | None = None

    def arrow(self) -> pa.DataType:
        """Its type in memory and on disk."""
        return LABEL_TYPE if self.type == "string" else _TYPES[self.type]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    columns: tuple[Column, ...]


@cache
def _file() -> _File:
    return load_toml(data_dir(__package__, "columns.toml"), _File)


def version() -> int:
    """The version of the sample format, written into every file."""
    return _file().version


@cache
def columns() -> dict[str, Column]:
    """All columns by name, in file order."""
    return {c.name: c for c in _file().columns}


@cache
def labels() -> tuple[str, ...]:
    """The columns that name rather than measure."""
    return tuple(c.name for c in _file().columns if c.kind == "label")


@cache
def readings() -> tuple[str, ...]:
    """The columns a device fills: levels and counters."""
    return tuple(c.name for c in _file().columns if c.kind in ("level", "counter"))


@cache
def counters() -> tuple[str, ...]:
    """The columns that only grow, unless they restart."""
    return tuple(c.name for c in _file().columns if c.kind == "counter")


@cache
def arrow_schema() -> pa.Schema:
    """The schema of a lake file, with the format version in its metadata."""
    fields = [pa.field(c.name, c.arrow(), nullable=c.name not in (TIME, "gpu_uuid")) for c in _file().columns]
    return pa.schema(fields, metadata={"gpuledger.samples.version": str(version())})
