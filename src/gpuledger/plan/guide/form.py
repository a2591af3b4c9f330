"""What does a person fill in to ask for a plan, and is it allowed?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gpuledger.catalog.models import Model, TransformerShape, VitShape, get_model
from gpuledger.errors import InputError
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.config_faults import pick
from gpuledger.plan.guide.schema import MOST_GPUS, ModelSize, Workload, WorkloadType
from gpuledger.plan.guide.size_shapes import dense_model
from gpuledger.plan.guide.statement import Job
from gpuledger.plan.memory.facts import precisions

MONTH_H = 744
METHODS = ("lora", "qlora", "full")


@dataclass(frozen=True, kw_only=True)
class Form:
    """The question; what is None is taken from the configuration."""

    instance: str
    gpus: int
    workload: WorkloadType | str
    size: ModelSize | str | None = None
    model: Model | str | None = None
    monthly_h: float | Decimal = 720
    spot: bool = False
    precision: str = "fp16"
    priority: str | None = None
    use_case: str | None = None
    method: str | None = None
    busy_ratio: float | None = None


def form_of(workload: Workload, **changed: Any) -> Form:
    """A workload of the configuration as a filled-in form."""
    s = workload.scenario
    form = Form(
        instance=s.current_instance,
        gpus=s.current_gpu_count,
        workload=s.workload_type,
        size=s.model_size,
        monthly_h=s.monthly_hours,
        spot=s.use_spot,
        precision=s.precision,
        use_case=workload.use_case,
    )
    return replace(form, **changed)


def job_of(form: Form, config: Config, workload_id: str = "") -> Job:
    """The job a form describes; a value that is not allowed is named with what is."""
    _check_numbers(form)
    kind = workload_type(form.workload)
    model, size = model_of(form, config)
    case = pick(form.use_case or config.kinds[kind.value].use_case, config.use_cases, "use case")
    suits = config.use_cases[case]
    named = config.workloads.get(workload_id)
    return Job(
        workload=kind,
        model=model,
        size=size,
        precision=pick(form.precision, precisions(), "precision"),
        monthly_h=Decimal(str(form.monthly_h)),
        use_case=case,
        priority=pick(form.priority or suits.priority, config.priorities, "priority"),
        spot_asked=form.spot,
        spot_suitable=suits.spot_suitable,
        method=_method(form, kind, model),
        busy_ratio=form.busy_ratio,
        name=named.name if named else "",
        workload_id=workload_id,
        description=named.description if named else "",
        expected_outcome=named.expected_outcome if named else "",
        tags=named.tags if named else (),
    )


def _method(form: Form, kind: WorkloadType, model: Model) -> str:
    """How it is fine-tuned: by adapters unless said otherwise, where there are matrices to adapt."""
    adaptable = isinstance(model.shape, TransformerShape | VitShape)
    asked = pick(form.method or ("lora" if adaptable else "full"), METHODS, "method")
    if kind is WorkloadType.FINE_TUNING and asked != "full" and not adaptable:
        raise InputError(f"method {asked!r}: {model.name} has no matrices to adapt", hint="allowed for it: full")
    return asked


def workload_type(given: WorkloadType | str) -> WorkloadType:
    """The kind of work that is meant, by its member or its name."""
    if isinstance(given, WorkloadType):
        return given
    return WorkloadType(pick(given, [kind.value for kind in WorkloadType], "workload type"))


def size_key(given: ModelSize | str, config: Config) -> str:
    """The size of the configuration that is meant."""
    return pick(given.value if isinstance(given, ModelSize) else given, config.sizes, "model size")


def model_of(form: Form, config: Config) -> tuple[Model, str]:
    """The model asked about: one of the catalog, or a dense one of a size class."""
    if form.model is not None:
        return (get_model(form.model) if isinstance(form.model, str) else form.model), ""
    if form.size is None:
        sizes = ", ".join(config.sizes)
        raise InputError("neither a model nor a model size is given", hint=f"name a model, or a size: {sizes}")
    key = size_key(form.size, config)
    billion = Decimal(str(config.sizes[key].parameter_count_billion))
    return dense_model(f"{key} ({float(billion):g}B)", int(billion * 10**9)), key


def _check_numbers(form: Form) -> None:
    if not _whole(form.gpus) or not 1 <= form.gpus <= MOST_GPUS:
        raise InputError(
            f"GPU count {form.gpus!r} is not allowed", hint=f"allowed: a whole number from 1 to {MOST_GPUS}"
        )
    hours = float(form.monthly_h)
    if not (math.isfinite(hours) and 0 < hours <= MONTH_H):
        raise InputError(
            f"monthly hours {form.monthly_h!r} is not allowed", hint=f"allowed: above 0, at most {MONTH_H}"
        )
    if form.busy_ratio is not None and not 0 <= form.busy_ratio <= 1:
        raise InputError(f"busy {form.busy_ratio!r} is not allowed", hint="allowed: a share from 0 to 1")


def _whole(value: object) -> bool:
    """Whether it is a whole number: a caller in Python may give anything."""
    return isinstance(value, int) and not isinstance(value, bool)


def instance_key(name: str, config: Config) -> str:
    """The instance of the configuration that is meant."""
    return pick(name, config.instances, "instance")
