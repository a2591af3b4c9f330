"""Which measured factors turn a roofline into tokens a second, and how far off are they?"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml

Ratio = Annotated[float, msgspec.Meta(gt=0, le=1)]
AtLeastZero = Annotated[float, msgspec.Meta(ge=0)]


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Predicted over measured tokens a second, of rows that calibrated nothing."""

    of: str
    rows: int
    p10: float
    p50: float
    p90: float

    def range_of(self, predicted: float) -> tuple[float, float]:
        """What was measured where so much was predicted: low and high, eight times of ten."""
        return predicted / self.p90, predicted / self.p10


class Decode(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a decoding step loses."""

    memory_ratio: Ratio
    expert_memory_ratio: Ratio
    spread_experts: AtLeastZero
    compute_ratio: Ratio
    per_layer_s: AtLeastZero
    per_moe_layer_s: AtLeastZero
    per_collective_s: AtLeastZero
    per_sequence_s: AtLeastZero
    per_step_s: AtLeastZero
    source: str
    as_of: str
    calibrated_on: str
    held_out: str
    errors: tuple[Spread, ...]


class Products(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What training or reading prompts loses: products below the peak, other traffic, launching a layer's kernels."""

    compute_ratio: Ratio
    memory_ratio: Ratio
    traffic_per_kept: AtLeastZero
    per_layer_s: AtLeastZero
    source: str
    as_of: str
    calibrated_on: str
    held_out: str
    errors: tuple[Spread, ...]


class Factors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All factors."""

    version: Literal[1]
    decode: Decode
    train: Products
    prefill: Products


@cache
def factors() -> Factors:
    """The shipped factors."""
    return load_toml(data_dir("gpuledger.plan", "data", "efficiency_factors.toml"), Factors)


def spread(errors: tuple[Spread, ...], *names: str) -> Spread:
    """The first of these groups there is; the last name must be there."""
    by_name = {error.of: error for error in errors}
    return next(by_name[name] for name in names if name in by_name)
