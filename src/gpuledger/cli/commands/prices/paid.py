"""What do we really pay per GPU-hour, compared with the list price?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, full_option, lake_option, screen_options
from gpuledger.cli.price_options import inventory_option
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.times import instant_ms


@click.command("paid")
@inventory_option
@lake_option
@click.option("--since", type=instant_ms, metavar="TIME", help="Start of the window; the first sample by default.")
@click.option("--until", type=instant_ms, metavar="TIME", help="End of the window (exclusive).")
@click.option(
    "--out",
    type=PATH,
    help="Folder for paid_prices.html, its Markdown and JSON versions, and the CSV; or FILE.csv, FILE.xlsx.",
)
@full_option
@screen_options
def command(
    screen: Screen,
    inventory: tuple[Path, ...],
    lake_dir: Path,
    since: int | None,
    until: int | None,
    out: Path | None,
    full: bool,
) -> None:
    """Compare what you pay by your bills with list prices.

    By GPU model, instance and region: the list price, the price paid per GPU-hour, the difference in percent and in
    dollars per month. The dollars of a machine are spread over the GPUs the lake has seen on it.
    """
    if not inventory:
        raise InputError("what you pay is unknown", hint="give the bill: gpuledger prices paid --inventory BILL.csv")
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.showing import give, write_files
    from gpuledger.cost.inventories.kinds import read_stock
    from gpuledger.cost.paid_prices import paid_prices
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents.inventory import paid_prices_document

    stock, lake = read_stock(inventory), Lake(lake_dir)
    with screen.stages() as stages:
        stages.post(lake, load_thresholds())
        document = paid_prices_document(paid_prices(lake, stock, since, until))
        files = write_files(document, out, screen, stages)
    give(document, screen, files, full=full)
