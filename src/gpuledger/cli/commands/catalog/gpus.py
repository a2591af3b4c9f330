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
    from gpuledger.cli.views.gpu_facts import as_data, gpu_list

    gpus = list(load_gpus().values())
    screen.answer({"gpus": [as_data(g) for g in gpus]})
    if screen.talks:
        screen.show(gpu_list(gpus))
        screen.say("", "next: gpuledger catalog gpu NAME shows every figure with its source")
