"""Which setups are asked about, and among which offers? From parameters by name, of Python or a command, to plans."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpuledger.arguments import refuse_unknown
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.cost.pricing import load_own
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.guide.asking import Form, Market, form_of, plan_configured, plan_market
from gpuledger.plan.guide.config import Config, load_config
from gpuledger.plan.guide.placed_job import Job
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.sets import MigrationSet, plan_set, tagged, together, workload_named
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.plan.market import market_options
from gpuledger.times import today as this_day

ANY, REFERENCE = "any", "reference"
LAKE = Path("gpuledger-data")  # where the user's own rates are by default
HOME_REGION = {"aws": "us-east-1"}
# Parameters that fill in a field of the form of the same name.
FILLS = (
    "gpus", "keep_gpus", "workload", "model", "size", "monthly_h", "spot", "precision", "priority", "use_case",
    "method",
)  # fmt: skip
PARAMETERS = (
    *FILLS, "instance", "gpu", "busy_pct", "config", "workload_id", "set_name", "tags", "clouds", "regions", "whole",
)  # fmt: skip
MANY = ("tags", "clouds", "regions")


class Question:
    """What was asked. `spelled`: how whoever asks writes a parameter, for errors."""

    def __init__(self, given: Mapping[str, Any], spelled: Callable[[str], str] = str) -> None:
        refuse_unknown("plan.migrate", given, PARAMETERS)
        self._given, self.spelled = given, spelled

    def __getitem__(self, name: str) -> Any:
        """The value, None where it was not given; several values come as a tuple."""
        value = self._given.get(name)
        if name in MANY:
            return (value,) if isinstance(value, str) else tuple(value or ())
        return value

    def words(self, *names: str) -> str:
        """The parameters as whoever asks writes them."""
        return " and ".join(self.spelled(name) for name in names)


def answer(given: Mapping[str, Any], spelled: Callable[[str], str] = str, today: dt.date | None = None) -> MigrationSet:
    """The plan or plans asked for."""
    asked = Question(given, spelled)
    if (busy := asked["busy_pct"]) is not None and not 0 <= busy <= 100:
        raise InputError(
            f"{asked.words('busy_pct')} {busy:g} is not allowed", hint="allowed: a percentage from 0 to 100"
        )
    found = _found(asked, today or this_day())
    _check_used(asked, [plan.job for plan in found.plans])
    return found


def _found(asked: Question, today: dt.date) -> MigrationSet:
    config = load_config(None if asked["config"] in {None, REFERENCE} else Path(asked["config"]))
    make, named = _planner(asked, config, today), asked["instance"] or asked["gpu"]
    ways = [name for name in ("set_name", "workload_id", "tags") if asked[name]]
    if len(ways) > 1:
        raise InputError(f"{asked.words(*ways[:2])} both name workloads", hint="give one of them")
    if ways and named:
        hint = f"leave {asked.words('instance', 'gpu')} out"
        what = "its own instance" if ways == ["workload_id"] else "its own setups"
        raise InputError(f"{asked.words(ways[0])} names {what}", hint=hint)

    def planned(id_: str) -> MigrationPlan:
        return make(form_of(config.workloads[id_], **_changes(asked)), id_)

    if asked["set_name"] is not None:
        return plan_set(config, asked["set_name"], planned)
    if tags := asked["tags"]:
        found = [planned(id_) for id_ in tagged(config, tags)]
        return together(found, f"tagged {', '.join(tags)}")
    if (id_ := asked["workload_id"]) is not None:
        return together([planned(workload_named(config, id_))], id_)
    return together([make(_filled_in(asked), "")])


def _check_used(asked: Question, jobs: list[Job]) -> None:
    """A parameter that changes none of the jobs would be ignored silently."""
    kinds, method, busy = (
        ", ".join(sorted({j.use_case.replace("_", " ") for j in jobs})),
        asked["method"],
        asked["busy_pct"],
    )
    if method is not None and not any(job.workload is WorkloadType.FINE_TUNING for job in jobs):
        problem = f"{asked.words('method')} {method} is for fine-tuning, and this is {kinds}"
        hint = f"leave {asked.words('method')} out, or ask with {asked.words('workload')} fine-tuning"
        raise InputError(problem, hint=hint)
    if busy is not None and not any(job.serves for job in jobs):
        problem = f"{asked.words('busy_pct')} {busy:g} is for a server, and this is {kinds}: its amount of work stays"
        hint = f"leave {asked.words('busy_pct')} out, or ask with {asked.words('workload')} inference"
        raise InputError(problem, hint=hint)


def _planner(asked: Question, config: Config, today: dt.date) -> Callable[[Form, str], MigrationPlan]:
    if asked["config"] is not None:
        if asked["clouds"] or asked["regions"] or asked["whole"]:
            hint = f"leave {asked.words('clouds', 'regions', 'whole')} out, or {asked.words('config')}"
            raise InputError(f"{asked.words('config')} brings its own prices", hint=hint)
        return lambda form, id_: plan_configured(config, form, id_)
    own = load_own(LAKE)
    known = {offer.cloud.casefold() for offer in (*load_offers(), *own)}
    clouds = tuple(c.casefold() for c in asked["clouds"]) or ("aws",)
    for cloud in clouds:
        if cloud not in {ANY, *known}:
            raise UnknownName("cloud", cloud, known)
    home = {HOME_REGION[c] for c in clouds if c in HOME_REGION} if set(clouds) <= set(HOME_REGION) else ()
    regions = asked["regions"] or tuple(home)
    regions = () if ANY in regions else regions
    where = f"{', '.join(clouds)} {', '.join(regions) or 'in every region'}"
    if ANY in clouds:
        clouds, where = (), f"every cloud {', '.join(regions) or 'and region'}"
    market = Market(market_options(clouds=clouds, regions=regions, own=own), where, today, bool(asked["whole"]))
    return lambda form, id_: plan_market(config, form, market, id_)


def _changes(asked: Question) -> dict[str, Any]:
    """What was given of a setup."""
    busy = {} if asked["busy_pct"] is None else {"busy_ratio": asked["busy_pct"] / 100}
    return {name: asked[name] for name in FILLS if asked[name] is not None} | busy


def _filled_in(asked: Question) -> Form:
    instance, gpu, model, size = (asked[name] for name in ("instance", "gpu", "model", "size"))
    if instance and gpu:
        raise InputError(f"{asked.words('instance', 'gpu')} both say what runs now", hint="give one of them")
    needed = {("instance", "gpu"): instance or gpu, ("workload",): asked["workload"], ("model", "size"): model or size}
    if missing := [" or ".join(map(asked.spelled, names)) for names, value in needed.items() if not value]:
        examples = f"{asked.words('workload_id')} inference_small_p5, {asked.words('set_name')} basic_demos"
        hint = f"or name a workload of the configuration: {examples}"
        raise InputError(f"not given: {', '.join(missing)}", hint=hint)
    if model and size:
        raise InputError(f"{asked.words('model', 'size')} both name the model", hint="give one of them")
    return Form(instance=instance or gpu, **{"gpus": 1} | _changes(asked))
