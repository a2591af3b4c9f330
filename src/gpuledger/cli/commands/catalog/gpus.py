"""Which GPUs are in the catalog?"""

from __future__ import annotations

import click

from gpuledger.cli.options import screen_options
from gpuledger.cli.screen import Screen


@click.command("gpus")
@screen_options
def command(screen: Screen) -> None:
    """List every GPU with its dense peak, power and memory."""
    from gpuledger.catalog.gpus import load_gpus
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.catalog import gpus_document

    give(gpus_document(list(load_gpus().values())), screen)
    screen.say("next: gpuledger catalog gpu NAME shows every figure with its source")
