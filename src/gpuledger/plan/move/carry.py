"""Can this GPU carry what was measured, and how full would it be?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from gpuledger.advice.limits import Limits
from gpuledger.advice.offers import Filled, filled
from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.mig import Slice, slices_of, smallest_slice
from gpuledger.plan.move.demand import Load
from gpuledger.plan.packing import Parcel
from gpuledger.telemetry.series.exporters import fields_of
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Misfit:
    """Why a load cannot go there, and what would change that."""

    reason: str
    why: str
    remedy: str


TRY_ONE = "run it on one of them and compare"
# A bridge joins two cards; a switch joins all GPUs of a board.
BRIDGED = 2


def works_together(load: Load, limits: Limits) -> bool:
    """Whether the GPU talks to others all the time: its load can neither share a card nor do without links."""
    links = load.nvlink_bytes_per_s
    return not isinstance(links, Unknown) and links >= limits.traffic.links_from_bytes_per_s


def same_gpu(load: Load, limits: Limits) -> Parcel | Misfit:
    """The load on the GPU it has, next to others."""
    if isinstance(load.memory_max_bytes, Unknown):
        return Misfit("not measured", load.memory_max_bytes.why, _record_memory(load))
    if not load.busy_known:
        return _not_busy(load)
    card = 1.0 if isinstance(load.gpu, Unknown) else load.gpu.figure("memory_bytes")
    if isinstance(card, Unknown):
        return Misfit("not measured", card.why, "")
    room = card * (1 - limits.smaller.memory_margin_ratio)
    memory = load.memory_max_bytes / room
    alone = works_together(load, limits) or load.sliced or memory > 1
    return Parcel(min(memory, 1.0), min(load.busy_hours_ratio, 1.0), alone)


def slice_for(load: Load, limits: Limits, full_ratio: float) -> Slice | Misfit:
    """The smallest slice of the same GPU that holds the load."""
    if isinstance(load.gpu, Unknown) or isinstance(load.memory_max_bytes, Unknown) or not load.busy_known:
        why = "the GPU, its memory use or how busy it is remains unknown"
        return Misfit("not measured", why, "record the GPU's name, its memory use and its utilization")
    if load.sliced:
        return Misfit("sliced", "it is a slice already", "")
    if works_together(load, limits):
        why = f"it exchanges {_gbs(load.nvlink_bytes_per_s)} with other GPUs, and slices have no links"
        return Misfit("link", why, "keep whole GPUs for work that spans several")
    memory = load.memory_max_bytes / load.gpu.stated("memory_bytes")  # a GPU that can be cut has one
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

    Cautiously it slows down as the peak of a pipe it uses or the bandwidth falls, whichever falls more; else only as
    far as what was measured exceeds what the other GPU can be planned with. `linked`: the number of GPUs that may work
    together with this one.
    """
    wrong = next(chain(_refuses(load, other, limits), _unlinked(load, other, limits, full_ratio, linked)), None)
    if wrong is not None:
        return wrong
    memory, traffic, pipes = load.memory_max_bytes, load.working_dram_bytes_per_s, pipes_filled(load, other)
    assert isinstance(memory, float)
    assert isinstance(traffic, float)
    slower = _slower(load, other) if cautious else 1.0
    wide = other.stated("memory_bandwidth_bytes_per_s")
    fullest = pipes[0].ratio if pipes else 0.0
    slower = max(slower, fullest / full_ratio, traffic / (full_ratio * wide))
    time = load.busy_hours_ratio * max(slower, 1.0)
    if time > 1:
        compute = fullest >= traffic / wide
        need = pipes[0].words if pipes and compute else f"{_gbs(traffic)} of {_gbs(wide)}"
        what = "compute" if compute else "bandwidth"
        why = f"at work it needs up to {need}: its busy hours would take {time:.1f} times as long as they have"
        return Misfit(
            what, why, "spread the load over more GPUs, or lower its precision" if compute else MORE_BANDWIDTH
        )
    room = other.stated("memory_bytes") * (1 - limits.smaller.memory_margin_ratio)
    return Parcel(memory / room, time, works_together(load, limits))


def pipes_filled(load: Load, other: Gpu) -> tuple[Filled, ...]:
    """How full each pipe the load uses would be on another GPU, the fullest first; empty where that is unknown."""
    found = () if isinstance(load.needs, Unknown) else filled(load.needs, other)
    return () if isinstance(found, Unknown) else found


RECORD_THEM = "record pipe, DRAM and framebuffer counters (DCGM PROF fields or GPM)"
MORE_BANDWIDTH = "choose a GPU with more memory bandwidth, or use larger batches"


def _vendor(load: Load) -> str:
    return "" if isinstance(load.gpu, Unknown) else load.gpu.vendor


def _not_busy(load: Load) -> Misfit:
    fields = (fields_of(_vendor(load), (column,)) for column in ("gpu_util_ratio", "engine_ratio"))
    names = " or ".join(name for found in fields for name in found) or "its utilization"
    why = "neither engine activity nor utilization is recorded, so how busy it is remains unknown"
    return Misfit("not measured", why, f"record {names}")


def _record_memory(load: Load) -> str:
    names = ", ".join(fields_of(_vendor(load), ("fb_used_bytes",)))
    return f"record framebuffer memory ({names})" if names else "record memory in use"


def _refuses(load: Load, other: Gpu, limits: Limits) -> Iterator[Misfit]:
    """What rules the other GPU out whatever its speed, the plainest reason first."""
    gpu, needs = load.gpu, load.needs
    if isinstance(gpu, Unknown):
        yield Misfit("unknown GPU", gpu.why, "add the GPU to the catalog")
    elif other.vendor != gpu.vendor:
        yield Misfit("vendor", f"{other.vendor} instead of {gpu.vendor}", "port and test the job there first")
    if load.sliced:
        yield Misfit("sliced", "it runs on a slice, whose demand is not that of a board", "plan with whole GPUs")
    if not load.busy_known:
        yield _not_busy(load)
    for figure in (load.memory_max_bytes, needs, load.working_dram_bytes_per_s):
        if isinstance(figure, Unknown):
            yield Misfit("not measured", figure.why, RECORD_THEM if _vendor(load) == "NVIDIA" else TRY_ONE)
    if load.precision and load.precision not in other.peak_tflops:
        yield Misfit("precision", f"{other.name} has no {load.precision}", "choose a newer GPU, or another precision")
    if not isinstance(needs, Unknown) and isinstance(pipes := filled(needs, other), Unknown):
        yield Misfit("precision", pipes.why, "choose a GPU that has it, or another precision")
    yield from _no_room(load, other, limits)


def _no_room(load: Load, other: Gpu, limits: Limits) -> Iterator[Misfit]:
    """Where the other GPU has too little memory, or a figure of it is unknown."""
    card = other.figure("memory_bytes")
    for figure in (card, other.figure("memory_bandwidth_bytes_per_s")):
        if isinstance(figure, Unknown):
            yield Misfit("unknown GPU", figure.why, "choose a GPU whose figures are known: gpuledger catalog gpus")
    if isinstance(card, Unknown):
        return
    memory, has = load.memory_max_bytes, card * (1 - limits.smaller.memory_margin_ratio)
    if not isinstance(memory, Unknown) and memory > has:
        kept = f"{100 * limits.smaller.memory_margin_ratio:.0f} % kept free"
        why = f"it used up to {memory / 1e9:.0f} GB, {other.name} has {card / 1e9:.0f} ({kept})"
        yield Misfit("memory", why, "lower its memory first: batch, precision, recomputation; or choose a larger GPU")


def _unlinked(load: Load, other: Gpu, limits: Limits, full_ratio: float, linked: int) -> Iterator[Misfit]:
    """Where the other GPU cannot reach its neighbours as the present one does."""
    if not works_together(load, limits) or isinstance(load.nvlink_bytes_per_s, Unknown):
        return
    traffic = f"it exchanges {_gbs(load.nvlink_bytes_per_s)} with other GPUs"
    kind = other.link.kind if other.link else ""
    remedy = "choose a GPU with a switch between its GPUs, or let the job run on one GPU"
    if other.link is None or kind.startswith("PCIe"):
        yield Misfit("link", f"{traffic}, and {other.name} has no link but PCIe", remedy)
    elif kind.endswith("bridge") and linked > BRIDGED:
        yield Misfit("link", f"{linked} GPUs exchange data, and the bridge of {other.name} joins two", remedy)
    elif load.nvlink_bytes_per_s / max(load.busy_ratio, full_ratio) > full_ratio * other.link.bytes_per_s.value:
        yield Misfit("link", f"{traffic}, {other.name} has {_gbs(other.link.bytes_per_s.value)} at most", remedy)


def _slower(load: Load, other: Gpu) -> float:
    """How much slower at worst: the fall of the peak of a pipe it uses, or of the bandwidth, whichever is more."""
    assert isinstance(load.gpu, Gpu)
    assert not isinstance(load.needs, Unknown)
    falls = [load.gpu.stated("memory_bandwidth_bytes_per_s") / other.stated("memory_bandwidth_bytes_per_s")]
    for need in load.needs:
        now = load.gpu.peak(need.precision)
        then = other.peak(need.precision if need.known else other.reference_precision())
        if not isinstance(now, Unknown) and not isinstance(then, Unknown):
            falls.append(now / then)
    return max(1.0, *falls)


def _gbs(bytes_per_s: float | Unknown) -> str:
    return "an unknown amount" if isinstance(bytes_per_s, Unknown) else f"{bytes_per_s / 1e9:,.0f} GB/s"
