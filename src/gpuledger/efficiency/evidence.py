"""How much work does a reading prove, on this GPU model?

    counters   activity x SM clock x SMs x FLOP per clock per SM, summed over pipes, over the dense peak
    power      power over board power (PIF), and the same with the idle power taken off

The tensor pipe does not tell its precision: a label does, else the figure is a range over what the GPU can do.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.efficiency.pipes import pipe_worths
from gpuledger.units import Unknown

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
    worths = pipe_worths(gpu, precision)
    if isinstance(worths, Unknown):
        return worths
    # ppm x MHz is 1e-6 x 1e6: activity x clock in whole FLOP per second needs no further factor.
    unit = gpu.sm_count.value / (peak * _TERA)
    rates = {pipe: (low * unit, middle * unit, high * unit) for pipe, (low, middle, high) in worths.edges.items()}
    return PipeRates({"matrix": rates.pop("tensor"), **rates}, worths.notes)
