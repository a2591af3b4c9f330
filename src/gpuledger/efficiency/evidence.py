"""How much work does a reading prove, on this GPU model?

    counters   activity x SM clock x SMs x FLOP per clock per SM, summed over pipes, over the dense peak
    power      power over board power (PIF), and the same with the idle power taken off

The tensor pipe does not tell its precision: a label does, else the figure is a range over what the GPU can do.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.architectures import issue_ratio
from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.units import Unknown

# Tensor precisions that training and inference use unasked; int8, fp64 and fp4 only where a counter or label says so.
_USUAL = ("tf32", "bf16", "fp16", "fp8")
# Packed halves go two to a lane on the vector pipe.
_FP16_PER_FP32 = 2.0
_TERA = 1e12

TENSOR_ONLY = "tensor pipe only, lower bound"
NO_TENSOR = "tensor pipe not recorded, lower bound"
PART_VECTOR = "vector pipes recorded for part of the time, lower bound"


@dataclass(frozen=True)
class PipeRates:
    """Share of the dense peak per ppm x MHz x ms of each pipe: low, middle, high. `notes` say what was assumed."""

    per_activity: dict[str, tuple[float, float, float]]
    notes: tuple[str, ...]


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
            return Unknown(f"{self.gpu.name} has no link of its own beside PCIe")
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


def pipe_rates(gpu: Gpu, precision: str | None = None) -> PipeRates | Unknown:
    """Every pipe's worth on one GPU; a pipe the catalog cannot rate is left out and named in the notes."""
    peak = gpu.peak(gpu.reference_precision())
    if isinstance(peak, Unknown):
        return peak
    if gpu.sm_count is None:
        return Unknown(f"the catalog has no SM count for {gpu.name}")
    matrix, notes = _matrix_flop(gpu, precision)
    if isinstance(matrix, Unknown):
        return matrix
    issue = issue_ratio(gpu.architecture)
    if isinstance(issue, Unknown):
        notes.append(f"{issue.why}: taken as 1, so tensor work may read high")
        low = middle = high = 1.0
    else:
        low, middle, high = issue.low, issue.middle, issue.high
    # ppm x MHz is 1e-6 x 1e6: activity x clock in whole FLOP per second needs no further factor.
    unit = gpu.sm_count.value / (peak * _TERA)
    rates = {"matrix": (matrix[0] * low * unit, matrix[1] * middle * unit, matrix[2] * high * unit)}
    for pipe, kind in (("imma", "int8"), ("dfma", "fp64_tensor")):
        flop = gpu.tensor_flop_per_clk_per_sm(kind)
        if not isinstance(flop, Unknown):
            rates[pipe] = (flop * low * unit, flop * middle * unit, flop * high * unit)
    for pipe, flop in _vector_flop(gpu).items():
        rates[pipe] = (flop * unit, flop * unit, flop * unit)
    return PipeRates(rates, tuple(notes))


def _matrix_flop(gpu: Gpu, precision: str | None) -> tuple[tuple[float, float, float] | Unknown, list[str]]:
    """FLOP per clock per SM of floating-point tensor work: low, middle, high."""
    reference = gpu.reference_precision()
    middle = gpu.tensor_flop_per_clk_per_sm(reference)
    if isinstance(middle, Unknown):
        return middle, []
    notes: list[str] = []
    if precision:
        told = gpu.tensor_flop_per_clk_per_sm("fp64_tensor" if precision == "fp64" else precision)
        if not isinstance(told, Unknown):
            return (told, told, told), notes
        notes.append(f"label {precision!r} is no tensor precision of {gpu.name}, so not used")
    known = {p: f for p in gpu.tensor_precisions() if p in _USUAL and not isinstance(f := _flop(gpu, p), Unknown)}
    low, high = min(known, key=lambda p: known[p]), max(known, key=lambda p: known[p])
    if known[low] != known[high]:
        notes.append(f"tensor precision not told: {low} to {high}, middle {reference}")
    return (known[low], middle, known[high]), notes


def _flop(gpu: Gpu, precision: str) -> float | Unknown:
    return gpu.tensor_flop_per_clk_per_sm(precision)


def _vector_flop(gpu: Gpu) -> dict[str, float]:
    """FLOP per clock per SM of the vector pipes that can be rated."""
    if gpu.fp32_flop_per_clk_sm is None:
        return {}
    fp32 = gpu.fp32_flop_per_clk_sm.value
    flop = {"fp32": fp32, "fp16": _FP16_PER_FP32 * fp32}
    double, single = gpu.peak("fp64"), gpu.peak("fp32")
    if not isinstance(double, Unknown) and not isinstance(single, Unknown):
        flop["fp64"] = fp32 * double / single
    return flop
