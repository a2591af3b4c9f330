"""How do the logs of MLPerf LoadGen become results that gpuledger scaling reads?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("import-loadgen")
@click.argument("folder", type=PATH)
@click.option("--out", type=PATH, required=True, help="Results file to write; an existing file is not overwritten.")
@click.option("--node", default="", metavar="NAME", help="Name of the node; default: LoadGen's system name.")
@click.option("--gpu", metavar="NAME", help="GPU name as the driver reports it; LoadGen does not record it.")
@click.option("--gpus", type=click.IntRange(1), help="Number of GPUs; default: 1 if --gpu is given.")
@screen_options
def command(screen: Screen, folder: Path, out: Path, node: str, gpu: str | None, gpus: int | None) -> None:
    """Convert MLPerf LoadGen logs to benchmark results.

    FOLDER holds mlperf_log_detail.txt, mlperf_log_summary.txt and mlperf_log_trace.json. Only the trace has the time of
    each sample; LoadGen writes it if enable_trace is set.
    """
    from gpuledger.bench.loadgen import read_loadgen, write_loadgen
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.bench import loadgen_document

    with screen.stages() as stages:
        tick = stages.start("reading the trace")
        log = read_loadgen(folder, node=node, gpu=gpu, gpus=gpus)
        tick(len(log.requests))
        path = write_loadgen(log, out)
    document = loadgen_document(log, str(path))
    give(document, screen)
    screen.say(f"next: gpuledger scaling {path}")
