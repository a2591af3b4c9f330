"""What does a person fill in to ask for a plan, is it allowed, and which model is meant?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec

from gpuledger.catalog.files import Fact
from gpuledger.catalog.models import Component, Model, TransformerShape, VitShape, get_model
from gpuledger.catalog.models.params import total_params
from gpuledger.errors import InputError
from gpuledger.plan.guide.checks import pick
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.schema import MOST_GPUS, ModelSize, Workload, WorkloadType
from gpuledger.plan.guide.statement import Job
from gpuledger.plan.memory.facts import precisions

MONTH_H = 744
METHODS = ("lora", "qlora", "full")

# A model known by its number of parameters only keeps the proportion of width and depth of Llama 2 70B; its gated MLP
# takes the parameters that are left, so that their sum is exact. Caches and activations follow from this shape.
HEAD_DIM, KV_HEADS, VOCAB, CONTEXT = 128, 8, 32_000, 32_768
WIDTH_PER_LAYER = 8192 / 80
# A multiple of this keeps heads and MLP divisible among up to eight GPUs.
WIDTH_STEP, MLP_STEP = 1024, 256
DENSE_WORDS = (
    "only the number of parameters is given, so the model is taken to be dense, in the proportions of Llama 2 70B, "
    "with 8 key-value heads and a vocabulary of 32,000"
)


@cache
def dense_model(name: str, params: int) -> Model:
    """A dense model of exactly this number of parameters."""
    width = (params * WIDTH_PER_LAYER / 12) ** (1 / 3)
    hidden = max(WIDTH_STEP, round(width / WIDTH_STEP) * WIDTH_STEP)
    layers = max(1, round((params - 2 * VOCAB * hidden) / (12 * hidden * hidden)))
    shape = TransformerShape(
        layers=layers, hidden=hidden, heads=hidden // HEAD_DIM, kv_heads=KV_HEADS, head_dim=HEAD_DIM,
        mlp_hidden=MLP_STEP, mlp_gated=True, vocab=VOCAB, tied_embeddings=False, max_context=CONTEXT,
    )  # fmt: skip
    more = max(0, (params - total_params(shape)) // (3 * hidden * layers) // MLP_STEP) * MLP_STEP
    shape = msgspec.structs.replace(shape, mlp_hidden=MLP_STEP + more)
    rest, source = params - total_params(shape), "derived from the number of parameters"
    fact = Fact(max(rest, 0), source, "2026-11", note="what whole widths leave over")
    extra = (Component(name="rest", role="rest", params=fact),) if rest > 0 else ()
    return Model(name=name, shape=shape, extra=extra, source=source, as_of="2026-11")


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
    """The job a form describes; an error names a value that is not allowed, and what is."""
    _check_numbers(form)
    name = form.workload.value if isinstance(form.workload, WorkloadType) else form.workload
    kind = WorkloadType(pick(name, [kind.value for kind in WorkloadType], "workload type"))
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
        workload_id=workload_id,
        **(
            {name: getattr(named, name) for name in ("name", "description", "expected_outcome", "tags")}
            if named
            else {}
        ),
    )


def _method(form: Form, kind: WorkloadType, model: Model) -> str:
    """How it is fine-tuned: by adapters unless said otherwise, where there are matrices to adapt."""
    adaptable = isinstance(model.shape, TransformerShape | VitShape)
    asked = pick(form.method or ("lora" if adaptable else "full"), METHODS, "method")
    if kind is WorkloadType.FINE_TUNING and asked != "full" and not adaptable:
        raise InputError(f"method {asked!r}: {model.name} has no matrices to adapt", hint="allowed for it: full")
    return asked


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
    if type(form.gpus) is not int or not 1 <= form.gpus <= MOST_GPUS:  # a caller in Python may give anything
        problem = f"GPU count {form.gpus!r} is not allowed"
        raise InputError(problem, hint=f"allowed: a whole number from 1 to {MOST_GPUS}")
    hours = float(form.monthly_h)
    if not (math.isfinite(hours) and 0 < hours <= MONTH_H):
        problem = f"monthly hours {form.monthly_h!r} is not allowed"
        raise InputError(problem, hint=f"allowed: above 0, at most {MONTH_H}")
    if form.busy_ratio is not None and not 0 <= form.busy_ratio <= 1:
        raise InputError(f"busy {form.busy_ratio!r} is not allowed", hint="allowed: a share from 0 to 1")
