"""Can this GPU carry what was measured, and how full would it be?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from gpuledger.advice.limits import Limits
from gpuledger.advice.slices import Slice, slices_of, smallest_slice
from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.demand import Load
from gpuledger.plan.packing import Parcel
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Misfit:
    """Why a load cannot go there, and what would change that."""

    reason: str
    why: str
    remedy: str


# A bridge joins two cards; a switch joins all GPUs of a board.
BRIDGED = 2


def works_together(load: Load, limits: Limits) -> bool:
    """Whether the GPU talks to others all the time: its load can neither share a card nor do without links."""
    links = load.nvlink_bytes_per_s
    return not isinstance(links, Unknown) and links >= limits.traffic.links_from_bytes_per_s


def same_gpu(load: Load, limits: Limits) -> Parcel | Misfit:
    """The load on the GPU it has, beside others."""
    if isinstance(load.memory_max_bytes, Unknown):
        return Misfit("not measured", load.memory_max_bytes.why, "record framebuffer memory (DCGM_FI_DEV_FB_USED)")
    room = _memory_bytes(load) * (1 - limits.smaller.memory_margin_ratio)
    memory = load.memory_max_bytes / room
    alone = works_together(load, limits) or load.sliced or memory > 1
    return Parcel(min(memory, 1.0), min(load.busy_hours_ratio, 1.0), alone)


def _memory_bytes(load: Load) -> float:
    return 1.0 if isinstance(load.gpu, Unknown) else load.gpu.memory_bytes.value


def slice_for(load: Load, limits: Limits, full_ratio: float) -> Slice | Misfit:
    """The smallest slice of the same GPU that holds the load."""
    if isinstance(load.gpu, Unknown) or isinstance(load.memory_max_bytes, Unknown):
        return Misfit("not measured", "GPU or memory use is not known", "record the GPU's name and its memory use")
    if load.sliced:
        return Misfit("sliced", "it is a slice already", "")
    if works_together(load, limits):
        why = f"it exchanges {_gbs(load.nvlink_bytes_per_s)} with other GPUs, and slices have no links"
        return Misfit("link", why, "keep whole GPUs for work that spans several")
    memory = load.memory_max_bytes / load.gpu.memory_bytes.value
    found = smallest_slice(load.gpu.key, min(load.busy_hours_ratio / full_ratio, 1.0), memory)
    if isinstance(found, Unknown) and isinstance(slices_of(load.gpu.key), Unknown):
        return Misfit("no MIG", found.why, "use another way to share: MPS or time slicing")
    if isinstance(found, Unknown) or found.compute_ratio >= 1:
        return Misfit("too large", "it needs the whole board", "make it smaller first: batch, precision, model")
    return found


def other_gpu(
    load: Load, other: Gpu, limits: Limits, full_ratio: float, *, cautious: bool, linked: int = BRIDGED
) -> Parcel | Misfit:
    """The load on another GPU: memory with room to spare, and its busy hours as long as they get there.

    Cautiously it slows down as the GPU's peak or bandwidth falls, whichever falls more; else only as far as what was
    measured exceeds what the other GPU can be planned with. `linked`: so many GPUs may work together with this one.
    """
    wrong = next(chain(_refuses(load, other, limits), _unlinked(load, other, limits, full_ratio, linked)), None)
    if wrong is not None:
        return wrong
    memory, tflops, traffic = load.memory_max_bytes, load.working_tflops, load.working_dram_bytes_per_s
    peak = other.peak(other.reference_precision())
    assert isinstance(memory, float)
    assert isinstance(tflops, float)
    assert isinstance(traffic, float)
    assert isinstance(peak, float)
    slower = _slower(load, other) if cautious else 1.0
    wide = other.memory_bandwidth_bytes_per_s.value
    slower = max(slower, tflops / (full_ratio * peak), traffic / (full_ratio * wide))
    time = load.busy_hours_ratio * max(slower, 1.0)
    if time > 1:
        compute = tflops / peak >= traffic / wide
        need = f"{tflops:.0f} of {peak:.0f} TFLOPS" if compute else f"{_gbs(traffic)} of {_gbs(wide)}"
        what = "compute" if compute else "bandwidth"
        why = f"at work it needs up to {need}: its busy hours would take {time:.1f} times as long as they have"
        return Misfit(
            what, why, "spread the load over more GPUs, or lower its precision" if compute else MORE_BANDWIDTH
        )
    room = other.memory_bytes.value * (1 - limits.smaller.memory_margin_ratio)
    return Parcel(memory / room, time, works_together(load, limits))


MORE_BANDWIDTH = "choose a GPU with more memory bandwidth, or use larger batches"


def _refuses(load: Load, other: Gpu, limits: Limits) -> Iterator[Misfit]:
    """What rules the other GPU out whatever its speed, the plainest reason first."""
    gpu, peak = load.gpu, other.peak(other.reference_precision())
    if isinstance(gpu, Unknown):
        yield Misfit("not known", gpu.why, "add the GPU to the catalog")
    elif other.vendor != gpu.vendor:
        yield Misfit("vendor", f"{other.vendor} instead of {gpu.vendor}", "port and test the job there first")
    if load.sliced:
        yield Misfit("sliced", "it runs on a slice, whose demand is not that of a board", "plan with whole GPUs")
    for figure in (load.memory_max_bytes, load.working_tflops, load.working_dram_bytes_per_s):
        if isinstance(figure, Unknown):
            yield Misfit("not measured", figure.why, "record pipe, DRAM and memory counters (DCGM PROF or GPM)")
    if isinstance(peak, Unknown):
        yield Misfit("not known", peak.why, "add the peak to the catalog")
    if load.precision and load.precision not in other.peak_tflops:
        yield Misfit("precision", f"{other.name} has no {load.precision}", "choose a newer GPU, or another precision")
    memory, has = load.memory_max_bytes, other.memory_bytes.value * (1 - limits.smaller.memory_margin_ratio)
    if not isinstance(memory, Unknown) and memory > has:
        kept = f"{100 * limits.smaller.memory_margin_ratio:.0f} % kept free"
        why = f"it used up to {memory / 1e9:.0f} GB, {other.name} has {other.memory_bytes.value / 1e9:.0f} ({kept})"
        yield Misfit("memory", why, "lower its memory first: batch, precision, recomputation; or choose a larger GPU")


def _unlinked(load: Load, other: Gpu, limits: Limits, full_ratio: float, linked: int) -> Iterator[Misfit]:
    """Where the other GPU cannot reach its neighbours as the present one does."""
    if not works_together(load, limits) or isinstance(load.nvlink_bytes_per_s, Unknown):
        return
    told, kind = f"it exchanges {_gbs(load.nvlink_bytes_per_s)} with other GPUs", other.link.kind if other.link else ""
    remedy = "choose a GPU with a switch between its GPUs, or let the job run on one GPU"
    if other.link is None or kind.startswith("PCIe"):
        yield Misfit("link", f"{told}, and {other.name} has no link but PCIe", remedy)
    elif kind.endswith("bridge") and linked > BRIDGED:
        yield Misfit("link", f"{linked} GPUs exchange data, and the bridge of {other.name} joins two", remedy)
    elif load.nvlink_bytes_per_s / max(load.busy_ratio, full_ratio) > full_ratio * other.link.bytes_per_s.value:
        yield Misfit("link", f"{told}, {other.name} has {_gbs(other.link.bytes_per_s.value)} at most", remedy)


def _slower(load: Load, other: Gpu) -> float:
    """How much slower at worst: the fall of the peak or of the bandwidth, whichever is more."""
    assert isinstance(load.gpu, Gpu)
    now, then = (g.peak(g.reference_precision()) for g in (load.gpu, other))
    peaks = 1.0 if isinstance(now, Unknown) or isinstance(then, Unknown) else now / then
    wide = load.gpu.memory_bandwidth_bytes_per_s.value / other.memory_bandwidth_bytes_per_s.value
    return max(1.0, peaks, wide)


def _gbs(bytes_per_s: float | Unknown) -> str:
    return "an unknown amount" if isinstance(bytes_per_s, Unknown) else f"{bytes_per_s / 1e9:,.0f} GB/s"
