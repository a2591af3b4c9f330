"""What would spot, or a smaller GPU, cost compared with this one, by dated list prices; and would the work fit?

A GPU has one peak per pipe and precision: 43 TFLOPS on the fp32 vector pipe do not fit into a GPU with 19.5 there,
however fast its tensor pipe is. Precisions of the tensor pipe share it, so their shares add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import Range
from gpuledger.catalog.gpus import Gpu, load_gpus, proposed_gpus
from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.catalog.prices import MarketPrice, market_price
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.catalog.prices.spread import quantile, spot_cuts
from gpuledger.telemetry.series.exporters import fields_of
from gpuledger.units import MS_PER_HOUR, Unknown

Pipe = Literal["tensor", "fp32", "fp64"]
# A pipe that is active for less of its time than this does not decide where a job can run.
MATTERS_FROM_RATIO = 0.01
_PIPES = ("tensor_ratio", "fp32_ratio", "fp64_ratio", "fp16_ratio", "sm_clock_mhz")


def pipes_not_recorded(gpu: Gpu | Unknown) -> Unknown:
    """Why the pipes of a GPU are unknown, and the fields that would show them where its exporter has them all."""
    fields = () if isinstance(gpu, Unknown) else fields_of(gpu.vendor, _PIPES)
    enable = f"; enable {', '.join(fields[:-2])} and {fields[-2]}, with {fields[-1]}" if fields else ""
    return Unknown(f"which pipes are busy is not recorded{enable}")


@dataclass(frozen=True)
class Need:
    """TFLOPS of one precision while working. Not `known`: the precision is the present GPU's reference precision."""

    precision: str
    tflops: float
    known: bool = True

    @property
    def pipe(self) -> Pipe:
        """The pipe that does it."""
        if self.precision not in VECTOR_PRECISIONS:
            return "tensor"
        return "fp64" if self.precision == "fp64" else "fp32"


@dataclass(frozen=True)
class Filled:
    """How full one pipe of a GPU would be."""

    pipe: Pipe
    ratio: float
    words: str


def filled(needs: Iterable[Need], gpu: Gpu) -> tuple[Filled, ...] | Unknown:
    """Each needed pipe of a GPU, the fullest first; Unknown where the catalog has no peak for it."""
    parts: dict[Pipe, list[tuple[float, str]]] = {}
    for need in needs:
        precision = need.precision if need.known else gpu.reference_precision()
        peak = gpu.peak(precision)
        if isinstance(peak, Unknown):
            return Unknown(f"{gpu.name} has no {precision} peak in the catalog, and the job does {precision}")
        words = f"{_figure(need.tflops)} of {_figure(peak)} {precision} TFLOPS"
        parts.setdefault(need.pipe, []).append((need.tflops / peak, words))
    found = [
        Filled(pipe, sum(r for r, _ in members), " + ".join(w for _, w in sorted(members, reverse=True)))
        for pipe, members in parts.items()
    ]
    return tuple(sorted(found, key=lambda f: (-f.ratio, f.pipe)))


def _figure(tflops: float) -> str:
    return f"{tflops:,.0f}" if tflops >= 100 else f"{tflops:.1f}"


@dataclass(frozen=True)
class Discount:
    """Spot against on-demand in the same zone: 10th percentile, median, 90th percentile over zones."""

    low: float
    middle: float
    high: float
    zones: int
    clouds: int
    newest: str
    what: str

    @property
    def words(self) -> str:
        """What the figure rests on."""
        spread = f"{100 * self.low:.0f} to {100 * self.high:.0f} % for 80 % of {self.zones} zones"
        clouds = f"{self.clouds} cloud{'s' * (self.clouds != 1)}"
        return f"{self.what}: spot is {100 * self.middle:.0f} % cheaper ({spread} of {clouds}, listed {self.newest})"


def spot_discount(gpu_key: str, instance: str | None = None) -> Discount | Unknown:
    """For the instance the case runs in, else for its GPU on the market."""
    own = _discount("instance", instance) if instance else Unknown("no instance is named")
    return _discount("gpu", gpu_key) if isinstance(own, Unknown) else own


@cache
def _discount(kind: str, wanted: str) -> Discount | Unknown:
    offers = [o for o in load_offers() if getattr(o, kind) == wanted]
    cuts, dates = spot_cuts(offers), [o.dated for o in offers if not o.apart]
    if not cuts:
        return Unknown(f"the price facts have no zone with both a spot and an on-demand price of {wanted}")
    order = sorted(cuts.values())
    low, middle, high = (quantile(order, q) for q in (0.1, 0.5, 0.9))
    clouds = len({place[0] for place in cuts})
    name = load_gpus()[wanted].name if kind == "gpu" else wanted
    return Discount(max(low, 0.0), max(middle, 0.0), max(high, 0.0), len(order), clouds, max(dates), name)


@dataclass(frozen=True)
class SmallerGpu:
    """A cheaper GPU that holds the case: what fits, and what it saves of what is `paid` per GPU-hour."""

    gpu: Gpu
    price: MarketPrice
    paid_usd_per_gpu_h: Decimal
    gain: Range
    fits: str


def paid_per_gpu_h(case: Case) -> Decimal | Unknown:
    """What is paid for one GPU-hour of the case, on average."""
    if isinstance(case.dollars, Unknown):
        return case.dollars
    paid_ms = case.times.paid_ms
    return case.dollars.paid_usd * MS_PER_HOUR / paid_ms if paid_ms else Unknown("no time is paid for")


def smaller_gpu(case: Case, limits: Limits) -> SmallerGpu | Unknown:
    """The cheapest GPU of the same vendor that has the memory, the compute and the bandwidth this case needs, for less
    than is paid. Work that leaves few SMs free may be limited by what no counter shows."""
    gpu, demand, sm = case.gpu, case.demand, case.signals.sm_ratio
    if isinstance(gpu, Unknown):
        return gpu
    if sm is not None and sm >= limits.smaller.sm_below_ratio:
        return Unknown(f"its SMs have work {100 * sm:.0f} % of the time")
    for figure in (demand.memory_max_bytes, demand.tflops, demand.dram_bytes_per_s):
        if isinstance(figure, Unknown):
            return Unknown(f"the headroom is not measured: {figure.why}")
    paid = paid_per_gpu_h(case)
    if isinstance(paid, Unknown):
        return paid
    found = [s for other in proposed_gpus() if (s := _candidate(case, gpu, other, paid, limits)) is not None]
    if not found:
        return Unknown(f"no cheaper GPU of the catalog holds what {case.name} needs")
    return min(found, key=lambda s: (s.price.usd_per_gpu_h, s.gpu.key))


def _candidate(case: Case, gpu: Gpu, other: Gpu, now: Decimal, limits: Limits) -> SmallerGpu | None:
    price, fits = market_price(other.key), _fits(case, other, limits)
    if isinstance(price, Unknown) or fits is None or not is_smaller(gpu, other, limits) or not now:
        return None
    paid = float(now)
    cut = 1 - float(price.usd_per_gpu_h) / paid
    if cut < limits.smaller.cheaper_from_ratio or len(price.clouds) < limits.smaller.clouds_from:
        return None
    # The range is that of the smaller GPU's own offers.
    gain = Range.of(1 - float(price.high_usd) / paid, cut, 1 - float(price.low_usd) / paid)
    return SmallerGpu(other, price, now, gain, fits)


def _fits(case: Case, other: Gpu, limits: Limits) -> str | None:
    """What the case needs of what the other GPU has, where it fits."""
    demand, full, links = case.demand, limits.fill.middle_ratio, case.demand.nvlink_bytes_per_s
    memory, traffic, pipes = demand.memory_max_bytes, demand.dram_bytes_per_s, _pipes(case, other)
    bandwidth, card = other.stated("memory_bandwidth_bytes_per_s"), other.stated("memory_bytes")
    if isinstance(memory, Unknown) or isinstance(traffic, Unknown) or isinstance(pipes, Unknown):
        return None
    if any(p.ratio > full for p in pipes) or traffic > full * bandwidth:
        return None
    if memory > card * (1 - limits.smaller.memory_margin_ratio):
        return None
    linked = other.link is not None and not other.link.kind.startswith("PCIe")
    if not linked and not isinstance(links, Unknown) and links >= limits.traffic.links_from_bytes_per_s:
        return None
    return (
        f"{memory / 1e9:.0f} of {card / 1e9:.0f} GB, {', '.join(p.words for p in pipes)}, "
        f"{traffic / 1e9:.0f} of {bandwidth / 1e9:.0f} GB/s"
    )


def _pipes(case: Case, other: Gpu) -> tuple[Filled, ...] | Unknown:
    """How full the other GPU's pipes would be; Unknown where the demand or a peak is not known.

    All measured work must fit the tensor pipe, and what the vector pipes do must fit the vector pipes as well.
    """
    gpu, tflops, signals = case.gpu, case.demand.tflops, case.signals
    if isinstance(gpu, Unknown):
        return gpu
    if isinstance(tflops, Unknown):
        return tflops
    precision = _tensor_precision(case, gpu)
    needs = [Need(precision or gpu.reference_precision(), tflops, known=precision is not None)]
    for vector, ratio in (("fp32", signals.fp32_ratio), ("fp64", signals.fp64_ratio)):
        if ratio is None or ratio < MATTERS_FROM_RATIO:
            continue
        peak = gpu.peak(vector)
        if isinstance(peak, Unknown):
            return peak
        needs.append(Need(vector, min(ratio, 1.0) * peak))
    return filled(needs, other)


def _tensor_precision(case: Case, gpu: Gpu) -> str | None:
    """The tensor precision of the case, by its counters or its label; None where neither has it."""
    given = case.tensor_kind or case.precision
    name = {"fp32": "tf32", "fp64": "fp64_tensor"}.get(given or "", given)
    return name if name and not isinstance(gpu.tensor_flop_per_clk_per_sm(name), Unknown) else None


def is_smaller(gpu: Gpu, other: Gpu, limits: Limits) -> bool:
    """Less compute or less bandwidth: the same GPU in another slot, sold for less, is not a smaller one."""
    if other.key == gpu.key or other.vendor != gpu.vendor:
        return False
    now, then = gpu.peak(gpu.reference_precision()), other.peak(other.reference_precision())
    most = limits.smaller.at_most_ratio
    if not isinstance(now, Unknown) and not isinstance(then, Unknown) and then / now <= most:
        return True
    wide, has = (g.figure("memory_bandwidth_bytes_per_s") for g in (other, gpu))
    return not isinstance(wide, Unknown) and not isinstance(has, Unknown) and wide / has <= most
