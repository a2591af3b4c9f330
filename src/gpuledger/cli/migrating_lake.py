"""How does `plan migrate --lake` become a plan from the ledger?"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import PATH, Command, statement_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window
    from gpuledger.plan.move.statement import LakePlan
    from gpuledger.plan.move.target import TargetPlan

ANY = "any"
# Options of the form that may be given along with --lake.
SHARED = ("clouds", "regions", "instance")


def lake_mode(command: Command) -> Command:
    """With --lake the demand comes from the ledger and not from a form; without it the command is as before."""

    @click.option("--lake", "lake_dir", type=PATH, metavar="DIR", help="Plan from the recorded fleet in this lake.")
    @click.option(
        "--inventory", type=PATH, multiple=True, metavar="FILE", help="With --lake: what you pay for, as for audit."
    )
    @click.option(
        "--price", "prices", multiple=True, metavar="[GPU=]USD", help="With --lake: dollars per GPU-hour paid now."
    )
    @click.option("--to", metavar="GPU", help="With --lake: the cost of the same work on this GPU, such as h200-sxm.")
    @statement_options
    @functools.wraps(command)
    def inner(
        *, screen: Screen, out: Path | None, full: bool, lake_dir: Path | None, inventory: tuple[Path, ...],
        prices: tuple[str, ...], to: str | None, chosen: Window, **given: Any,
    ) -> Any:  # fmt: skip
        if lake_dir is None:
            _needs_lake(inventory, prices, to, chosen)
            return command(screen=screen, out=out, full=full, **given)
        _no_form(given)
        from gpuledger.cli.showing import give, write_files
        from gpuledger.report.documents import document_of

        with screen.stages() as stages:
            document = document_of(_plan(lake_dir, inventory, prices, to, chosen, given, stages))
            files = write_files(document, out, screen, stages)
        return give(document, screen, files, full=full)

    return inner


def _needs_lake(inventory: tuple[Path, ...], prices: tuple[str, ...], to: str | None, chosen: Window) -> None:
    if inventory or prices or to or chosen:
        words = "--inventory, --price, --to, the window and the filters need a lake"
        raise InputError(words, hint="add --lake DIR, or leave them out")


def _no_form(given: dict[str, Any]) -> None:
    # False by identity: a 0 is given.
    heard = {name: v for name, v in given.items() if not (v is None or v is False or v == ())}
    said = [name for name in heard if name not in SHARED]
    if said:
        spelled = {one.name: one.opts[0] for one in click.get_current_context().command.params}
        raise InputError(
            f"--lake knows what runs; it needs no {spelled[said[0]]}",
            hint="leave the form's options out: only --cloud, --region, --instance, --full and --out go with --lake",
        )


def _plan(
    lake_dir: Path,
    inventory: tuple[Path, ...],
    prices: tuple[str, ...],
    to: str | None,
    chosen: Window,
    given: dict[str, Any],
    stages: Any,
) -> LakePlan | TargetPlan:
    from gpuledger.advice.asking import paying
    from gpuledger.catalog.gpus import get_gpu
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.analysis import post
    from gpuledger.cli.price_options import price_of
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.read.window import scope_of
    from gpuledger.plan.move.build import migrate_from_lake
    from gpuledger.plan.move.target import migrate_to
    from gpuledger.times import today

    if to is not None:
        get_gpu(to)  # an unknown name fails before anything runs
    terms = paying(lake_dir, price=price_of(prices), instance=given["instance"], inventory=inventory)
    clouds, regions = _places(given["clouds"], "cloud"), _places(given["regions"], "region")
    lake = Lake(lake_dir)
    post(lake, load_thresholds(), stages)
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


def _places(names: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The clouds or regions to look in, each with an offer; `any` is all of them."""
    if ANY in names:
        return ()
    from gpuledger.catalog.prices import find_offers

    for name in names:
        find_offers(**{kind: name})
    return names
