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
    from gpuledger.cli.views.models import as_data, model_list

    models = list(load_models().values())
    screen.answer({"models": [as_data(m) for m in models]})
    if screen.talks:
        screen.show(model_list(models, screen.console().width))
        screen.say("", "next: gpuledger train mfu --model NAME ..., or gpuledger plan fit --model NAME ...")
