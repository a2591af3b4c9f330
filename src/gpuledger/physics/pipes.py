"""How many FLOPs ran, going by how active each pipe was?

FLOP/s = activity x SM clock x SMs x FLOP per clock per SM, summed over the pipes. What an active pipe is worth is in
data/pipes.toml: the tensor pipe's precision must be given or is a range; how fully it issues is in physics/issue.py.
Vector FLOPs are in the sum: they are work the hardware did. Next to tensor work they are a few percent.
"""

from __future__ import annotations

import msgspec
import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import PEAK_TOLERANCE_RATIO
from gpuledger.physics.issue import Conditions, Issued, issued
from gpuledger.physics.pipe_facts import Edges, Values, pipe_facts
from gpuledger.units import Unknown

# Which pipe a given precision runs on, where it is not the hmma pipe.
_OWN_PIPE = {"int8": "imma", "fp64": "dfma"}
INTEGER = "integer products issue in one of two ways that the counters do not tell apart: a range, no point"


class Worths(msgspec.Struct, frozen=True):
    """FLOP per clock per SM of each pipe at full activity: low, middle, high. `notes` say what was assumed.

    `thin`: where the tensor pipe was taken to decode; `loose`: where only its range is known;
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
    found = issued(gpu, None if own else known, seen, [] if own else notes)
    tensor = _float_tensor(gpu, None if own else known, seen, found, [] if own else notes)
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
    return Worths(edges, said, found.thin, found.loose, found.blind, apart)


def _float_tensor(gpu: Gpu, known: str | None, seen: Conditions, found: Issued, notes: list[str]) -> Edges | Unknown:
    """Floating-point tensor work."""
    reference = gpu.tensor_flop_per_clk_per_sm(gpu.reference_precision())
    if isinstance(reference, Unknown):
        return reference
    low, middle, high = found.edges
    facts, flops = pipe_facts(), _usual_flops(gpu)
    if known:
        flop = gpu.tensor_flop_per_clk_per_sm("tf32" if known == "fp32" else known)
        if not isinstance(flop, Unknown):
            edges = _known_low(gpu, low, found, seen) * flop, middle * flop, high * flop
            if known != "fp32" or "tf32" not in flops:
                return edges
            notes.append("fp32 on the tensor pipe: taken as three tf32 products each")
            emulated = facts.emulated_fp32.times(flops["tf32"])
            low, middle, high = (np.where(found.full, e, m) for e, m in zip(edges, emulated, strict=True))
            return np.where(found.blind, np.minimum(low, edges[0]), low), middle, np.where(found.blind, edges[2], high)
        notes.append(f"label {known!r} is not a tensor precision of {gpu.name}, so not used")
    slowest, fastest = min(flops, key=lambda p: flops[p]), max(flops, key=lambda p: flops[p])
    if flops[slowest] == flops[fastest]:
        return low * reference, middle * reference, high * reference
    notes.append(f"tensor precision unknown: {slowest} to {fastest}, middle {gpu.reference_precision()}")
    return _unknown_low(gpu, low, found, seen) * flops[slowest], middle * reference, high * flops[fastest]


def _usual_flops(gpu: Gpu) -> dict[str, float]:
    """FLOP per clock per SM of the usual tensor precisions this GPU has, slowest first."""
    rated = {p: gpu.tensor_flop_per_clk_per_sm(p) for p in gpu.tensor_precisions() if p in pipe_facts().usual}
    return {p: flop for p, flop in rated.items() if not isinstance(flop, Unknown)}


def _known_low(gpu: Gpu, low: Values, found: Issued, seen: Conditions) -> Values:
    """Where the range of a known precision begins: edge tiles may be half empty even where the pipe is always busy."""
    own = pipe_facts().tensor.get(gpu.architecture)
    if own is None:
        return low
    full = np.minimum(low, own.full_low_ratio)
    return np.where(found.full | ~np.isnan(np.asarray(seen.saturation)), full, np.minimum(full, own.fill_low_ratio))


def _unknown_low(gpu: Gpu, low: Values, found: Issued, seen: Conditions) -> Values:
    """Where the range of an unknown precision begins: full warp slots mean the slowest precision, slim ones not."""
    own, slots = pipe_facts().tensor.get(gpu.architecture), np.asarray(seen.slots)
    if own is None:
        return low
    known_low = np.where(slots < own.slim_below_ratio, own.slim_low_ratio, own.full_low_ratio)
    # How full the SMs are not recorded, the tiles may be half empty too.
    partly = np.where(np.isnan(np.asarray(seen.saturation)), np.minimum(low, own.fill_low_ratio), low)
    return np.where(found.full, known_low, partly)


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
