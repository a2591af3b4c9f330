"""How do the options of `plan migrate` become plans: of a form, of a configuration, or of a recorded fleet?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.catalog.prices import find_offers
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cli.screen import Stages
from gpuledger.cost.pricing import load_own
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.guide.asking import Form, Market, form_of, plan_configured, plan_market
from gpuledger.plan.guide.config import Config, load_config
from gpuledger.plan.guide.placed_job import Job
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.sets import MigrationSet, plan_set, together, workload_named
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.plan.market import market_options
from gpuledger.units import count

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window
    from gpuledger.plan.move.statement import LakePlan
    from gpuledger.plan.move.target import TargetPlan

Given = Mapping[str, Any]  # options by name; None: not given
ANY = "any"
LAKE = Path("gpuledger-data")  # where the user's own rates are by default
HOME_REGION = {"aws": "us-east-1"}
REFERENCE = "reference"
# Options that fill in a field of the form of the same name.
FILLS = ("gpus", "workload", "model", "size", "monthly_h", "spot", "precision", "priority", "use_case", "method")
# Options of the form that may be given along with --lake.
SHARED = ("clouds", "regions", "instance")


def answer(given: Given, today: dt.date) -> MigrationSet:
    """The plan or plans asked for."""
    if (busy := given["busy_pct"]) is not None and not 0 <= busy <= 100:
        raise InputError(f"--busy {busy:g} is not allowed", hint="allowed: a percentage from 0 to 100")
    found = _found(given, today)
    _check_used(given, [plan.job for plan in found.plans])
    return found


def _found(given: Given, today: dt.date) -> MigrationSet:
    config = load_config(None if given["config"] in {None, REFERENCE} else Path(given["config"]))
    make, named = _planner(given, config, today), given["instance"] or given["gpu"]
    if (set_name := given["set_name"]) is not None:
        if given["workload_id"] is not None or named:
            raise InputError("--set names its own setups", hint="leave --workload-id, --instance and --gpu out")
        return plan_set(config, set_name, lambda id_: make(form_of(config.workloads[id_], **_changes(given)), id_))
    if given["workload_id"] is None:
        return together([make(_filled_in(given), "")])
    id_ = workload_named(config, given["workload_id"])
    if named:
        raise InputError("--workload-id names its own instance", hint="leave --instance and --gpu out")
    return together([make(form_of(config.workloads[id_], **_changes(given)), id_)], id_)


def _check_used(given: Given, jobs: list[Job]) -> None:
    """An option that changes none of the jobs would be ignored silently."""
    kinds, method, busy = (
        ", ".join(sorted({j.use_case.replace("_", " ") for j in jobs})),
        given["method"],
        given["busy_pct"],
    )
    if method is not None and not any(job.workload is WorkloadType.FINE_TUNING for job in jobs):
        problem = f"--method {method} is for fine-tuning, and this is {kinds}"
        raise InputError(problem, hint="leave --method out, or ask with --workload fine-tuning")
    if busy is not None and not any(job.serves for job in jobs):
        problem = f"--busy {busy:g} is for a server, and this is {kinds}: its amount of work stays"
        raise InputError(problem, hint="leave --busy out, or ask with --workload inference")


def _planner(given: Given, config: Config, today: dt.date) -> Callable[[Form, str], MigrationPlan]:
    if given["config"] is not None:
        if given["clouds"] or given["regions"] or given["whole"]:
            hint = "leave --cloud, --region and --whole out, or --config"
            raise InputError("--config brings its own prices", hint=hint)
        return lambda form, id_: plan_configured(config, form, id_)
    own = load_own(LAKE)
    known = {offer.cloud.casefold() for offer in (*load_offers(), *own)}
    clouds = tuple(c.casefold() for c in given["clouds"]) or ("aws",)
    for cloud in clouds:
        if cloud not in {ANY, *known}:
            raise UnknownName("cloud", cloud, known)
    home = {HOME_REGION[c] for c in clouds if c in HOME_REGION} if set(clouds) <= set(HOME_REGION) else ()
    regions = given["regions"] or tuple(home)
    regions = () if ANY in regions else regions
    where = f"{', '.join(clouds)} {', '.join(regions) or 'in every region'}"
    if ANY in clouds:
        clouds, where = (), f"every cloud {', '.join(regions) or 'and region'}"
    market = Market(market_options(clouds=clouds, regions=regions, own=own), where, today, given["whole"])
    return lambda form, id_: plan_market(config, form, market, id_)


def _changes(given: Given) -> dict[str, Any]:
    """What the command line gives of a setup."""
    busy = {} if given["busy_pct"] is None else {"busy_ratio": given["busy_pct"] / 100}
    return {name: given[name] for name in FILLS if given[name] is not None} | busy


def _filled_in(given: Given) -> Form:
    instance, gpu, model, size = (given[name] for name in ("instance", "gpu", "model", "size"))
    if instance and gpu:
        raise InputError("--instance and --gpu both say what runs now", hint="give one of them")
    both = {"--instance or --gpu": instance or gpu, "--workload": given["workload"]}
    needed = both | {"--model or --model-size": model or size}
    if missing := [option for option, value in needed.items() if not value]:
        hint = "or name a workload of the configuration: --workload-id inference_small_p5, --set basic_demos"
        raise InputError(f"not given: {', '.join(missing)}", hint=hint)
    if model and size:
        raise InputError("--model and --model-size both name the model", hint="give one of them")
    return Form(instance=instance or gpu, **{"gpus": 1} | _changes(given))


def report_what_fits_nowhere(found: MigrationSet) -> int:
    """The exit code: 2 where a model fits on no option, reported on stderr with what would help."""
    lost = [plan for plan in found.plans if plan.chosen is None]
    for plan in lost:
        first = next((r for r in plan.refused if r.remedies), None)
        why = f": {first.why}" if first else ""
        hint = first.remedies[0] if first else "look at more regions or instances"
        tell(f"{plan.job.model.name} runs on none of {count(len(plan.refused), 'option')}{why}", hint)
    return BAD_INPUT if lost else 0


def answer_of_lake(
    lake_dir: Path,
    inventory: tuple[Path, ...],
    prices: tuple[str, ...],
    to: str | None,
    chosen: Window,
    given: Given,
    stages: Stages,
) -> LakePlan | TargetPlan:
    """The plan of a recorded fleet."""
    from gpuledger.advice.asking import paying
    from gpuledger.catalog.gpus import get_gpu
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.price_options import price_of
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.read.window import scope_of
    from gpuledger.plan.move.build import migrate_from_lake
    from gpuledger.plan.move.target import migrate_to
    from gpuledger.times import today

    _no_form(given)
    if to is not None:
        get_gpu(to)  # an unknown name fails before anything runs
    terms = paying(lake_dir, price=price_of(prices), instance=given["instance"], inventory=inventory)
    clouds, regions = _places(given["clouds"], "cloud"), _places(given["regions"], "region")
    lake = Lake(lake_dir)
    stages.post(lake, load_thresholds())
    tick = stages.start("planning")
    scope, anywhere = scope_of(lake, **chosen), ANY in given["clouds"]
    place: dict[str, Any] = {"today": today(), "clouds": clouds, "regions": regions, "anywhere": anywhere}
    found: LakePlan | TargetPlan = (
        migrate_from_lake(lake, scope, **place, **terms)
        if to is None
        else migrate_to(lake, scope, to, **place, **terms)
    )
    tick(1)
    return found


def _no_form(given: Given) -> None:
    # False by identity: a 0 is given.
    heard = {name: v for name, v in given.items() if not (v is None or v is False or v == ())}
    if said := [name for name in heard if name not in SHARED]:
        spelled = {one.name: one.opts[0] for one in click.get_current_context().command.params}
        raise InputError(
            f"--lake knows what runs; it needs no {spelled[said[0]]}",
            hint="leave the form's options out: only --cloud, --region, --instance, --full and --out go with --lake",
        )


def _places(names: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The clouds or regions to look in, each with an offer; `any` is all of them."""
    for name in () if ANY in names else names:
        find_offers(**{kind: name})
    return () if ANY in names else names
