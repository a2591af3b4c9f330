"""What has been measured of pipes: how many FLOPs one is worth while it is active (data/pipes.toml)."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from gpuledger.catalog.files import data_dir, load_toml

Values = Any  # a number or an array of them
Edges = tuple[Values, Values, Values]


class _Vector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    low_ratio: float
    high_ratio: float
    fp16_low_ratio: float
    fp16_per_fp32: float


class _Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`point`: whether the middle is likelier than the rest of the range."""

    low_ratio: float
    middle_ratio: float
    high_ratio: float
    point: bool = True

    def times(self, flop: float) -> Edges:
        return self.low_ratio * flop, self.middle_ratio * flop, self.high_ratio * flop


class SlimIssue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partly used pipe on SMs with few warps: products alone, odd sizes, decoding."""

    slots_below_ratio: float
    issue_ratio: float
    waste_loss_ratio: float
    fp32_per_integer: float
    alone_below_ratio: float
    least_issue_ratio: float
    odd_below_ratio: float
    odd_issue_ratio: float
    odd_low_ratio: float
    odd_from_ratio: float
    many_flop_per_byte: float
    busy_from_ratio: float
    dense_from_ratio: float
    both_busy_from_ratio: float
    product_low_ratio: float
    alone_middle_ratio: float
    rows_from: float
    padded_rows: float
    low_of_middle_ratio: float
    loose_low_ratio: float
    loose_middle_ratio: float


class ModelIssue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partly used pipe between plain kernels: what it is worth by how much of the SMs' time is explained."""

    issue_ratio: float
    full_from_ratio: float
    missing_loss_ratio: float
    plain_weight: float


class Issue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an active tensor pipe is worth, by what else the counters show."""

    capped_issue_ratio: float
    capped_low_ratio: float
    free_issue_ratio: float
    free_low_ratio: float
    saturated_from_ratio: float
    slim_below_ratio: float
    slim_low_ratio: float
    full_low_ratio: float
    fill_low_ratio: float
    slots_as_memory_ratio: float
    sparse_below_ratio: float
    running_below_ratio: float
    gaps_missing_ratio: float
    low_of_middle_ratio: float
    many_low_ratio: float
    loose_low_ratio: float
    slim: SlimIssue
    model: dict[str, ModelIssue]


class Thin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the counters of a sample show few warps, and products alone among them."""

    saturation_below_ratio: float
    slots_below_ratio: float
    alone_below_ratio: float
    fp32_per_integer: float


class PipeFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    version: int
    usual: tuple[str, ...]
    spread: float
    noise_ratio: float
    ruled_out_ratio: float
    unclocked_low_ratio: float
    unclocked_high_ratio: float
    stray_tensor_per_vector_ratio: float
    names: dict[str, str]
    vector: _Vector
    emulated_fp32: _Edges
    tensor: dict[str, Issue]
    thin: dict[str, Thin]
    imma: dict[str, _Edges]
    dfma: dict[str, _Edges]


@cache
def pipe_facts() -> PipeFacts:
    """What is known of pipes."""
    return load_toml(data_dir(__package__, "data", "pipes.toml"), PipeFacts)
