"""How much of its FLOPs does a tensor pipe do while it is active, going by the other counters?

A pipe that fills the SMs' time is in large matrix products. What one that does not works on shows in the warp slots:
few warps mean products alone or decoding, many mean a model with plain kernels in between. Where the counters fit
several of these, or one that would tell is not recorded, there is a range and no point (figures: data/pipes.toml).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import issue_ratio
from gpuledger.physics.pipe_facts import Edges, Issue, ModelIssue, SlimIssue, Values, pipe_facts
from gpuledger.units import Unknown


class Conditions(msgspec.Struct, frozen=True):
    """What decides how fully an active tensor pipe works, as numbers or arrays; NaN where it is not known.

    capped      share of the tensor activity with clocks held down by a power limit
    saturation  tensor activity over SM activity
    slots       warp slots filled, over SM activity
    memory      memory interface activity over SM activity
    fp32        fp32 pipe activity over SM activity
    integer     integer pipe activity over SM activity
    running     SM activity over the share of the time with kernels
    intensity   FLOP at full issue over bytes of memory traffic
    tensor      tensor activity, which saturation cannot be below; NaN: no readings were looked at
    """

    capped: Values = math.nan
    saturation: Values = math.nan
    slots: Values = math.nan
    memory: Values = math.nan
    fp32: Values = math.nan
    integer: Values = math.nan
    running: Values = math.nan
    intensity: Values = math.nan
    tensor: Values = math.nan


class Issued(msgspec.Struct, frozen=True):
    """Shares of its FLOPs: low, middle and high.

    `loose`: where only the range is known; `blind`: where that is for want of a counter; `thin`: where the pipe was
    taken to decode, so that part of its activity is padding; `full`: where it fills the SMs' time.
    """

    edges: Edges
    loose: Values = False
    blind: Values = False
    thin: Values = False
    full: Values = False


def issued(gpu: Gpu, precision: str | None, seen: Conditions, notes: list[str]) -> Issued:
    """What an active tensor pipe does; `precision`: None where it is not known."""
    general, own = issue_ratio(gpu.architecture), pipe_facts().tensor.get(gpu.architecture)
    if isinstance(general, Unknown):
        notes.append(f"{general.why}: taken as 1, so tensor work may read high")
        return Issued((1.0, 1.0, 1.0))
    if own is None:
        return Issued((general.low, general.middle, general.high))
    seen = Conditions(*(np.asarray(v, dtype=np.float64) for v in msgspec.structs.astuple(seen)))
    full = np.fmax(seen.saturation, seen.tensor) >= own.saturated_from_ratio
    low, middle = _large(own, seen, (general.low, general.middle))
    partly = ~full & ~np.isnan(seen.saturation)
    blind = ~full & ~np.isnan(seen.tensor) & np.isnan(seen.saturation + seen.slots + seen.memory + seen.running)
    lowest = np.where(seen.intensity >= own.slim.many_flop_per_byte, own.many_low_ratio, own.loose_low_ratio)
    low = np.where(blind, np.minimum(np.where(partly, np.minimum(low, own.fill_low_ratio), low), lowest), low)
    loose, thin, rows = blind, np.zeros(low.shape, dtype=bool), np.flatnonzero(partly & ~blind)
    if len(rows):
        loose, middle = loose.copy(), np.array(middle)
        some = Conditions(*(v[rows] for v in msgspec.structs.astuple(seen)))
        low[rows], middle[rows], loose[rows], thin[rows] = _partly(own, precision, some)
    return Issued((low, middle, general.high), loose, blind, thin, full)


def _partly(own: Issue, precision: str | None, seen: Conditions) -> tuple[Values, Values, Values, Values]:
    """A pipe that does not fill the SMs' time: low, middle, whether they are a range only, whether it decodes."""
    slim, thin, few, sure = _slim(own.slim, seen)
    many, known = _model(own, own.model["tf32" if precision == "tf32" else "half"], seen)
    low, middle = (np.where(slim, a, b) for a, b in zip(few, many, strict=True))
    return low, middle, np.where(slim, ~sure, ~known), slim & thin


def _large(own: Issue, seen: Conditions, general: tuple[float, float]) -> tuple[Values, Values]:
    """Low and middle of large products, which a power limit slows."""
    no_cap, capped = np.isnan(seen.capped), seen.capped
    low = np.where(no_cap, general[0], capped * own.capped_low_ratio + (1 - capped) * own.free_low_ratio)
    return low, np.where(no_cap, general[1], capped * own.capped_issue_ratio + (1 - capped) * own.free_issue_ratio)


def _slim(by: SlimIssue, seen: Conditions) -> tuple[Values, Values, tuple[Values, Values], Values]:
    """Whether warp slots are slim; whether that is decoding; low and middle; whether the middle is a point."""
    slim = seen.slots < by.slots_below_ratio
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least, waste = (
            v / seen.saturation for v in (seen.fp32, np.minimum(seen.fp32, by.fp32_per_integer * seen.integer))
        )
    alone = (least < by.alone_below_ratio) | (waste < by.alone_below_ratio)
    busy = seen.saturation + seen.memory
    odd = alone & (busy < by.odd_below_ratio) & (seen.saturation >= by.odd_from_ratio)
    many = (seen.intensity >= by.many_flop_per_byte) & (busy >= by.busy_from_ratio)
    product = alone & (many | ((seen.saturation >= by.dense_from_ratio) & (busy >= by.both_busy_from_ratio)))
    fed = np.maximum(by.issue_ratio - by.waste_loss_ratio * waste, by.least_issue_ratio)
    rows = seen.intensity * fed
    decoding = ~alone & (waste >= by.alone_below_ratio)
    some = decoding & (rows >= by.rows_from)
    # Rows are filled up to the next eight: half of that is missing in the mean.
    padded = fed * (1 - by.padded_rows / np.maximum(rows, by.rows_from))
    cases = [slim & odd, slim & product, slim & some]
    unknown = np.where(alone, by.alone_middle_ratio, by.loose_middle_ratio)
    middle = np.select(cases, [by.odd_issue_ratio, by.issue_ratio, padded], unknown)
    low = np.select(
        cases, [by.odd_low_ratio, by.product_low_ratio, by.low_of_middle_ratio * padded], by.loose_low_ratio
    )
    return slim, decoding & some, (low, middle), np.logical_or.reduce(cases)


def _model(own: Issue, by: ModelIssue, seen: Conditions) -> tuple[tuple[Values, Values], Values]:
    """Slots filled as in models: low and middle; whether the middle is a point."""
    plain = np.maximum(seen.memory, own.slots_as_memory_ratio * seen.slots)
    missing = np.maximum(by.full_from_ratio - seen.saturation - by.plain_weight * plain, 0.0)
    middle = np.maximum(by.issue_ratio - by.missing_loss_ratio * missing, own.slim.least_issue_ratio)
    sparse = seen.saturation < own.sparse_below_ratio
    gaps = (seen.running < own.running_below_ratio) & (missing > own.gaps_missing_ratio)
    low = np.where(sparse, own.loose_low_ratio, np.minimum(own.fill_low_ratio, own.low_of_middle_ratio * middle))
    return (low, middle), ~(sparse | gaps)


def slim_kinds(readings: Mapping[str, np.ndarray], rule: Mapping[str, Values]) -> tuple[np.ndarray, np.ndarray] | None:
    """Samples that decode, and those in products alone; None where a counter that shows it is not recorded.

    A day that has some of each is rated by each. Few warps, the pipe partly used; not by NaN.
    """
    names = ("tensor_ratio", "sm_ratio", "occupancy_ratio", "fp32_ratio")
    tensor, sm, slots, fp32 = (readings.get(n) for n in names)
    if tensor is None or sm is None or slots is None or fp32 is None:
        return None
    slim = (tensor < rule["saturation_below_ratio"] * sm) & (slots < rule["slots_below_ratio"] * sm) & (tensor > 0)
    integer = readings.get("integer_ratio")
    vector = fp32 if integer is None else np.fmin(fp32, rule["fp32_per_integer"] * integer)
    alone = vector < rule["alone_below_ratio"] * tensor
    return np.asarray(slim & ~alone & ~np.isnan(fp32)), np.asarray(slim & alone)
