"""Which rates of the user's own are used before list prices?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import PATH, lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.catalog.prices.own_rates import Rate


@click.command("update")
@click.argument("file", type=PATH, required=False)
@click.option("--list", "show", is_flag=True, help="Show the stored rates.")
@click.option("--remove", is_flag=True, help="Delete all stored rates and use list prices again.")
@lake_option
@screen_options
def command(screen: Screen, file: Path | None, show: bool, remove: bool, lake_dir: Path) -> None:
    """Store your own or negotiated rates, used before list prices.

    FILE is CSV, TOML or JSON with cloud, instance, gpu, count, region, purchase, usd_per_h, price_scope (gpu or
    instance), as_of and note. It replaces all stored rates, or changes nothing if it is invalid.
    """
    if (file is not None) + show + remove != 1:
        raise InputError("update takes a FILE, --list or --remove", hint="give one of the three")
    from gpuledger.cli.showing import give
    from gpuledger.cost.pricing import drop_rates, load_rates, own_file
    from gpuledger.report.documents.prices import rates_document

    doubted: list[str] = []
    dropped = False
    if file is not None:
        doubted = _store(file, lake_dir)
    elif remove:
        dropped = drop_rates(lake_dir)
    rates, where = load_rates(lake_dir), own_file(lake_dir)
    document = rates_document(rates, doubted, str(where), dropped)
    if remove:
        screen.answer(document.data())
        screen.say(f"removed: {where}" if dropped else f"nothing to remove: {where} does not exist")
        return
    give(document, screen)
    if rates:
        screen.say(f"stored in {where}; audit, plan and prices use them first, as 'yours'")
    else:
        screen.say("next: gpuledger prices update FILE")


def _store(file: Path, lake_dir: Path) -> list[str]:
    """Check and store a file; what looks odd comes back."""
    from gpuledger.catalog.prices import market_price
    from gpuledger.catalog.prices.offers import facts
    from gpuledger.catalog.prices.own_rates import doubts, read_rates
    from gpuledger.cost.pricing import store_rates
    from gpuledger.times import today
    from gpuledger.units import Unknown

    rates: tuple[Rate, ...] = read_rates(file, today())
    found = {rate.gpu: market_price(rate.gpu) for rate in rates}
    medians = {gpu: m if isinstance(m, Unknown) else m.usd_per_gpu_h for gpu, m in found.items()}
    store_rates(lake_dir, rates, file.name)
    return doubts(rates, medians, facts().own_far_ratio)
