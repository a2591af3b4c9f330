"""Is an entry of a configuration file allowed, do the entries agree, and what is reported where not?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from gpuledger.catalog.gpus import find_gpu, load_gpus
from gpuledger.errors import FactError, GpuledgerError, InputError, nearest
from gpuledger.plan.guide.schema import Instance, Scenario, WorkloadType
from gpuledger.plan.memory.facts import precisions
from gpuledger.settings import value_at
from gpuledger.units import Unknown

Made = Mapping[str, Mapping[str, Any]]
KINDS = tuple(kind.name for kind in WorkloadType)
SUM_TOLERANCE = 1e-6
_EXPECTED = re.compile(r"Expected `(.+?)`(.*)")
# What msgspec calls a kind of value, as people say it.
_VALUES = {
    "float": "a number", "int": "a whole number", "str": "text in quotes", "bool": "true or false", "array": "a list",
}  # fmt: skip
_SIGNS = ((">=", "of at least"), ("<=", "of at most"), (">", "above"), ("<", "below"))


def faults(raw: object, kind: Any, path: str, field: str) -> list[GpuledgerError]:
    """Every fault of an entry, field by field: file, field, the value found and what is allowed."""
    if isinstance(raw, dict) and get_origin(kind) is dict:
        return [f for name, one in raw.items() for f in faults(one, get_args(kind)[1], path, f"{field}.{name}")]
    if not isinstance(raw, dict) or not _is_struct(kind):
        try:
            msgspec.convert(raw, kind)
        except msgspec.ValidationError as error:
            return [_fault(str(error), raw, kind, path, field)]
        return []
    found: list[GpuledgerError] = []
    fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}
    for name, one in fields.items():
        if name in raw:
            found += faults(raw[name], one.type, path, f"{field}.{name}")
        elif one.required:
            hint = f"add {name!r} to {field}; gpuledger config init writes files with every field"
            found.append(FactError(path, f"{field}.{name}", "the field is missing", hint=hint))
    for name in raw:
        if name not in fields:
            near = nearest(name, fields)
            hint = f"did you mean {' or '.join(near)}?" if near else f"allowed: {', '.join(sorted(fields))}"
            found.append(FactError(path, f"{field}.{name}", "no such field", hint=hint))
    return found


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def absent(kind: Any, raw: Mapping[str, Any]) -> list[str]:
    """The required fields that an entry of this kind leaves out."""
    found: list[str] = []
    for one in msgspec.structs.fields(kind) if _is_struct(kind) else ():
        name = one.encode_name
        if name not in raw:
            found += [name] if one.required else []
        elif isinstance(raw[name], dict):
            found += [f"{name}.{inner}" for inner in absent(one.type, raw[name])]
    return found


def _fault(message: str, raw: object, kind: Any, path: str, field: str) -> FactError:
    problem, _, where = message.partition(" - at `")
    inner = where.rstrip("`").removeprefix("$")
    names = [name for one in (kind, *get_args(kind)) if get_origin(one) is Literal for name in get_args(one)]
    allowed = " or ".join(names) or _allowed(problem)
    return FactError(path, field + inner, f"{value_at(raw, inner)} is not allowed", hint=f"allowed: {allowed}")


def _allowed(problem: str) -> str:
    found = _EXPECTED.search(problem)
    if not found:
        return problem
    kinds = " or ".join(_VALUES.get(k.strip(), k.strip()) for k in found[1].split("|") if k.strip() != "null")
    rest = found[2].split(", got")[0].strip()
    for sign, words in _SIGNS:
        if rest.startswith(sign):
            return f"{kinds} {words} {rest.removeprefix(sign).strip().removesuffix('.0')}"
    return f"{kinds} {rest}".strip()


def _meant(value: str, allowed: Iterable[str]) -> tuple[str | None, str]:
    """The allowed name that is meant, letter case and hyphens aside; where there is none, a hint what is allowed."""
    folded = {fold(name): name for name in allowed}
    near = nearest(fold(value), folded)
    guess = f"did you mean {folded[near[0]]}? " if near else ""
    return folded.get(fold(value)), f"{guess}allowed: {', '.join(folded.values())}"


def fold(name: str) -> str:
    """A name as it is compared."""
    return name.strip().casefold().replace("-", "_")


def pick(value: str, allowed: Iterable[str], field: str) -> str:
    """The allowed name that a person means."""
    found, hint = _meant(value, allowed)
    if found is None:
        raise InputError(f"{field} {value!r} is not allowed", hint=hint)
    return found


def check(made: Made, files: Mapping[str, str]) -> list[GpuledgerError]:
    """Every name that leads nowhere, and figures that contradict one another."""
    return [fault for part in (_instances, _models, _workloads, _sets) for fault in part(made, files)]


def _unnamed(value: str, allowed: Iterable[str], path: str, field: str) -> Iterator[FactError]:
    found, hint = _meant(value, allowed)
    if found is None:
        yield FactError(path, field, f"{value!r} is not allowed", hint=hint)


def _instances(made: Made, files: Mapping[str, str]) -> Iterator[FactError]:
    path = files["gpu_instances"]
    if not made["gpu_instances"]:
        yield FactError(path, "gpu_instances", "no instance is left", hint="keep at least one")
    for key, one in made["gpu_instances"].items():
        at = f"gpu_instances.{key}"
        if one.catalog_gpu is not None:
            yield from _unnamed(one.catalog_gpu, load_gpus(), path, f"{at}.catalog_gpu")
        if one.figures_from == "catalog" and one.catalog_gpu is None and isinstance(find_gpu(one.gpu_type), Unknown):
            hint = "leave figures_from out, or give catalog_gpu, a key of `gpuledger catalog gpus`"
            yield FactError(path, f"{at}.figures_from", f"{one.gpu_type!r} is not in the catalog", hint=hint)
        for name, correction in one.corrections.items():
            if name != "gpus_per_instance" or correction.value < 1 or correction.value != int(correction.value):
                hint = "allowed: gpus_per_instance, a whole number of at least 1"
                yield FactError(path, f"{at}.corrections.{name}", f"{correction.value!r} is not allowed", hint=hint)


def _models(made: Made, files: Mapping[str, str]) -> Iterator[FactError]:
    path = files["model_sizes"]
    for missing in (kind.value for kind in WorkloadType if kind.value not in made["workload_types"]):
        hint = "the planner needs all three"
        yield FactError(path, f"workload_types.{missing}", "the entry is missing", hint=hint)
    for key, kind in made["workload_types"].items():
        yield from _unnamed(kind.use_case, made["use_cases"], path, f"workload_types.{key}.use_case")
    for key, case in made["use_cases"].items():
        yield from _unnamed(case.priority, made["priorities"], path, f"use_cases.{key}.priority")
    for key, priority in made["priorities"].items():
        total = priority.weights.cost + priority.weights.performance + priority.weights.reliability
        if abs(total - 1) > SUM_TOLERANCE:
            hint = "allowed: three shares that add up to 1"
            yield FactError(path, f"priorities.{key}.weights", f"they add up to {total:g}", hint=hint)


def _workloads(made: Made, files: Mapping[str, str]) -> Iterator[FactError]:
    path = files["workloads"]
    for key, one in made["workloads"].items():
        at, s = f"workloads.{key}.scenario", one.scenario
        yield from _unnamed(s.current_instance, made["gpu_instances"], path, f"{at}.current_instance")
        yield from _unnamed(s.workload_type, KINDS, path, f"{at}.workload_type")
        yield from _unnamed(s.model_size, [name.upper() for name in made["model_sizes"]], path, f"{at}.model_size")
        yield from _unnamed(s.precision, made["precisions"], path, f"{at}.precision")
        yield from _unable(s, made, path, f"{at}.precision")
        if one.use_case is not None:
            yield from _unnamed(one.use_case, made["use_cases"], path, f"workloads.{key}.use_case")


def _unable(scenario: Scenario, made: Made, path: str, field: str) -> Iterator[FactError]:
    """The GPU of the present instance must have the precision the workload runs in."""
    one: Instance | None = made["gpu_instances"].get(scenario.current_instance)
    precision = precisions().get(fold(scenario.precision))
    gpu = load_gpus().get(one.catalog_gpu or "") if one is not None else None
    if gpu is not None and precision is not None and not precision.runs_on(gpu):
        able = ", ".join(p.name for p in precisions().values() if p.name in made["precisions"] and p.runs_on(gpu))
        problem = f"{scenario.precision!r} is not allowed: {gpu.name} has no {precision.needs} units in the catalog"
        yield FactError(path, field, problem, hint=f"allowed: {able}")


def _sets(made: Made, files: Mapping[str, str]) -> Iterator[FactError]:
    path = files["workload_sets"]
    for key, members in made["workload_sets"].items():
        if not members:
            yield FactError(path, f"workload_sets.{key}", "the set is empty", hint="name a workload, or remove it")
        for at, member in enumerate(members):
            yield from _unnamed(member, made["workloads"], path, f"workload_sets.{key}[{at}]")
