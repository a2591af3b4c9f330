"""How much work does a reading prove, on this GPU model?

    counters   activity x SM clock x SMs x FLOP per clock per SM, summed over pipes, over the dense peak
    power      power over board power (PIF), and the same with the idle power taken off

The tensor pipe does not tell its precision: a label does, else the figure is a range over what the GPU can do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.physics.activity import PIPES
from gpuledger.physics.assumed import note_rows
from gpuledger.physics.issue import Conditions
from gpuledger.physics.pipe_facts import pipe_facts
from gpuledger.physics.pipes import pipe_worths, precision_name
from gpuledger.physics.states import NOT_ALL_SEEN
from gpuledger.units import Unknown

Sums = Mapping[str, np.ndarray]

_TERA = 1e12


# Where more of the work than this share is known as a range only, so is the whole.
LOOSE_RATIO = 0.2


class PipeRates(msgspec.Struct, frozen=True):
    """Share of the dense peak per ppm x MHz x ms of each pipe: low, middle, high. `notes` say what was assumed."""

    per_activity: dict[str, tuple[Any, Any, Any]]
    notes: tuple[str, ...]
    thin: Any = False
    loose: Any = False
    blind: Any = False
    ranges_only: frozenset[str] = frozenset()


class ModelFacts:
    """What the catalog knows of one GPU model, ready for sums."""

    def __init__(self, name: str | None) -> None:
        self.name = name or "no model name"
        self.gpu: Gpu | Unknown = find_gpu(name) if name else Unknown("the samples carry no model name")
        self._rates: dict[str | None, PipeRates | Unknown] = {}

    @property
    def peak_tflops(self) -> float | Unknown:
        """Dense peak at the reference precision."""
        return self.gpu if isinstance(self.gpu, Unknown) else self.gpu.peak(self.gpu.reference_precision())

    @property
    def idle_mw(self) -> float | Unknown:
        """Idle power of the board."""
        if isinstance(self.gpu, Unknown):
            return self.gpu
        fact = self.gpu.idle_power_w
        return fact.value * 1e3 if fact else Unknown(f"the catalog has no idle power for {self.gpu.name}")

    @property
    def link_bytes_per_s(self) -> float | Unknown:
        """NVLink (or the like) of the board, both directions together."""
        if isinstance(self.gpu, Unknown):
            return self.gpu
        link = self.gpu.link
        if link is None or link.kind.startswith("PCIe"):
            return Unknown(f"{self.gpu.name} has no link of its own except PCIe")
        return link.bytes_per_s.value

    def achievable_tflops(self, source: str) -> float | Unknown:
        """What this model can reach, by the named source."""
        if isinstance(self.gpu, Unknown):
            return self.gpu
        return self.peak_tflops if source == "peak" else self.gpu.achievable_tflops(source)

    def rates(self, precision: str | None) -> PipeRates | Unknown:
        """What each pipe's activity is worth; `precision` is the owner's label, None where it says nothing."""
        if precision not in self._rates:
            self._rates[precision] = self.gpu if isinstance(self.gpu, Unknown) else pipe_rates(self.gpu, precision)
        return self._rates[precision]


def pipe_rates(gpu: Gpu, precision: str | None = None, seen: Conditions | None = None) -> PipeRates | Unknown:
    """Every pipe's worth on one GPU; a pipe the catalog cannot rate is left out and named in the notes."""
    peak = gpu.peak(gpu.reference_precision())
    if isinstance(peak, Unknown):
        return peak
    if gpu.sm_count is None:
        return Unknown(f"the catalog has no SM count for {gpu.name}")
    worths = pipe_worths(gpu, precision, seen)
    if isinstance(worths, Unknown):
        return worths
    # ppm x MHz is 1e-6 x 1e6: activity x clock in whole FLOP per second needs no further factor.
    unit = gpu.sm_count.value / (peak * _TERA)
    rates = {pipe: (low * unit, middle * unit, high * unit) for pipe, (low, middle, high) in worths.edges.items()}
    rates["matrix"] = rates.pop("tensor")
    return PipeRates(rates, worths.notes, worths.thin, worths.loose, worths.blind, worths.ranges_only)


def conditions(sums: Sums, rows: np.ndarray, gpu: Gpu) -> Conditions:
    """What decides how fully the tensor pipe works, of some rows of sums on one model."""

    def mean(name: str) -> np.ndarray:
        return _over(sums[f"{name}_ppm_ms"][rows], sums[f"{name}_ms"][rows])

    tensor, sm, slots, dram, engine, integer = (
        mean(name) for name in ("tensor", "sm", "occupancy", "dram", "engine", "integer")
    )
    fp32 = _over(sums["fp32_ppm_ms"][rows], sums["vector_ms"][rows])
    capped = _over(sums["tensor_capped_ppm_ms"][rows], sums["tensor_ppm_ms"][rows])
    return Conditions(
        capped=np.where(sums["throttle_ms"][rows] > 0, capped, np.nan),
        saturation=_over(tensor, sm),
        slots=_over(slots, sm),
        memory=_over(dram, sm),
        fp32=_over(fp32, sm),
        integer=_over(integer, sm),
        running=_over(sm, engine),
        intensity=_intensity(tensor, dram, _clock_mhz(sums, rows, gpu), gpu),
        tensor=np.nan_to_num(tensor) / 1e6,
    )


def _intensity(tensor: np.ndarray, dram: np.ndarray, mhz: np.ndarray, gpu: Gpu) -> np.ndarray:
    """FLOP of an active tensor pipe at full issue over bytes of memory traffic; NaN where either is not known."""
    flop = gpu.tensor_flop_per_clk_per_sm(gpu.reference_precision())
    wide = gpu.figure("memory_bandwidth_bytes_per_s")
    if isinstance(flop, Unknown) or isinstance(wide, Unknown) or gpu.sm_count is None:
        return np.full(len(tensor), np.nan)
    return _over(tensor * mhz * 1e6 * gpu.sm_count.value * flop, dram * wide)


def _clock_mhz(sums: Sums, rows: np.ndarray, gpu: Gpu) -> np.ndarray:
    return np.maximum(_over(sums["clock_mhz_ms"][rows], sums["clock_ms"][rows], _rated_mhz(gpu)), 1.0)


class Worked(msgspec.Struct, frozen=True):
    """Share of the dense peak x ms by row, low, middle and high, and the time it covers; what was assumed of each.

    `bound`: not all pipes that may work are recorded, so the figure is a lower bound; its high end says how much more.
    `loose`: the part of the middle that stands for no more than a range.
    """

    ms: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    bound: np.ndarray
    loose: np.ndarray
    notes: tuple[frozenset[str], ...]


def kinds_of(
    models: Sequence[str | None], precisions: Sequence[str | None]
) -> tuple[np.ndarray, list[tuple[str | None, str | None]]]:
    """The kind of each row, and each kind's model and precision."""
    pairs = list(zip(models, precisions, strict=True))
    found = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    return np.array([found[pair] for pair in pairs], dtype=np.int64), list(found)


def work(
    sums: Sums,
    of_row: np.ndarray,
    kinds: Sequence[tuple[str | None, str | None]],
    models: Mapping[str | None, ModelFacts],
    *,
    with_notes: bool = True,
) -> Worked:
    """The work the pipes did in rows of sums of one state each; `kinds`: model and precision, `of_row` each row's."""
    n = len(of_row)
    ms, loose, bound = np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool)
    edges, notes = np.zeros((3, n)), [frozenset[str]()] * (n if with_notes else 0)
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(of_row == number)
        gpu = models[kind[0]].gpu
        rates = gpu if isinstance(gpu, Unknown) else pipe_rates(gpu, kind[1], conditions(sums, rows, gpu))
        if isinstance(rates, Unknown) or isinstance(gpu, Unknown):
            continue
        ms[rows] = sums["counters_ms"][rows]
        hidden = np.isin(sums["state"][rows], NOT_ALL_SEEN)
        *found, loose[rows], ranged = _edges(sums, rows, rates, gpu, known=bool(precision_name(kind[1])), hidden=hidden)
        edges[:, rows] = found
        bound[rows] = hidden & (ms[rows] > 0)
        if with_notes:
            note_rows(notes, sums, rows, rates, hidden, ranged)
    return Worked(ms, edges[0], edges[1], edges[2], bound, loose, tuple(notes))


def _edges(
    sums: Sums, rows: np.ndarray, rates: PipeRates, gpu: Gpu, *, known: bool, hidden: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Low, middle and high, what of the middle stands for a range only, and where that is for the tensor pipe."""
    facts = pipe_facts()
    stands = np.maximum(sums["counters_ms"][rows], 1.0)
    active = {p: sums[p][rows] for p in PIPES if p in rates.per_activity and sums[p].any()}  # most pipes are not used
    clock = _clock_mhz(sums, rows, gpu)
    # Activity below the noise is mostly the driver's own housekeeping: it counts at the high end only.
    heard = {p: np.where(v >= facts.noise_ratio * 1e6 * clock * stands, v, 0.0) for p, v in active.items()}
    sources = (heard, heard, active)
    parts = [{p: v * rates.per_activity[p][i] for p, v in found.items()} for i, found in enumerate(sources)]
    low, middle, high = (np.sum(list(p.values()), axis=0) if p else np.zeros(len(rows)) for p in parts)
    # Plain vector kernels show some tensor activity that is not matrix work.
    vector = sum((heard[p] for p in ("fp32", "fp64", "fp16") if p in heard), np.zeros(len(rows)))
    if "matrix" in heard:
        stray = heard["matrix"] <= facts.stray_tensor_per_vector_ratio * vector
        low = np.where(stray, low - parts[0]["matrix"], low)
    products = parts[1].get("matrix", np.zeros(len(rows)))
    loose = np.asarray(rates.loose) & (products > LOOSE_RATIO * middle)
    unsure = np.where(loose, products, 0.0) + sum(parts[1][p] for p in rates.ranges_only if p in heard)
    if not known:
        # One issue ratio holds for the work of a state, whichever it is: only the precision spreads the range.
        # How full the SMs or the warp slots are not recorded, nothing narrows it.
        both = (sums["occupancy_ms"][rows] > 0) & (sums["vector_ms"][rows] > 0)
        seen = (sums["sm_ms"][rows] > 0) & both & (low > 0) & ~loose
        high = np.minimum(high, facts.spread * np.where(seen, low, np.inf))
    middle = np.minimum(np.maximum(middle, low), np.maximum(high, low))
    more = _not_recorded(sums, rows, gpu, middle, hidden, rates.per_activity["matrix"][2] * 1e6 * clock)
    high = np.maximum(high, middle + more)
    unsure = unsure + np.where(hidden, more, 0.0)
    unclocked = np.minimum(sums["unclocked_ms"][rows] / stands, 1.0)
    low = low * (1 - (1 - facts.unclocked_low_ratio) * unclocked)
    high = high * (1 + (facts.unclocked_high_ratio - 1) * unclocked)
    return low, middle, high, np.maximum(unsure, middle * unclocked), loose


def _not_recorded(
    sums: Sums, rows: np.ndarray, gpu: Gpu, middle: np.ndarray, hidden: np.ndarray, tensor_rate: np.ndarray
) -> np.ndarray:
    """At most: work of a kind of pipe that is not recorded, in all of the time that nothing else is seen in."""
    fp32, reference = gpu.peak("fp32"), gpu.peak(gpu.reference_precision())
    tensor_only = (sums["matrix_ms"][rows] > 0) & (sums["vector_ms"][rows] == 0)
    if not (tensor_only | hidden).any() or isinstance(fp32, Unknown) or isinstance(reference, Unknown):
        return np.zeros(len(rows))
    room = np.maximum(sums["busy_ppm_ms"][rows] / 1e6 - middle, 0.0)
    rate = np.where(sums["matrix_ms"][rows] > 0, fp32 / reference, tensor_rate)
    ruled_out = np.where(tensor_only, pipe_facts().ruled_out_ratio, 0.0)
    return room * rate * np.where(hidden, 1.0, ruled_out)


def _rated_mhz(gpu: Gpu) -> float:
    rated = gpu.tensor_rated_mhz or gpu.fp32_rated_mhz
    return 1.0 if rated is None else rated.value


def _over(part: np.ndarray, whole: np.ndarray, otherwise: float = np.nan) -> np.ndarray:
    """part / whole; `otherwise` where the whole is 0."""
    with np.errstate(over="ignore"):
        return np.divide(part, whole, out=np.full(len(part), otherwise), where=np.asarray(whole) > 0)
