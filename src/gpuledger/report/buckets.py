"""How are the seven buckets of a bill shown to a reader?"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.cost.statement import Bucket


class BucketKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bucket for a reader: its name, what it means, its color, whether it counts as waste."""

    name: Bucket
    title: str
    role: str
    waste: bool
    meaning: str


class _Buckets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    buckets: tuple[BucketKind, ...]


@cache
def bucket_kinds() -> tuple[BucketKind, ...]:
    """The seven buckets, in the order they are shown."""
    return load_toml(data_dir("gpuledger.report", "buckets.toml"), _Buckets).buckets
