"""Which models are in the catalog, and how large are they?"""

from __future__ import annotations

import click

from gpuledger.cli.options import screen_options
from gpuledger.cli.screen import Screen


@click.command("models")
@screen_options
def command(screen: Screen) -> None:
    """List every model with its parameters, source and date."""
    from gpuledger.catalog.models import load_models
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.catalog import models_document

    give(models_document(list(load_models().values())), screen)
    screen.say(
        "sources: add --json, or use a terminal of 110 columns",
        "next: gpuledger train mfu --model NAME ..., or gpuledger plan fit --model NAME ...",
    )
