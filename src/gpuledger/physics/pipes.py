"""How many FLOPs ran, going by how active each pipe was?

FLOP/s = activity x SM clock x SMs x FLOP per clock per SM, summed over the pipes. What an active pipe is worth is in
data/pipes.toml: the tensor pipe's precision must be given or is a range, and how fully it issues depends on its state.
Vector FLOPs are in the sum: they are work the hardware did. Next to tensor work they are a few percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import PEAK_TOLERANCE_RATIO, issue_ratio
from gpuledger.physics.pipe_facts import Edges, TensorFacts, Values, pipe_facts
from gpuledger.units import Unknown

# Which pipe a given precision runs on, where it is not the hmma pipe.
_OWN_PIPE = {"int8": "imma", "fp64": "dfma"}
INTEGER = "integer products issue in one of two ways that the counters do not tell apart: a range, no point"
# The low end of a range lies at least this much below a middle that is itself taken down.
_BELOW_MIDDLE = 0.9


@dataclass(frozen=True)
class Conditions:
    """What decides how fully an active tensor pipe works, as numbers or arrays; NaN where it is not known.

    capped      share of the tensor activity with clocks held down by a power limit
    saturation  tensor activity over SM activity
    slots       warp slots filled, over SM activity
    thin        whether it works on products of few rows
    intensity   FLOP at full issue over bytes of memory traffic
    memory      memory interface activity over SM activity
    engine      share of the time with kernels
    tensor      tensor activity, which saturation cannot be below; NaN: no readings were looked at
    """

    capped: Values = math.nan
    saturation: Values = math.nan
    slots: Values = math.nan
    thin: Values = False
    intensity: Values = math.nan
    memory: Values = math.nan
    engine: Values = math.nan
    tensor: Values = math.nan


@dataclass(frozen=True)
class Worths:
    """FLOP per clock per SM of each pipe at full activity: low, middle, high. `notes` say what was assumed.

    `thin`: where the tensor pipe was taken to work on products of few rows; `loose`: where only its range is known;
    `blind`: where that is for want of a counter. `ranges_only`: the other pipes of which only a range is known.
    """

    edges: dict[str, Edges]
    notes: tuple[str, ...]
    thin: Values = False
    loose: Values = False
    blind: Values = False
    ranges_only: frozenset[str] = frozenset()


def precision_name(label: str | None) -> str | None:
    """The catalog's name of a precision: bfloat16 is bf16."""
    if not label or not label.strip():
        return None
    folded = label.strip().casefold().removeprefix("torch.")
    return pipe_facts().names.get(folded, folded)


def pipe_worths(gpu: Gpu, precision: str | None = None, seen: Conditions | None = None) -> Worths | Unknown:
    """What each pipe is worth on this GPU; a pipe the catalog cannot rate is left out."""
    known, notes = precision_name(precision), list[str]()
    own = known in _OWN_PIPE
    seen = seen or Conditions()
    tensor = _float_tensor(gpu, None if own else known, seen, [] if own else notes)
    if isinstance(tensor, Unknown):
        return tensor
    edges, ranges = {"hmma": tensor, "tensor": tensor} | _vector(gpu), set[str]()
    for pipe, kind in (("imma", "int8"), ("dfma", "fp64_tensor")):
        flop = gpu.tensor_flop_per_clk_per_sm(kind)
        if isinstance(flop, Unknown):
            continue
        facts = getattr(pipe_facts(), pipe).get(gpu.architecture)
        edges[pipe] = facts.times(flop) if facts else (flop, flop, flop)
        ranges |= {pipe} if facts and not facts.point else set()
        if _OWN_PIPE.get(known or "") == pipe:
            edges["tensor"] = edges[pipe]
    said, apart = tuple(dict.fromkeys(notes)), frozenset(ranges)
    if own:
        loose = _OWN_PIPE[known or ""] in apart
        return Worths(edges, (INTEGER, *said) if loose else said, loose=loose, ranges_only=apart)
    unseen = _blind(gpu, seen)
    return Worths(edges, said, np.asarray(seen.thin), _doubtful(gpu, seen) | unseen, unseen, apart)


def _float_tensor(gpu: Gpu, known: str | None, seen: Conditions, notes: list[str]) -> Edges | Unknown:
    """Floating-point tensor work."""
    reference = gpu.tensor_flop_per_clk_per_sm(gpu.reference_precision())
    if isinstance(reference, Unknown):
        return reference
    low, middle, high = _issue(gpu, seen, notes)
    facts, flops = pipe_facts(), _usual_flops(gpu)
    if known:
        flop = gpu.tensor_flop_per_clk_per_sm("tf32" if known == "fp32" else known)
        if not isinstance(flop, Unknown):
            edges = _known_low(gpu, seen, low) * flop, middle * flop, high * flop
            if known != "fp32" or "tf32" not in flops:
                return edges
            notes.append("fp32 on the tensor pipe: taken as three tf32 products each")
            full, emulated = _saturated(gpu, seen), facts.emulated_fp32.times(flops["tf32"])
            low, middle, high = (np.where(full, e, m) for e, m in zip(edges, emulated, strict=True))
            unseen = _blind(gpu, seen)
            return np.where(unseen, np.minimum(low, edges[0]), low), middle, np.where(unseen, edges[2], high)
        notes.append(f"label {known!r} is not a tensor precision of {gpu.name}, so not used")
    slowest, fastest = min(flops, key=lambda p: flops[p]), max(flops, key=lambda p: flops[p])
    if flops[slowest] == flops[fastest]:
        return low * reference, middle * reference, high * reference
    notes.append(f"tensor precision unknown: {slowest} to {fastest}, middle {gpu.reference_precision()}")
    return _unknown_low(gpu, seen, low) * flops[slowest], middle * reference, high * flops[fastest]


def _usual_flops(gpu: Gpu) -> dict[str, float]:
    """FLOP per clock per SM of the usual tensor precisions this GPU has, slowest first."""
    rated = {p: gpu.tensor_flop_per_clk_per_sm(p) for p in gpu.tensor_precisions() if p in pipe_facts().usual}
    return {p: flop for p, flop in rated.items() if not isinstance(flop, Unknown)}


def _saturated(gpu: Gpu, seen: Conditions) -> Values:
    """Whether the tensor pipe fills the SMs' time; False where that is not known."""
    own = pipe_facts().tensor.get(gpu.architecture)
    return np.fmax(seen.saturation, seen.tensor) >= own.saturated_from_ratio if own else False


def _blind(gpu: Gpu, seen: Conditions) -> Values:
    """Whether a partly used pipe may do almost anything, because a counter that would tell is not recorded."""
    if gpu.architecture not in pipe_facts().tensor:
        return False
    needed = (np.asarray(v) for v in (seen.saturation, seen.slots, seen.memory, seen.engine))
    return np.isnan(sum(needed)) & ~np.isnan(np.asarray(seen.tensor)) & ~_saturated(gpu, seen)


def _issue(gpu: Gpu, seen: Conditions, notes: list[str]) -> Edges:
    """The share of its FLOPs a tensor pipe does while active."""
    general, own = issue_ratio(gpu.architecture), pipe_facts().tensor.get(gpu.architecture)
    if isinstance(general, Unknown):
        notes.append(f"{general.why}: taken as 1, so tensor work may read high")
        return 1.0, 1.0, 1.0
    if own is None:
        return general.low, general.middle, general.high
    capped, saturation = np.asarray(seen.capped), np.asarray(seen.saturation)
    no_cap = np.isnan(capped)
    low = np.where(no_cap, general.low, capped * own.capped_low_ratio + (1 - capped) * own.free_low_ratio)
    middle = np.where(no_cap, general.middle, capped * own.capped_issue_ratio + (1 - capped) * own.free_issue_ratio)
    partly = ~np.isnan(saturation) & ~_saturated(gpu, seen)
    filled = np.where(saturation < own.sparse_below_ratio, own.sparse_low_ratio, own.fill_low_ratio)
    explained = _explained(own, seen)
    middle = np.where(partly & ~np.isnan(explained), explained, middle)
    low = np.where(partly, np.fmin(filled, _BELOW_MIDDLE * middle), low)
    odd = partly & _bare(own, seen) & (saturation >= own.sparse_below_ratio)
    low, middle = np.where(odd, own.unaligned_low_ratio, low), np.where(odd, own.unaligned_issue_ratio, middle)
    if (thin := pipe_facts().thin.get(gpu.architecture)) is not None:
        few = np.asarray(seen.thin)
        low, middle = np.where(few, thin.low_ratio, low), np.where(few, thin.middle_ratio, middle)
    loose = _doubtful(gpu, seen)
    low, middle = np.where(loose, own.loose_low_ratio, low), np.where(loose, own.loose_middle_ratio, middle)
    lowest = np.where(_many_rows(gpu, seen), own.unaligned_low_ratio, own.loose_low_ratio)
    return np.where(_blind(gpu, seen), np.minimum(low, lowest), low), middle, general.high


def _explained(own: TensorFacts, seen: Conditions) -> Values:
    """The share of its FLOPs a partly used pipe does, by what busy SMs are seen to do; NaN where that is not known."""
    saturation, slots, memory = (np.asarray(v) for v in (seen.saturation, seen.slots, seen.memory))
    unfilled = np.maximum(own.filled_from_ratio - saturation - slots, 0.0)
    accounted = saturation + own.slots_weight * slots + own.memory_weight * memory
    missing = np.maximum(own.accounted_from_ratio - accounted, 0.0)
    by_memory = own.free_issue_ratio - own.unaccounted_loss_ratio * missing
    return np.where(np.isnan(memory), own.filled_issue_ratio - own.unfilled_loss_ratio * unfilled, by_memory)


def _doubtful(gpu: Gpu, seen: Conditions) -> Values:
    """Whether the pipe is in products of rows that memory does not show to be many, or in tiny kernels."""
    own = pipe_facts().tensor.get(gpu.architecture)
    if own is None:
        return False
    few, sparse = np.asarray(seen.thin), np.asarray(seen.saturation) < own.sparse_below_ratio
    return (few & ~_many_rows(gpu, seen)) | (~few & _bare(own, seen) & sparse)


def _many_rows(gpu: Gpu, seen: Conditions) -> Values:
    """Whether memory traffic shows that products have many rows; not by NaN."""
    thin = pipe_facts().thin.get(gpu.architecture)
    return np.asarray(seen.intensity) >= thin.many_flop_per_byte if thin else np.asarray(False)


def _bare(own: TensorFacts, seen: Conditions) -> Values:
    """Whether neither large products nor full warp slots explain half of the time of busy SMs; not by NaN."""
    return np.asarray(seen.saturation) + np.asarray(seen.slots) < own.loose_below_ratio


def few_rows(
    tensor: Values, sm: Values, slots: Values, dram: Values, engine: Values, rule: Mapping[str, Values]
) -> np.ndarray:
    """Whether counters show products of few rows: memory busy, warp slots slim, the pipe half used; not by NaN."""
    slim = (tensor < rule["saturation_below_ratio"] * sm) & (slots < rule["slots_below_ratio"] * sm)
    return np.asarray(slim & (dram >= rule["dram_from_ratio"] * engine) & (sm > 0))


def _known_low(gpu: Gpu, seen: Conditions, low: Values) -> Values:
    """Where the range of a known precision begins: edge tiles may be half empty even where the pipe is always busy."""
    own = pipe_facts().tensor.get(gpu.architecture)
    if own is None:
        return low
    full = np.minimum(low, own.full_low_ratio)
    return np.where(np.isnan(np.asarray(seen.saturation)), np.minimum(full, own.fill_low_ratio), full)


def _unknown_low(gpu: Gpu, seen: Conditions, low: Values) -> Values:
    """Where the range of an unknown precision begins: full warp slots mean the slowest precision, slim ones not."""
    own, slots = pipe_facts().tensor.get(gpu.architecture), np.asarray(seen.slots)
    if own is None:
        return low
    known_low = np.where(slots < own.slim_below_ratio, own.slim_low_ratio, own.full_low_ratio)
    # How full the SMs are not recorded, the tiles may be half empty too.
    partly = np.where(np.isnan(np.asarray(seen.saturation)), np.minimum(low, own.fill_low_ratio), low)
    return np.where(_saturated(gpu, seen), known_low, partly)


def _vector(gpu: Gpu) -> dict[str, Edges]:
    """The vector pipes that can be rated."""
    if gpu.fp32_flop_per_clk_sm is None:
        return {}
    fp32, v = gpu.fp32_flop_per_clk_sm.value, pipe_facts().vector
    flops = {"fp32": fp32, "fp16": v.fp16_per_fp32 * fp32}
    double, single = gpu.peak("fp64"), gpu.peak("fp32")
    if not isinstance(double, Unknown) and not isinstance(single, Unknown):
        # Peaks are printed rounded (34 and 67 on Hopper); the hardware has exactly half the lanes.
        half = abs(double / single / 0.5 - 1) <= PEAK_TOLERANCE_RATIO
        flops["fp64"] = fp32 * (0.5 if half else double / single)
    low = {"fp16": v.fp16_low_ratio}
    return {pipe: (low.get(pipe, v.low_ratio) * f, f, v.high_ratio * f) for pipe, f in flops.items()}
