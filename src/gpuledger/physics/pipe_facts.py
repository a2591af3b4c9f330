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


class TensorFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    capped_issue_ratio: float
    capped_low_ratio: float
    free_issue_ratio: float
    free_low_ratio: float
    saturated_from_ratio: float
    slim_below_ratio: float
    slim_low_ratio: float
    full_low_ratio: float
    fill_low_ratio: float
    sparse_below_ratio: float
    sparse_low_ratio: float
    filled_issue_ratio: float
    filled_from_ratio: float
    unfilled_loss_ratio: float
    slots_weight: float
    memory_weight: float
    accounted_from_ratio: float
    unaccounted_loss_ratio: float
    unaligned_issue_ratio: float
    unaligned_low_ratio: float
    loose_below_ratio: float
    loose_low_ratio: float
    loose_middle_ratio: float


class Thin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the counters show products of few rows, and what an active pipe is worth then."""

    saturation_below_ratio: float
    slots_below_ratio: float
    dram_from_ratio: float
    low_ratio: float
    middle_ratio: float
    many_flop_per_byte: float


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
    tensor: dict[str, TensorFacts]
    thin: dict[str, Thin]
    imma: dict[str, _Edges]
    dfma: dict[str, _Edges]


@cache
def pipe_facts() -> PipeFacts:
    """What is known of pipes."""
    return load_toml(data_dir(__package__, "data", "pipes.toml"), PipeFacts)
