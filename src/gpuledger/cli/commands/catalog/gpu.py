"""What is known about one GPU, and from which source?"""

from __future__ import annotations

import click

from gpuledger.cli.options import screen_options
from gpuledger.cli.screen import Screen


@click.command("gpu")
@click.argument("name")
@screen_options
def command(screen: Screen, name: str) -> None:
    """Show every figure of one GPU with its source and date.

    NAME is the catalog key, the name, or exactly what the driver reports, such as "NVIDIA H100 80GB HBM3".
    """
    from gpuledger.catalog.gpus import get_gpu
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.catalog import gpu_document

    give(gpu_document(get_gpu(name)), screen)
