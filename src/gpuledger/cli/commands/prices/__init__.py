"""What does a GPU cost, where, and since when is that known?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gpuledger.cli.app import CommandFolder
from gpuledger.cli.options import lake_option, screen_options
from gpuledger.cli.price_options import price_filters, wanted_of
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

SHOWN = 20


@click.command("prices")
@price_filters
@click.option(
    "--sort", "order", type=click.Choice(["gpu", "instance", "tflops", "gb"]), default="gpu", show_default=True,
    help="Lowest first: dollars per GPU-hour, per instance-hour, per dense bf16 TFLOPS or per GB of memory.",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(["instance", "region", "zone"]), default="instance", show_default=True,
    help="One row per instance type (at its cheapest location), per region or per zone.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(0), default=SHOWN, show_default=True, help="Rows to show; 0 for all.")
@lake_option
@screen_options
def _look_up(screen: Screen, filters: dict[str, Any], order: Any, by: Any, limit: int, lake_dir: Path) -> None:
    context = click.get_current_context()
    if context.invoked_subcommand:
        given = [p for p in context.params if context.get_parameter_source(p) is ParameterSource.COMMANDLINE]
        if given:
            sub = context.invoked_subcommand
            raise InputError(
                f"options before {sub!r} are not its own", hint=f"write them behind: gpuledger prices {sub}"
            )
        return
    from gpuledger.catalog.prices.rows import price_rows
    from gpuledger.cli.showing import give
    from gpuledger.cost.pricing import load_own
    from gpuledger.report.documents.prices import prices_document
    from gpuledger.times import today

    found = price_rows(wanted_of(**filters), today(), own=load_own(lake_dir), order=order, by=by)
    give(prices_document(found, order, limit or None), screen)
    if not found.rows:
        screen.say(f"next: leave {'--purchase' if found.none_why else 'a filter'} out")
    elif 0 < limit < len(found.rows):
        screen.say("all rows: add --limit 0")


command = CommandFolder(
    __name__,
    name="prices",
    help="Look up GPU prices by cloud and region, with their age.",
    invoke_without_command=True,
    callback=_look_up.callback,
    params=_look_up.params,
)
