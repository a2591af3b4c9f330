"""How do the options of a command line become migration plans?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpuledger.catalog.prices.offers import load_offers
from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cost.pricing import load_own
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.guide.asking import Market, plan_configured, plan_market
from gpuledger.plan.guide.config import Config, load_config
from gpuledger.plan.guide.form import Form, form_of
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.sets import MigrationSet, plan_set, together, workload_named
from gpuledger.plan.guide.statement import Job, MigrationPlan
from gpuledger.plan.offers import market_options
from gpuledger.units import count

ANY = "any"
LAKE = Path("gpuledger-data")  # where the user's own rates are by default
HOME_REGION = {"aws": "us-east-1"}
REFERENCE = "reference"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line gives; None: not given."""

    instance: str | None
    gpu: str | None
    gpus: int | None
    workload: str | None
    model: str | None
    size: str | None
    hours: float | None
    spot: bool | None
    precision: str | None
    priority: str | None
    use_case: str | None
    method: str | None
    busy_pct: float | None
    config: str | None
    workload_id: str | None
    set_name: str | None
    clouds: tuple[str, ...]
    regions: tuple[str, ...]
    whole: bool


def answer(asked: Asked, today: dt.date) -> MigrationSet:
    """The plan or plans asked for."""
    if asked.busy_pct is not None and not 0 <= asked.busy_pct <= 100:
        raise InputError(f"--busy {asked.busy_pct:g} is not allowed", hint="allowed: a percentage from 0 to 100")
    found = _found(asked, today)
    _check_used(asked, [plan.job for plan in found.plans])
    return found


def _found(asked: Asked, today: dt.date) -> MigrationSet:
    config = load_config(None if asked.config in {None, REFERENCE} else Path(asked.config or ""))
    make = _planner(asked, config, today)
    if asked.set_name is not None:
        if asked.workload_id is not None or asked.instance or asked.gpu:
            raise InputError("--set names its own setups", hint="leave --workload-id, --instance and --gpu out")
        return plan_set(config, asked.set_name, lambda id_: make(_of_workload(asked, config, id_), id_))
    if asked.workload_id is not None:
        id_ = workload_named(config, asked.workload_id)
        return together([make(_of_workload(asked, config, id_), id_)], id_)
    return together([make(_filled_in(asked), "")])


def _check_used(asked: Asked, jobs: list[Job]) -> None:
    """An option that changes none of the jobs would be ignored silently."""
    kinds = ", ".join(sorted({job.use_case.replace("_", " ") for job in jobs}))
    if asked.method is not None and not any(job.workload is WorkloadType.FINE_TUNING for job in jobs):
        problem = f"--method {asked.method} is for fine-tuning, and this is {kinds}"
        raise InputError(problem, hint="leave --method out, or ask with --workload fine-tuning")
    if asked.busy_pct is not None and not any(job.serves for job in jobs):
        problem = f"--busy {asked.busy_pct:g} is for a server, and this is {kinds}: its amount of work stays"
        raise InputError(problem, hint="leave --busy out, or ask with --workload inference")


def _planner(asked: Asked, config: Config, today: dt.date) -> Callable[[Form, str], MigrationPlan]:
    if asked.config is not None:
        if asked.clouds or asked.regions or asked.whole:
            raise InputError(
                "--config brings its own prices", hint="leave --cloud, --region and --whole out, or --config"
            )
        return lambda form, id_: plan_configured(config, form, id_)
    own = load_own(LAKE)
    known = {offer.cloud.casefold() for offer in (*load_offers(), *own)}
    clouds = tuple(c.casefold() for c in asked.clouds) or ("aws",)
    for cloud in clouds:
        if cloud not in {ANY, *known}:
            raise UnknownName("cloud", cloud, known)
    regions = asked.regions or tuple(
        {HOME_REGION[c] for c in clouds if c in HOME_REGION} if set(clouds) <= set(HOME_REGION) else ()
    )
    regions = () if ANY in regions else regions
    where = f"{', '.join(clouds)} {', '.join(regions) or 'in every region'}"
    if ANY in clouds:
        clouds, where = (), f"every cloud {', '.join(regions) or 'and region'}"
    market = Market(market_options(clouds=clouds, regions=regions, own=own), where, today, asked.whole)
    return lambda form, id_: plan_market(config, form, market, id_)


def _changes(asked: Asked) -> dict[str, object]:
    """What the command line gives of a setup."""
    same = ("gpus", "workload", "model", "size", "spot", "precision", "priority", "use_case", "method")
    said = {name: getattr(asked, name) for name in same} | {"monthly_h": asked.hours}
    said["busy_ratio"] = None if asked.busy_pct is None else asked.busy_pct / 100
    return {name: value for name, value in said.items() if value is not None}


def _of_workload(asked: Asked, config: Config, id_: str) -> Form:
    if asked.instance or asked.gpu:
        raise InputError("--workload-id names its own instance", hint="leave --instance and --gpu out")
    return form_of(config.workloads[id_], **_changes(asked))


def _filled_in(asked: Asked) -> Form:
    if asked.instance and asked.gpu:
        raise InputError("--instance and --gpu both say what runs now", hint="give one of them")
    missing = [
        o for o, v in (("--instance or --gpu", asked.instance or asked.gpu), ("--workload", asked.workload)) if not v
    ]
    if not asked.model and not asked.size:
        missing.append("--model or --model-size")
    if missing:
        hint = "or name a workload of the configuration: --workload-id inference_small_p5, --set basic_demos"
        raise InputError(f"not given: {', '.join(missing)}", hint=hint)
    if asked.model and asked.size:
        raise InputError("--model and --model-size both name the model", hint="give one of them")
    said = {"gpus": 1} | _changes(asked)
    return Form(instance=asked.instance or asked.gpu or "", **said)  # type: ignore[arg-type]


def report_what_fits_nowhere(found: MigrationSet) -> int:
    """The exit code: 2 where a model fits on no option, reported on stderr with what would help."""
    lost = [plan for plan in found.plans if plan.chosen is None]
    for plan in lost:
        first = next((r for r in plan.refused if r.remedies), None)
        why = f": {first.why}" if first else ""
        hint = first.remedies[0] if first else "look at more regions or instances"
        tell(f"{plan.job.model.name} runs on none of {count(len(plan.refused), 'option')}{why}", hint)
    return BAD_INPUT if lost else 0
