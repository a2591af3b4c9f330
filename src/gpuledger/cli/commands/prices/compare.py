"""How far apart are the clouds, and what does spot save?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gpuledger.cli.options import lake_option, screen_options
from gpuledger.cli.price_options import price_filters, wanted_of
from gpuledger.cli.screen import Screen


@click.command("compare")
@price_filters
@lake_option
@screen_options
def command(screen: Screen, filters: dict[str, Any], lake_dir: Path) -> None:
    """Compare prices across clouds, and spot with on-demand.

    For one GPU: the cheapest price of each cloud, the spread, and what spot saves. Without --gpu: one row per catalog
    GPU.
    """
    from gpuledger.catalog.prices.spread import compare_prices
    from gpuledger.cli.showing import give
    from gpuledger.cost.pricing import load_own
    from gpuledger.report.documents.prices import comparison_document
    from gpuledger.times import today

    found = compare_prices(wanted_of(**filters), today(), own=load_own(lake_dir))
    give(comparison_document(found), screen)
    if not found.gpus:
        screen.say("next: leave a filter out")
