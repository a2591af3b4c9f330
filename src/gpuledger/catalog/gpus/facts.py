"""What can this GPU do at most, and how fully does an active tensor pipe issue on its architecture?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

import msgspec

from gpuledger.catalog.files import Fact, data_dir, load_toml
from gpuledger.errors import FactError, InputError
from gpuledger.units import Unknown

# A figure that may be unknown, by its field, as it is called in words.
Figure = Literal["board_power_w", "memory_bytes", "memory_bandwidth_bytes_per_s"]
_WORDS = {"board_power_w": "board power", "memory_bytes": "memory", "memory_bandwidth_bytes_per_s": "memory bandwidth"}

Precision = Literal["fp64", "fp64_tensor", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"]

# fp32 and fp64 run on the vector pipes; every other precision here runs on the tensor (matrix) pipe.
VECTOR_PRECISIONS = frozenset({"fp32", "fp64"})
# Of these, GPUs without a faster 16-bit rate compute in fp32; any other peak that is missing is unknown.
WITHOUT_HALF = frozenset({"Kepler", "Maxwell", "Pascal"})
# Vendors print rounded peaks: two figures this close are the same figure.
PEAK_TOLERANCE_RATIO = 0.03


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fastest way out of the GPU; bytes per second are both directions together."""

    kind: str
    bytes_per_s: Fact


class Achievable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure that was reached, or published as reachable; precision is None where the source does not say."""

    name: str
    tflops: float
    source: str
    as_of: str
    precision: Precision | None = None
    note: str = ""


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One GPU model; peaks are dense (no structured sparsity), in TFLOPS (TOPS for int8), keyed by Precision.

    A GPU is what the driver shows as one device. `dies`: how many of them share a board; then peaks, memory and
    bandwidth are those of one die, and the board's power is reported for all of them by the first one. A figure for
    which no source was found is not there: unknown. `proposed`: whether advice and plans may propose it, of all GPUs
    there are, instead of another; one that is not is planned with where it, or a market that sells it, is asked for.
    """

    key: str
    name: str
    vendor: str
    architecture: str
    form_factor: str
    dies: int = 1
    aliases: tuple[str, ...] = ()
    proposed: bool = True
    board_power_w: Fact | None = None
    idle_power_w: Fact | None = None
    memory_bytes: Fact | None = None
    memory_type: str = ""
    memory_bandwidth_bytes_per_s: Fact | None = None
    link: Link | None = None
    peak_tflops: dict[str, Fact] = {}
    sm_count: Fact | None = None
    tensor_flop_per_clk_sm: dict[str, Fact] = {}
    fp32_flop_per_clk_sm: Fact | None = None
    tensor_rated_mhz: Fact | None = None
    fp32_rated_mhz: Fact | None = None
    achievable: tuple[Achievable, ...] = ()
    notes: str = ""

    def figure(self, field: Figure) -> float | Unknown:
        """The figure of a field, or unknown."""
        fact: Fact | None = getattr(self, field)
        return fact.value if fact else Unknown(f"the catalog has no {_WORDS[field]} for {self.name}")

    def stated(self, field: Figure) -> float:
        """The figure of a field, where nothing can be said without it."""
        found = self.figure(field)
        if isinstance(found, Unknown):
            hint = "ask for a GPU that has it (gpuledger catalog gpus lists them)"
            raise InputError(f"unknown: {found.why}", hint=hint)
        return found

    @property
    def power_w(self) -> float:
        """The power of one GPU: its part of the board's, where several share one."""
        return self.stated("board_power_w") / self.dies

    def spellings(self) -> tuple[str, ...]:
        """Everything this GPU is called."""
        return (self.key, self.name, *self.aliases)

    def reference_precision(self) -> str:
        """bf16, or fp16 where the GPU has no bf16; fp32 where it has no units for either."""
        if self.architecture in WITHOUT_HALF and "fp16" not in self.peak_tflops:
            return "fp32"
        return "bf16" if "bf16" in self.peak_tflops else "fp16"

    def peak(self, precision: str) -> float | Unknown:
        """The dense peak in TFLOPS."""
        fact = self.peak_tflops.get(precision)
        return fact.value if fact else Unknown(f"the catalog has no {precision} peak for {self.name}")

    def tensor_precisions(self) -> list[str]:
        """Precisions of the tensor pipe with a known peak, slowest first (fp64_tensor and int8 among them)."""
        tensor = [p for p in self.peak_tflops if p not in VECTOR_PRECISIONS]
        return sorted(tensor, key=lambda p: (self.peak_tflops[p].value, p))

    def tensor_flop_per_clk_per_sm(self, precision: str) -> float | Unknown:
        """FLOP one SM's tensor pipe can do in a clock: stored, else scaled from the reference by the ratio of peaks.

        Peaks are printed rounded while the hardware steps in powers of two, so a ratio near such a step is that step.
        """
        stored = self.tensor_flop_per_clk_sm
        if precision in stored:
            return stored[precision].value
        if precision in VECTOR_PRECISIONS:
            return Unknown(f"{precision} does not run on the tensor pipe")
        reference = self.reference_precision()
        if reference not in stored:
            return Unknown(f"the catalog has no FLOP per clock per SM for {self.name}")
        peak, base = self.peak(precision), self.peak(reference)
        if isinstance(peak, Unknown):
            return peak
        if isinstance(base, Unknown):
            return base
        return stored[reference].value * _nearest_step(peak / base)

    def achievable_tflops(self, name: str) -> float | Unknown:
        """The achievable figure published or measured under `name`, for example "measured"."""
        for figure in self.achievable:
            if figure.name == name:
                return figure.tflops
        return Unknown(f"the catalog has no achievable figure called {name!r} for {self.name}")

    def facts(self) -> Iterator[tuple[str, Fact]]:
        """Every figure with the name of its field, achievable ones included."""
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, Fact):
                yield field, value
            elif isinstance(value, Link):
                yield f"{field}.bytes_per_s", value.bytes_per_s
            elif isinstance(value, dict):
                yield from ((f"{field}.{precision}", fact) for precision, fact in value.items())
        for figure in self.achievable:
            yield f"achievable.{figure.name}", Fact(figure.tflops, figure.source, figure.as_of, note=figure.note)


def _nearest_step(ratio: float) -> float:
    """The power of two this ratio of rounded peaks stands for, or the ratio itself."""
    for power in range(-5, 6):
        if abs(ratio / 2.0**power - 1) <= PEAK_TOLERANCE_RATIO:
            return float(2.0**power)
    return ratio


class IssueMeasured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One recording: FLOP/s that ran over activity x SMs x FLOP per clock per SM x SM clock."""

    workload: str
    precision: str
    ratio: float


class IssueRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of its FLOPs that a tensor pipe does while its counter shows active, as a range."""

    low: float
    middle: float
    high: float
    source: str
    as_of: str
    note: str = ""
    measured: tuple[IssueMeasured, ...] = ()


class _Architecture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tensor_issue_ratio: IssueRatio


def issue_ratio(architecture: str) -> IssueRatio | Unknown:
    """The measured range for an architecture by its exact name, or unknown where it has not been measured."""
    found = _ratios().get(architecture.strip().casefold())
    return found or Unknown(f"how fully an active tensor pipe issues has not been measured on {architecture}")


@cache
def _ratios() -> Mapping[str, IssueRatio]:
    file = data_dir("gpuledger.catalog", "data", "architectures.toml")
    ratios = {k.casefold(): a.tensor_issue_ratio for k, a in load_toml(file, dict[str, _Architecture]).items()}
    for name, ratio in ratios.items():
        check(ratio, str(file), name)
    return MappingProxyType(ratios)


def check(ratio: IssueRatio, path: str, architecture: str) -> None:
    """A share of the pipe is above zero, at most one, and in order."""
    if not 0 < ratio.low <= ratio.middle <= ratio.high <= 1:
        problem = f"low {ratio.low}, middle {ratio.middle}, high {ratio.high}"
        raise FactError(
            path, f"{architecture}.tensor_issue_ratio", problem, hint="make it 0 < low <= middle <= high <= 1"
        )
