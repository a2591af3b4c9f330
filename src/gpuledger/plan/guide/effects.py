"""What does each field of a configuration do, and which of the values in it have no effect?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.own_gpus import in_catalog, same_memory, uses_own_figures
from gpuledger.plan.guide.schema import Instance
from gpuledger.plan.memory.facts import precisions
from gpuledger.units import Unknown

Effect = Literal["plan", "figures", "shown"]
SAME_RATIO = 1e-9


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a field does, in words too."""

    effect: Effect
    words: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    version: Literal[1]
    gpu_instances: dict[str, Field]
    model_sizes: dict[str, Field]
    precisions: dict[str, Field]
    workload_types: dict[str, Field]
    priorities: dict[str, Field]
    use_cases: dict[str, Field]
    workloads: dict[str, Field]
    workload_set_purposes: dict[str, Field]


@cache
def fields() -> dict[str, dict[str, Field]]:
    """Every field by section."""
    file = load_toml(data_dir("gpuledger.plan", "data", "configuration_fields.toml"), _File)
    return {name: getattr(file, name) for name in file.__struct_fields__ if name != "version"}


@dataclass(frozen=True)
class Unused:
    """A value without effect on plans: why, and how to make it count; `yours`: it is not the shipped one."""

    field: str
    value: str
    why: str
    instead: str
    yours: bool

    def __str__(self) -> str:
        return f"{self.field} {self.value} has no effect on plans: {self.why}; to make it count, {self.instead}"


def unused(config: Config) -> tuple[Unused, ...]:
    """Every value of a configuration that changes no plan, though its field can."""
    found = [one for key, instance in config.instances.items() for one in _of_instance(key, instance, config)]
    return (*found, *_of_precisions(config))


def _of_instance(key: str, one: Instance, config: Config) -> Iterator[Unused]:
    gpu = in_catalog(one)
    for name in (n for n, field in fields()["gpu_instances"].items() if field.effect == "figures"):
        value = getattr(one, name)
        if value is None:
            continue
        if not isinstance(gpu, Unknown) and not uses_own_figures(one):
            why, instead = _catalog_has(name, gpu), _own_figures(key)
        elif name == "memory_bandwidth_factor" and one.memory_bandwidth_gb_per_s is not None:
            why, instead = "memory_bandwidth_gb_per_s is given", "leave memory_bandwidth_gb_per_s out"
        elif name.startswith("interconnect") and one.gpus == 1:
            why, instead = "an instance of one GPU has no link within it", "set gpus_per_instance"
        else:
            continue
        yield _unused(f"gpu_instances.{key}.{name}", value, why, instead, config)
    if not isinstance(gpu, Unknown) and not uses_own_figures(one) and same_memory(one, gpu):
        known = gpu.stated("memory_bytes") / 1e9
        if abs(one.gpu_memory_gb / known - 1) > SAME_RATIO and f"gpu_instances.{key}.gpu_memory_gb" in config.changed:
            why = f"it is within 5 % of the {known:g} GB of the catalog, which are used"
            yield _unused(f"gpu_instances.{key}.gpu_memory_gb", one.gpu_memory_gb, why, _own_figures(key), config)


def _own_figures(key: str) -> str:
    return f'set "figures_from": "configuration" in gpu_instances.{key}'


def _catalog_has(name: str, gpu: Gpu) -> str:
    """What the catalog has in place of a figure."""
    peak, link = gpu.peak(gpu.reference_precision()), gpu.link
    figures = {
        "compute_tflops": "" if isinstance(peak, Unknown) else f", {peak:g} dense 16-bit TFLOPS",
        "interconnect_type": f", {link.kind}" if link else ", no link",
        "interconnect_bandwidth_gbps": f", {link.bytes_per_s.value / 1e9:g} GB/s over {link.kind}" if link else "",
        "interconnect_multiplier": f", {link.bytes_per_s.value / 1e9:g} GB/s over {link.kind}" if link else "",
    }
    wide = gpu.figure("memory_bandwidth_bytes_per_s")
    memory = "" if isinstance(wide, Unknown) else f", {wide / 1e9:g} GB/s of memory bandwidth"
    return f"{gpu.name} is in the catalog{figures.get(name, memory)}, which is used"


def _of_precisions(config: Config) -> Iterator[Unused]:
    for key, one in config.precisions.items():
        known, field = precisions().get(key), f"precisions.{key}.bytes_per_parameter"
        if field not in config.changed:
            continue
        if known is None:
            why = "plans do not know this precision; only get_model_size_gb uses it"
        elif abs(one.bytes_per_parameter * 8 / known.bits - 1) > SAME_RATIO:
            why = f"plans count {known.bits:g} bits for it; only get_model_size_gb uses yours"
        else:
            continue
        yield _unused(field, one.bytes_per_parameter, why, f"use one of {', '.join(precisions())} as it is", config)


def _unused(field: str, value: object, why: str, instead: str, config: Config) -> Unused:
    written = f"{value:g}" if isinstance(value, int | float) else repr(value)
    return Unused(field, written, why, instead, field in config.changed)
