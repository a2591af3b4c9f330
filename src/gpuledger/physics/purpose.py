"""Does a workload train or serve?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.units import PPM

Purpose = Literal["training", "inference"]
# What shows it: a word of the name, memory traffic against tensor work, utilization alone (a guess), nothing.
By = Literal["name", "memory", "utilization", "none"]
# The sums that decide where the name says nothing.
USE = ("tensor_ppm_ms", "dram_ppm_ms", "active_util_ppm_ms", "active_ms")


class Aim(NamedTuple):
    """What a workload is for, None where nothing shows it; what shows it, and that in words."""

    kind: Purpose | None
    by: By
    how: str


class _Use(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    inference_dram_per_tensor_from: float
    training_active_util_from_ratio: float


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    names: dict[Purpose, tuple[str, ...]]
    use: _Use


@cache
def _rules() -> _File:
    return load_toml(data_dir(__package__, "data", "purpose.toml"), _File)


def names_of(kind: Purpose) -> frozenset[str]:
    """The words of names that show a purpose."""
    return frozenset(_rules().names[kind])


def purpose(name: str, sums: Mapping[str, float], nameless: str) -> Aim:
    """Training, inference or neither; `nameless` is what time without an owner is called."""
    rules = _rules()
    if name == nameless:
        return Aim(None, "none", "time without an owner")
    words = set(re.split(r"[^a-z0-9]+", name.casefold()))
    for kind, known in rules.names.items():
        if hit := sorted(words.intersection(known)):
            return Aim(kind, "name", f"by its name: {hit[0]}")
    tensor, dram = sums["tensor_ppm_ms"], sums["dram_ppm_ms"]
    if tensor and dram / tensor >= rules.use.inference_dram_per_tensor_from:
        how = f"by its use: memory {dram / tensor:.1f} times as active as the tensor pipe"
        return Aim("inference", "memory", how)
    if not sums["active_ms"]:
        return Aim(None, "none", "never active")
    util = sums["active_util_ppm_ms"] / PPM / sums["active_ms"]
    guess: Purpose = "training" if util >= rules.use.training_active_util_from_ratio else "inference"
    return Aim(guess, "utilization", f"by its use: {100 * util:.0f} % utilization while active")
