"""Which GPU does a configured instance have: the catalog's, or one known by the configuration's own figures alone?

A GPU outside the catalog is planned with what the file gives. Its figures leave room: `compute_tflops` may be a sparse
peak, and `memory_bandwidth_factor` is a position on the scale of the reference, not a bandwidth. So such a GPU comes
with a slow and a fast reading, and the speeds of a plan span both.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache

import msgspec

from gpuledger.catalog.files import Fact
from gpuledger.catalog.gpus import Gpu, Link, find_gpu, load_gpus
from gpuledger.plan.guide.config import reference
from gpuledger.plan.guide.schema import Instance
from gpuledger.units import Unknown

SAME_MEMORY_RATIO = 0.05
SPARSE_OVER_DENSE = 2
YOURS, UNDATED = "your configuration", "undated"
# What a PCIe 5 x16 slot carries in both directions: a link above it is not a slot.
MOST_OF_A_SLOT_GB_PER_S = 128
SWITCHED, SLOT = "NVLink4", "PCIe4 x16"
# How the text of interconnect_type is read, first match first; {} is the generation named in it.
_KINDS = (
    (re.compile(r"bridge"), "NVLink bridge"),
    (re.compile(r"nvlink\s*-?([2-5])(?!-)"), "NVLink{}"),
    (re.compile(r"nvlink|nvswitch"), SWITCHED),
    (re.compile(r"infinity|xgmi"), "Infinity Fabric"),
    (re.compile(r"pcie\s*(?:gen)?\s*-?([3-5])"), "PCIe{} x16"),
    (re.compile(r"pcie"), SLOT),
)


@dataclass(frozen=True)
class Bandwidth:
    """Memory bandwidth in GB/s: as given, or as a range read from a factor."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Configured:
    """The GPU of an instance; `span`: its slow and its fast reading where its figures leave room."""

    gpu: Gpu
    span: tuple[Gpu, Gpu] | None = None


def in_catalog(instance: Instance) -> Gpu | Unknown:
    """The GPU of the catalog that is meant, whether or not its figures are used."""
    return load_gpus()[instance.catalog_gpu] if instance.catalog_gpu else find_gpu(instance.gpu_type)


def uses_own_figures(instance: Instance) -> bool:
    """Whether peak, bandwidth and link are the configuration's."""
    return instance.figures_from == "configuration" or isinstance(in_catalog(instance), Unknown)


def gpu_of(instance: Instance) -> Configured:
    """The GPU an instance is planned with: the catalog's with the configured memory, or one of its own figures."""
    found = in_catalog(instance)
    if isinstance(found, Unknown) or uses_own_figures(instance):
        speed = bandwidth(instance)
        slow = _built(instance, speed.low, instance.compute_tflops / SPARSE_OVER_DENSE)
        fast = _built(instance, speed.high, instance.compute_tflops)
        return Configured(_built(instance, speed.middle, instance.compute_tflops), (slow, fast))
    if same_memory(instance, found):
        return Configured(found)
    key = f"{found.key}-{instance.gpu_memory_gb:g}gb-configured"
    memory = Fact(instance.gpu_memory_gb * 1e9, YOURS, UNDATED)
    return Configured(msgspec.structs.replace(found, key=key, memory_bytes=memory))


def same_memory(instance: Instance, gpu: Gpu) -> bool:
    """Whether the configured memory is the catalog's, written in another way."""
    return abs(instance.gpu_memory_gb * 1e9 / gpu.stated("memory_bytes") - 1) <= SAME_MEMORY_RATIO


def bandwidth(instance: Instance) -> Bandwidth:
    """The memory bandwidth given, else what the factor stands for among the instances of the reference."""
    if (given := instance.memory_bandwidth_gb_per_s) is not None:
        return Bandwidth(given, given, given)
    return bandwidth_of(instance.memory_bandwidth_factor)


def bandwidth_of(factor: float) -> Bandwidth:
    """GB/s of a factor: between its neighbors in the reference by their logarithms, in proportion beyond them.

    The range is that of the neighbors: the reference gives GPUs of different bandwidth the same factor.
    """
    scale = _scale()
    below = max((f for f in scale if f <= factor), default=min(scale))
    above = min((f for f in scale if f >= factor), default=max(scale))
    (low, a), (b, high) = scale[below], scale[above]
    first, last = math.sqrt(low * a), math.sqrt(b * high)
    if below == above:
        times = factor / below
        return Bandwidth(low * times, first * times, high * times)
    share = (factor - below) / (above - below)
    return Bandwidth(low, first ** (1 - share) * last**share, high)


@cache
def _scale() -> dict[float, tuple[float, float]]:
    """Lowest and highest bandwidth in GB/s of each factor of the shipped reference."""
    found: dict[float, list[float]] = {}
    for one in reference().instances.values():
        gpu = in_catalog(one)
        assert not isinstance(gpu, Unknown), "the reference has GPUs of the catalog only"
        found.setdefault(one.memory_bandwidth_factor, []).append(gpu.stated("memory_bandwidth_bytes_per_s") / 1e9)
    return {factor: (min(held), max(held)) for factor, held in found.items()}


def link_kind(instance: Instance) -> str:
    """The kind of link that is meant; a name we do not know is switched if it carries more than a slot can."""
    text = instance.interconnect_type.casefold()
    for pattern, kind in _KINDS:
        if match := pattern.search(text):
            return kind.format(*match.groups())
    return SWITCHED if instance.interconnect_bandwidth_gbps > MOST_OF_A_SLOT_GB_PER_S else SLOT


def _built(instance: Instance, gb_per_s: float, tflops: float) -> Gpu:
    """A GPU of the configuration's figures. The link is in GB/s, both directions, as all figures of the reference."""
    link_bytes = instance.interconnect_bandwidth_gbps * instance.interconnect_multiplier * 1e9
    peak = Fact(tflops, "compute_tflops of your configuration, taken for 16-bit", UNDATED, verified=False)
    name, figures = instance.gpu_type, (instance.gpu_memory_gb, tflops, gb_per_s, link_bytes / 1e9)
    return Gpu(
        key="-".join(("configured", name.casefold().replace(" ", "-"), *(f"{figure:g}" for figure in figures))),
        name=name.removeprefix("NVIDIA "),
        vendor=name.partition(" ")[0],
        architecture="configured",
        form_factor="configured",
        memory_bytes=Fact(instance.gpu_memory_gb * 1e9, YOURS, UNDATED),
        memory_bandwidth_bytes_per_s=Fact(gb_per_s * 1e9, YOURS, UNDATED, verified=False),
        link=Link(kind=link_kind(instance), bytes_per_s=Fact(link_bytes, YOURS, UNDATED)),
        peak_tflops={"bf16": peak, "fp16": peak},
    )


def own_words(instance: Instance) -> str:
    """What such a GPU is taken for, in one sentence."""
    speed, tflops = bandwidth(instance), instance.compute_tflops
    if speed.low == speed.high:
        memory = f"memory bandwidth {speed.middle:,.0f} GB/s as given"
    else:
        memory = (
            f"memory bandwidth {speed.low:,.0f} to {speed.high:,.0f} GB/s by memory_bandwidth_factor "
            f"{instance.memory_bandwidth_factor:g} on the scale of the reference (memory_bandwidth_gb_per_s gives it)"
        )
    link = f"{instance.interconnect_type} link {instance.interconnect_bandwidth_gbps:g} GB/s in both directions"
    scaled = "" if instance.interconnect_multiplier == 1 else f" x {instance.interconnect_multiplier:g}"
    peak = f"{tflops:g} TFLOPS taken for 16-bit, {tflops / SPARSE_OVER_DENSE:g} if that is a sparse peak"
    figures = f"{peak}; {memory}; {link}{scaled}, read as {link_kind(instance)}"
    return f"{instance.gpu_type} is planned with the figures of the configuration: {figures}"
