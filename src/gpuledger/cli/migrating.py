"""How do the options of `plan migrate` become plans: of a form, of a configuration, or of a recorded fleet?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.catalog.prices import find_offers
from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cli.screen import Stages
from gpuledger.errors import InputError
from gpuledger.plan.guide.question import ANY
from gpuledger.plan.guide.question import answer as asked_for
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.units import count

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window
    from gpuledger.plan.move.statement import LakePlan
    from gpuledger.plan.move.target import TargetPlan

Given = Mapping[str, Any]  # options by name; None: not given
# Options of the form that may be given along with --lake.
SHARED = ("clouds", "regions", "instance")


def answer(given: Given, today: dt.date) -> MigrationSet:
    """The plan or plans asked for; errors name the options of the command."""
    options = {str(one.name): one.opts[0] for one in click.get_current_context().command.params}
    return asked_for(given, lambda name: options.get(name, name), today)


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
