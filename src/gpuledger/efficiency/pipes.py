"""How many FLOPs ran, going by how active each pipe was?

FLOP/s = activity x SM clock x SMs x FLOP per clock per SM, summed over the pipes. What an active pipe is worth is in
data/pipes.toml: the tensor pipe's precision must be told or is a range, and how fully it issues depends on its state.
Vector FLOPs are in the sum: they are work the hardware did. Beside tensor work they are a few percent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import msgspec

from gpuledger.catalog.architectures import issue_ratio
from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpu_facts import PEAK_TOLERANCE_RATIO
from gpuledger.catalog.gpus import Gpu
from gpuledger.units import Unknown

Edges = tuple[float, float, float]
# Which pipe a told precision runs on, where it is not the hmma pipe.
_OWN_PIPE = {"int8": "imma", "fp64": "dfma"}
_MEGA_OF_TERA = 1e-6


class _Vector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    low_ratio: float
    high_ratio: float
    fp16_low_ratio: float
    fp16_per_fp32: float


class _Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    low_ratio: float
    middle_ratio: float
    high_ratio: float

    def times(self, flop: float) -> Edges:
        return self.low_ratio * flop, self.middle_ratio * flop, self.high_ratio * flop


class _Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class _Thin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    saturation_below_ratio: float
    slots_below_ratio: float
    dram_from_ratio: float
    low_ratio: float
    middle_ratio: float


class PipeFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    version: int
    usual: tuple[str, ...]
    spread: float
    noise_ratio: float
    stray_tensor_per_vector_ratio: float
    names: dict[str, str]
    vector: _Vector
    emulated_fp32: _Edges
    tensor: dict[str, _Tensor]
    thin: dict[str, _Thin]
    imma: dict[str, _Edges]
    dfma: dict[str, _Edges]


@cache
def pipe_facts() -> PipeFacts:
    """What is known of pipes."""
    return load_toml(data_dir(__package__, "data", "pipes.toml"), PipeFacts)


@dataclass(frozen=True)
class State:
    """What decides how fully an active tensor pipe works; None where it is not known.

    capped_ratio     share of the tensor activity with clocks held down by a power limit
    saturation_ratio tensor activity over SM activity
    slots_ratio      warp slots filled, over SM activity
    dram_ratio       memory interface activity while a kernel runs
    """

    capped_ratio: float | None = None
    saturation_ratio: float | None = None
    slots_ratio: float | None = None
    dram_ratio: float | None = None


@dataclass(frozen=True)
class Worths:
    """FLOP per clock per SM of each pipe at full activity: low, middle, high. `notes` say what was assumed."""

    edges: dict[str, Edges]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Realized:
    """FLOPs that ran, by the counters."""

    tflops: float
    low_tflops: float
    high_tflops: float
    notes: tuple[str, ...] = ()


def precision_name(label: str | None) -> str | None:
    """The catalog's name of a precision: bfloat16 is bf16."""
    if not label or not label.strip():
        return None
    folded = label.strip().casefold().removeprefix("torch.")
    return pipe_facts().names.get(folded, folded)


def realized(
    gpu: Gpu, activity_mhz: Mapping[str, float], precision: str | None = None, state: State | None = None
) -> Realized | Unknown:
    """FLOPs by pipe activity: `activity_mhz` is the mean of activity x SM clock of each pipe that is known."""
    if gpu.sm_count is None:
        return Unknown(f"the catalog has no SM count for {gpu.name}")
    worths = pipe_worths(gpu, precision, state)
    if isinstance(worths, Unknown):
        return worths
    pipes = _apart(activity_mhz)
    if not pipes:
        return Unknown("no pipe activity was recorded")
    unit = gpu.sm_count.value * _MEGA_OF_TERA
    rated = {pipe: (mhz, worths.edges[pipe]) for pipe, mhz in pipes.items() if pipe in worths.edges}
    low, middle, high = (unit * sum(mhz * edges[place] for mhz, edges in rated.values()) for place in range(3))
    stray = pipe_facts().stray_tensor_per_vector_ratio * sum(pipes.get(p, 0.0) for p in ("fp32", "fp64", "fp16"))
    for pipe in ("hmma", "tensor"):
        if pipe in rated and rated[pipe][0] <= stray:
            low -= unit * rated[pipe][0] * rated[pipe][1][0]
    if not precision_name(precision):
        # One issue ratio holds for the work of a window, whichever it is: only the precision spreads the range.
        high = min(high, pipe_facts().spread * low)
    unrated = tuple(f"the {p} pipe is not rated for {gpu.name}" for p in pipes if p not in worths.edges)
    return Realized(min(max(middle, low), high), low, high, (*worths.notes, *unrated))


def _apart(activity_mhz: Mapping[str, float]) -> dict[str, float]:
    """The pipes to add up: the kinds of tensor work where all are known, else the tensor pipe as a whole."""
    kinds = ("hmma", "imma", "dfma")
    leave = ("tensor",) if all(k in activity_mhz for k in kinds) else kinds if "tensor" in activity_mhz else ()
    return {pipe: mhz for pipe, mhz in activity_mhz.items() if pipe not in leave}


def pipe_worths(gpu: Gpu, precision: str | None = None, state: State | None = None) -> Worths | Unknown:
    """What each pipe is worth on this GPU; a pipe the catalog cannot rate is left out."""
    told, notes = precision_name(precision), list[str]()
    own = told in _OWN_PIPE
    tensor = _float_tensor(gpu, None if own else told, state or State(), [] if own else notes)
    if isinstance(tensor, Unknown):
        return tensor
    edges = {"hmma": tensor, "tensor": tensor} | _vector(gpu)
    for pipe, kind in (("imma", "int8"), ("dfma", "fp64_tensor")):
        flop = gpu.tensor_flop_per_clk_per_sm(kind)
        if isinstance(flop, Unknown):
            continue
        known = getattr(pipe_facts(), pipe).get(gpu.architecture)
        edges[pipe] = known.times(flop) if known else (flop, flop, flop)
        if _OWN_PIPE.get(told or "") == pipe:
            edges["tensor"] = edges[pipe]
    return Worths(edges, tuple(dict.fromkeys(notes)))


def _float_tensor(gpu: Gpu, told: str | None, state: State, notes: list[str]) -> Edges | Unknown:
    """Floating-point tensor work."""
    reference = gpu.tensor_flop_per_clk_per_sm(gpu.reference_precision())
    if isinstance(reference, Unknown):
        return reference
    low, middle, high = _issue(gpu, state, notes)
    facts, flops = pipe_facts(), _usual_flops(gpu)
    if told == "fp32" and "tf32" in flops and not _saturated(gpu, state):
        notes.append("fp32 on the tensor pipe: taken as three tf32 products each")
        return facts.emulated_fp32.times(flops["tf32"])
    if told:
        flop = gpu.tensor_flop_per_clk_per_sm("tf32" if told == "fp32" else told)
        if not isinstance(flop, Unknown):
            return low * flop, middle * flop, high * flop
        notes.append(f"label {told!r} is no tensor precision of {gpu.name}, so not used")
    slowest, fastest = min(flops, key=lambda p: flops[p]), max(flops, key=lambda p: flops[p])
    if flops[slowest] == flops[fastest]:
        return low * reference, middle * reference, high * reference
    notes.append(f"tensor precision not told: {slowest} to {fastest}, middle {gpu.reference_precision()}")
    return _untold_low(gpu, state, low) * flops[slowest], middle * reference, high * flops[fastest]


def _usual_flops(gpu: Gpu) -> dict[str, float]:
    """FLOP per clock per SM of the usual tensor precisions this GPU has, slowest first."""
    rated = {p: gpu.tensor_flop_per_clk_per_sm(p) for p in gpu.tensor_precisions() if p in pipe_facts().usual}
    return {p: flop for p, flop in rated.items() if not isinstance(flop, Unknown)}


def _saturated(gpu: Gpu, state: State) -> bool:
    own = pipe_facts().tensor.get(gpu.architecture)
    return bool(own and state.saturation_ratio is not None and state.saturation_ratio >= own.saturated_from_ratio)


def _issue(gpu: Gpu, state: State, notes: list[str]) -> Edges:
    """The share of its FLOPs a tensor pipe does while active."""
    general, own = issue_ratio(gpu.architecture), pipe_facts().tensor.get(gpu.architecture)
    if isinstance(general, Unknown):
        notes.append(f"{general.why}: taken as 1, so tensor work may read high")
        return 1.0, 1.0, 1.0
    if own is None:
        return general.low, general.middle, general.high
    low, middle = general.low, general.middle
    if (capped := state.capped_ratio) is not None:
        low = capped * own.capped_low_ratio + (1 - capped) * own.free_low_ratio
        middle = capped * own.capped_issue_ratio + (1 - capped) * own.free_issue_ratio
    if (thin := _thin(gpu, state)) is not None:
        notes.append("memory busy and warp slots slim: taken as products of few rows, tiles half empty")
        return thin.low_ratio, thin.middle_ratio, general.high
    if state.saturation_ratio is not None and not _saturated(gpu, state):
        low = own.sparse_low_ratio if state.saturation_ratio < own.sparse_below_ratio else own.fill_low_ratio
    return low, middle, general.high


def _thin(gpu: Gpu, state: State) -> _Thin | None:
    """What an active pipe is worth on products of few rows, where the counters show such."""
    own, seen = pipe_facts().thin.get(gpu.architecture), (state.saturation_ratio, state.slots_ratio, state.dram_ratio)
    if own is None or None in seen:
        return None
    saturation, slots, dram = (s or 0.0 for s in seen)
    slim = saturation < own.saturation_below_ratio and slots < own.slots_below_ratio
    return own if slim and dram >= own.dram_from_ratio else None


def _untold_low(gpu: Gpu, state: State, low: float) -> float:
    """Where the range of a precision nobody told begins: full warp slots mean the slowest precision, slim ones not."""
    own = pipe_facts().tensor.get(gpu.architecture)
    if own is None or state.slots_ratio is None or not _saturated(gpu, state):
        return low
    return own.slim_low_ratio if state.slots_ratio < own.slim_below_ratio else own.full_low_ratio


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
