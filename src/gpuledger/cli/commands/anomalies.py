"""Which GPUs do worse than their own past, or than peers on the same work?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.asking import answer, out_option
from gpuledger.cli.options import full_option, lake_option, screen_options, statement_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.read.window import Window


@click.command("anomalies")
@lake_option
@statement_options
@click.option(
    "--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeat for each GPU."
)
@click.option("--instance", metavar="NAME", help="Price the GPUs as in this instance type, such as p5.48xlarge.")
@click.option("--region", metavar="NAME", help="Region of --instance, such as us-east-1.")
@out_option
@full_option
@screen_options
def command(
    screen: Screen, chosen: Window, lake_dir: Path, out: Path | None, full: bool, **paid: Any
) -> None:  # fmt: skip
    """Name degrading GPUs: what is wrong, since when, what it costs.

    Each GPU is compared with GPUs of its model on the same work in the same hour, and with its own past. Of the
    differences believed at most 1 in 500 is chance; one too small to matter is not listed. A GPU with neither peers nor
    enough past cannot be judged, and is listed as such with --full.
    """
    from gpuledger.anomalies.build import anomaly_statement
    from gpuledger.ledger.read.window import scope_of

    def made(lake: Lake, asked: Asked) -> object:
        kept = ("price", "instance", "region", "own")
        terms: Any = {name: value for name, value in asked.terms.items() if name in kept}
        return anomaly_statement(lake, scope_of(lake, **chosen), **terms)

    answer(screen, lake_dir, paid, out, full, made)
