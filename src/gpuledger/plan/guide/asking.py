"""How does a question that a person fills in become a plan, at the prices of a configuration or of the market?"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.models import Model, TransformerShape, VitShape, get_model
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.guide.build import Terms, plan_migration
from gpuledger.plan.guide.checks import fold, pick
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.effects import unused
from gpuledger.plan.guide.judging import preferred_gpus
from gpuledger.plan.guide.options import cheapest_each, configured, counts, from_config, from_market, may_pay
from gpuledger.plan.guide.own_gpus import gpu_of, own_words, uses_own_figures
from gpuledger.plan.guide.placed_job import Candidate, Job
from gpuledger.plan.guide.placing import require_precision
from gpuledger.plan.guide.schema import MOST_GPUS, ModelSize, Workload, WorkloadType, dense_model
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.plan.market import MarketOption, Purchase
from gpuledger.plan.memory.facts import precisions
from gpuledger.units import Unknown

MONTH_H = 744
METHODS = ("lora", "qlora", "full")
UNDATED = (
    "prices are illustrative figures of the GPU Fleet Optimizer guide, undated; those of the P-series are read as of "
    "whole instances, those of the G-series as of one GPU"
)
ELSEWHERE = "try region=any, another cloud, or a configuration with your own prices"


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
    keep_gpus: bool = False


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
        keep_gpus=s.keep_gpu_count,
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
        fixed_gpus=form.gpus if form.keep_gpus else None,
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


def plan_configured(config: Config, form: Form, workload_id: str = "") -> MigrationPlan:
    """A plan among the instances of a configuration, at its prices."""
    job = job_of(form, config, workload_id)
    key = pick(form.instance, config.instances, "instance")
    now = configured(config, key, form.gpus, "spot" if form.spot else "on-demand")
    require_precision(job, now.gpu)
    found = list(from_config(config, [(key, form.gpus)]))
    for name, one in config.instances.items():
        steps = counts(job, gpu_of(one).gpu, now, one.gpus)
        made = from_config(config, ((name, gpus) for gpus in steps.steps))
        found += [candidate for candidate in made if may_pay(job, candidate, now, steps.enough)]
    words = UNDATED if config.illustrative else f"prices are those of {config.where}, as configured"
    terms = _terms(config, job, words, illustrative=config.illustrative, notes=(*config.notes, *_notes(config)))
    return plan_migration(job, now, list({c.id: c for c in found}.values()), terms)


def _notes(config: Config) -> Iterator[str]:
    """Assumptions made about the instances, and what of the user's own has no effect."""
    yield from (str(one) for one in unused(config) if one.yours)
    if unnamed := [key for key, one in config.instances.items() if one.price_scope is None]:
        yield (
            f"{', '.join(unnamed)}: no price_scope is given, so the price is read as that of a whole instance; "
            'write "price_scope": "gpu" if it is of one GPU'
        )
    yield from (f"{key}: {own_words(one)}" for key, one in config.instances.items() if uses_own_figures(one))
    for key, one in config.instances.items():
        yield from (f"{key}: {name} is {fix.value:g}: {fix.why}" for name, fix in one.corrections.items())


def _terms(config: Config, job: Job, words: str, *, illustrative: bool = False, notes: tuple[str, ...] = ()) -> Terms:
    """How the options of a job are judged."""
    size = config.sizes.get(job.size)
    return Terms(
        priority=config.priorities[job.priority],
        preferred=preferred_gpus(config, job.workload),
        multiplier=config.kinds[job.workload.value].memory_overhead_multiplier,
        size_multiplier=size.memory_overhead_multiplier if size else Unknown("no size class was given"),
        prices=words,
        illustrative=illustrative,
        notes=notes,
    )


@dataclass(frozen=True)
class Market:
    """What is offered where we looked, `where` in words; prices are old compared with `today`.

    `whole`: instances are rented for this job alone, now and then; else the job pays for the GPUs it uses.
    """

    offered: Sequence[MarketOption]
    where: str
    today: dt.date | None = None
    whole: bool = False


def plan_market(config: Config, form: Form, market: Market, workload_id: str = "") -> MigrationPlan:
    """A plan among what the market offers; sizes, priorities and use cases are the configuration's."""
    job = job_of(form, config, workload_id)
    if not market.offered:
        raise InputError(f"nothing is offered in {market.where}", hint=ELSEWHERE)
    now = _present(form, config, market, "spot" if form.spot else "on-demand")
    other = _present(form, config, market, "on-demand" if form.spot else "spot")
    require_precision(job, now.gpu)
    found = {now.id: now, other.id: other}
    for offer in cheapest_each(market.offered):
        steps = counts(job, offer.gpu, now, offer.gpus)
        sizes, enough = steps.steps, steps.enough
        if market.whole:  # only whole instances are sold, even if that is more than is used now
            sizes, enough = tuple(n for n in sizes if n % offer.gpus == 0) or (offer.gpus,), max(enough, offer.gpus)
        for gpus in sizes:
            candidate = from_market(offer, gpus, market.today, whole=market.whole)
            if may_pay(job, candidate, now, enough):
                found.setdefault(candidate.id, candidate)
    return plan_migration(job, now, list(found.values()), _terms(config, job, _dated(market)))


def _present(form: Form, config: Config, market: Market, purchase: Purchase) -> Candidate:
    """The present setup at its market price; unknown where it is not listed under that purchase option."""
    mine = _meant(form.instance, config, market)
    enough = [o.gpus for o in mine if o.gpus >= form.gpus]
    size = min(enough) if enough else max(o.gpus for o in mine)
    exact = [o for o in mine if o.gpus == size]
    bought = next((o for o in exact if o.purchase == purchase), None)
    if bought:
        return from_market(bought, form.gpus, market.today, whole=market.whole)
    why = Unknown(f"no {purchase} offer of {exact[0].instance or exact[0].gpu.name} is listed in {market.where}")
    bare = from_market(exact[0], form.gpus, market.today, whole=market.whole)
    prices = dict.fromkeys(("usd_per_gpu_h", "high_usd_per_gpu_h", "usd_per_h", "whole_usd_per_h"), why)
    return replace(bare, id=f"{bare.id}, as {purchase}", purchase=purchase, **prices)  # type: ignore[arg-type]


def _meant(name: str, config: Config, market: Market) -> list[MarketOption]:
    """The offers a name means, cheapest first: of an instance of the configuration, an instance type, or a GPU."""
    keys = {fold(key): one for key, one in config.instances.items()}
    if fold(name) in keys:
        types = keys[fold(name)].market_instances
        found = [o for o in market.offered if o.instance in types]
        what = f"{name} ({', '.join(types) or 'no market_instances are given for it'})"
    elif found := [o for o in market.offered if o.instance and fold(o.instance) == fold(name)]:
        return found
    else:
        gpu = find_gpu(name)
        if isinstance(gpu, Unknown):
            raise UnknownName("instance or GPU", name, [*config.instances, *{o.instance for o in market.offered}])
        found, what = [o for o in market.offered if o.gpu.key == gpu.key], gpu.name
    if not found:
        raise InputError(f"{what} is not offered in {market.where}", hint=ELSEWHERE)
    return found


def _dated(market: Market) -> str:
    dates = sorted({o.as_of for o in market.offered})
    span = dates[0].isoformat() if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    what = "instances paid whole" if market.whole else "GPUs paid by their share of the instance"
    return f"market list prices of {span} in {market.where}: the cheapest zone of each instance type; {what}"
