"""How many tokens per second will this give, and between which bounds?"""

from __future__ import annotations

from typing import Any

import click

from gpuledger.cli.options import screen_options
from gpuledger.cli.planning import run_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError


@click.command("throughput")
@run_options
@click.option("--micro-batches", type=int, help="Micro-batches per step and model copy.  [default: 8, or 4 per stage]")
@click.option("--node-gbps", type=float, help="Network between nodes, in Gb/s per GPU and direction.  [default: 400]")
@screen_options
def command(screen: Screen, asked: Any, micro_batches: int | None, node_gbps: float | None) -> None:
    """Estimate tokens per second, as a range.

    A roofline model from the catalog's peaks and bandwidths, with measured losses. The range comes from models that
    were not used for calibration. Training: tokens (images) per second. Serving: prefill, and decode by batch size.
    """
    from gpuledger.cli.showing import give
    from gpuledger.plan.speed.throughput import throughput
    from gpuledger.report.documents.throughput import throughput_document

    if micro_batches is not None and micro_batches < 1:
        raise InputError(f"--micro-batches {micro_batches} is below 1", hint="give a whole number from 1 up")
    if node_gbps is not None and not node_gbps > 0:
        raise InputError(f"--node-gbps {node_gbps:g} is not above 0", hint="give the speed of the network, such as 400")
    answer = throughput(*asked, micro_batches=micro_batches, node_gbps=node_gbps)
    give(throughput_document(answer), screen)
