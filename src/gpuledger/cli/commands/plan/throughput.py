"""How many tokens a second will this give, and between which bounds?"""

from __future__ import annotations

import click

from gpuledger.cli.options import screen_options
from gpuledger.cli.planning import Asked, run_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError


@click.command("throughput")
@run_options
@click.option("--micro-batches", type=int, help="Of a training step in each copy.  [default: 8, or 4 a stage]")
@click.option("--node-gbps", type=float, help="Gb/s a GPU between nodes, one direction.  [default: 400]")
@screen_options
def command(screen: Screen, asked: Asked, micro_batches: int | None, node_gbps: float | None) -> None:
    """Say how many tokens a second to expect, as a range.

    A roofline of the catalog's peaks and bandwidths with measured losses; the range is that of models which calibrated
    nothing. Training: tokens (images) a second. Serving: prompts read, and tokens written by batch.
    """
    from gpuledger.cli.views.throughput import page
    from gpuledger.plan.fit.encode import plain
    from gpuledger.plan.speed.throughput import throughput

    if micro_batches is not None and micro_batches < 1:
        raise InputError(f"--micro-batches {micro_batches} is below 1", hint="give a whole number from 1 up")
    if node_gbps is not None and not node_gbps > 0:
        raise InputError(f"--node-gbps {node_gbps:g} is not above 0", hint="give the speed of the network, such as 400")
    answer = throughput(asked.model, asked.gpu, asked.setup, micro_batches=micro_batches, node_gbps=node_gbps)
    screen.answer(plain(answer))
    if screen.talks:
        screen.show(*page(answer))
