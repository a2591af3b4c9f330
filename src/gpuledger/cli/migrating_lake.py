"""How does `plan migrate --lake` become a plan from the ledger?"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import PATH, Chosen, Command, statement_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.plan.move.statement import LakePlan

ANY = "any"
# What a form asks and the ledger knows; these may be given beside --lake.
SHARED = ("clouds", "regions", "instance")
ONLY_LAKE = ("inventory", "prices")


def lake_mode(command: Command) -> Command:
    """With --lake the demand comes from the ledger and not from a form; without it the command is as before."""

    @click.option("--lake", "lake_dir", type=PATH, metavar="DIR", help="Plan from the recorded fleet in this lake.")
    @click.option("--inventory", type=PATH, help="With --lake: CSV of the GPUs you pay for, as for audit.")
    @click.option(
        "--price", "prices", multiple=True, metavar="[GPU=]USD", help="With --lake: dollars per GPU-hour paid now."
    )
    @statement_options
    @functools.wraps(command)
    def inner(
        *, screen: Screen, out: Path | None, lake_dir: Path | None, inventory: Path | None, prices: tuple[str, ...],
        chosen: Chosen, **given: Any,
    ) -> Any:  # fmt: skip
        if lake_dir is None:
            _needs_lake(inventory, prices, chosen)
            return command(screen=screen, out=out, **given)
        _no_form(given)
        return _answer(screen, out, lake_dir, inventory, prices, chosen, given)

    return inner


def _needs_lake(inventory: Path | None, prices: tuple[str, ...], chosen: Chosen) -> None:
    if inventory or prices or chosen != Chosen(None, None, None, (), (), ()):
        raise InputError(
            "--inventory, --price, the window and the filters are of a lake", hint="add --lake DIR, or leave them out"
        )


def _no_form(given: dict[str, Any]) -> None:
    # Told apart from False by identity: a 0 is said.
    heard = {name: v for name, v in given.items() if not (v is None or v is False or v == ())}
    said = [name for name in heard if name not in SHARED]
    if said:
        spelled = {one.name: one.opts[0] for one in click.get_current_context().command.params}
        raise InputError(
            f"--lake knows what runs; it needs no {spelled[said[0]]}",
            hint="leave the form's options out: only --cloud, --region, --instance and --out go with --lake",
        )


def _answer(
    screen: Screen,
    out: Path | None,
    lake_dir: Path,
    inventory: Path | None,
    prices: tuple[str, ...],
    chosen: Chosen,
    given: dict[str, Any],
) -> None:
    from gpuledger.cli.views.lake_plan import parts
    from gpuledger.plan.move.encode import lake_plan_json

    with screen.stages() as stages:
        plan = _plan(lake_dir, inventory, prices, chosen, given, stages)
    files = {}
    if out is not None:
        from gpuledger.report.write_lake_plan import write_lake_plan

        files = {name: str(path) for name, path in write_lake_plan(plan, out).items()}
    screen.answer({**lake_plan_json(plan), "files": files})
    if screen.talks:
        screen.show(*parts(plan, screen.console().width))
        where = files.get("migrate.html", "add --out DIR")
        screen.say("", f"what was measured, every refusal and every assumption are in the report: {where}")


def _plan(
    lake_dir: Path, inventory: Path | None, prices: tuple[str, ...], chosen: Chosen, given: dict[str, Any], stages: Any
) -> LakePlan:
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.analysis import post, since_ms
    from gpuledger.cli.auditing import price_of
    from gpuledger.cli.times import today
    from gpuledger.cost.inventory import read_inventory
    from gpuledger.cost.pricing import load_own
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.read.scope import Scope
    from gpuledger.plan.move.build import migrate_from_lake

    stock, price, own = read_inventory(inventory) if inventory else None, price_of(prices), load_own(lake_dir)
    clouds, regions = _places(given["clouds"], "cloud"), _places(given["regions"], "region")
    lake = Lake(lake_dir)
    post(lake, load_thresholds(), stages)
    tick = stages.start("planning")
    scope = Scope(since_ms(lake, chosen), chosen.until_ms, chosen.clusters, chosen.namespaces, chosen.owners)
    plan = migrate_from_lake(
        lake,
        scope,
        today=today(),
        inventory=stock,
        price=price,
        instance=given["instance"],
        own=own,
        clouds=clouds,
        regions=regions,
        anywhere=ANY in given["clouds"],
    )
    tick(1)
    return plan


def _places(names: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The clouds or regions to look in, each of them one that somebody offers; `any` is all of them."""
    if ANY in names:
        return ()
    from gpuledger.catalog.prices import find_offers

    for name in names:
        find_offers(**{kind: name})
    return names
