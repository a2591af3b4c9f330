"""Do the entries of the three files agree with one another?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gpuledger.catalog.gpus import load_gpus
from gpuledger.errors import FactError, GpuledgerError
from gpuledger.plan.guide.config_faults import choose, fold
from gpuledger.plan.guide.schema import Instance, Scenario, WorkloadType
from gpuledger.plan.memory.facts import precisions

Made = Mapping[str, Mapping[str, Any]]
KINDS = tuple(kind.name for kind in WorkloadType)
SUM_TOLERANCE = 1e-6


def check(made: Made, files: Mapping[str, str]) -> list[GpuledgerError]:
    """Every name that leads nowhere, and figures that contradict one another."""
    faults: list[GpuledgerError] = []
    for part in (_instances, _models, _workloads, _sets):
        for test in part(made, files):
            try:
                test()
            except GpuledgerError as error:
                faults.append(error)
    return faults


Tests = Iterator[Callable[[], object]]


def _named(value: str, allowed: Any, path: str, field: str) -> Callable[[], str]:
    return lambda: choose(value, allowed, path, field)


def _instances(made: Made, files: Mapping[str, str]) -> Tests:
    path = files["gpu_instances"]
    if not made["gpu_instances"]:
        yield _refuse(FactError(path, "gpu_instances", "no instance is left", hint="keep at least one"))
    for key, one in made["gpu_instances"].items():
        at = f"gpu_instances.{key}"
        if one.catalog_gpu is not None:
            yield _named(one.catalog_gpu, load_gpus(), path, f"{at}.catalog_gpu")
        for name, correction in one.corrections.items():
            if name != "gpus_per_instance" or correction.value < 1 or correction.value != int(correction.value):
                hint = "allowed: gpus_per_instance, a whole number of at least 1"
                field = f"{at}.corrections.{name}"
                yield _refuse(FactError(path, field, f"{correction.value!r} is not allowed", hint=hint))


def _models(made: Made, files: Mapping[str, str]) -> Tests:
    path = files["model_config"] if "model_config" in files else files["model_sizes"]
    for kind in WorkloadType:
        if kind.value not in made["workload_types"]:
            field = f"workload_types.{kind.value}"
            yield _refuse(FactError(path, field, "the entry is missing", hint="the planner needs all three"))
    for key, kind in made["workload_types"].items():
        yield _named(kind.use_case, made["use_cases"], path, f"workload_types.{key}.use_case")
    for key, case in made["use_cases"].items():
        yield _named(case.priority, made["priorities"], path, f"use_cases.{key}.priority")
    for key, priority in made["priorities"].items():
        w = priority.weights
        if abs(w.cost + w.performance + w.reliability - 1) > SUM_TOLERANCE:
            total = w.cost + w.performance + w.reliability
            field = f"priorities.{key}.weights"
            yield _refuse(
                FactError(path, field, f"they add up to {total:g}", hint="allowed: three shares that add up to 1")
            )


def _workloads(made: Made, files: Mapping[str, str]) -> Tests:
    path = files["workloads"]
    for key, one in made["workloads"].items():
        at, s = f"workloads.{key}.scenario", one.scenario
        yield _named(s.current_instance, made["gpu_instances"], path, f"{at}.current_instance")
        yield _named(s.workload_type, KINDS, path, f"{at}.workload_type")
        yield _named(s.model_size, [name.upper() for name in made["model_sizes"]], path, f"{at}.model_size")
        yield _named(s.precision, made["precisions"], path, f"{at}.precision")
        yield partial(_able, s, made, path, f"{at}.precision")
        if one.use_case is not None:
            yield _named(one.use_case, made["use_cases"], path, f"workloads.{key}.use_case")


def _able(scenario: Scenario, made: Made, path: str, field: str) -> None:
    """The GPU of the present instance must have the precision that is said to run on it."""
    one: Instance | None = made["gpu_instances"].get(scenario.current_instance)
    precision = precisions().get(fold(scenario.precision))
    gpu = load_gpus().get(one.catalog_gpu or "") if one is not None else None
    if gpu is None or precision is None:
        return
    if precision.needs and precision.needs not in gpu.peak_tflops:
        able = [
            p.name
            for p in precisions().values()
            if p.name in made["precisions"] and (not p.needs or p.needs in gpu.peak_tflops)
        ]
        problem = f"{scenario.precision!r} is not allowed: {gpu.name} has no {precision.needs} units in the catalog"
        raise FactError(path, field, problem, hint=f"allowed: {', '.join(able)}")


def _sets(made: Made, files: Mapping[str, str]) -> Tests:
    path = files["workload_sets"]
    for key, members in made["workload_sets"].items():
        if not members:
            yield _refuse(
                FactError(path, f"workload_sets.{key}", "the set is empty", hint="name a workload, or remove it")
            )
        for at, member in enumerate(members):
            yield _named(member, made["workloads"], path, f"workload_sets.{key}[{at}]")


def _refuse(error: GpuledgerError) -> Callable[[], object]:
    def test() -> object:
        raise error

    return test
