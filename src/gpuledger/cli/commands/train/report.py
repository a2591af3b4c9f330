"""What did the meters of training jobs measure and store?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import LakeError, UnknownName


@click.command("report")
@lake_option
@click.option("--run", "run_id", metavar="RUN", help="Only this run; default: all measured runs.")
@screen_options
def command(screen: Screen, lake_dir: Path, run_id: str | None) -> None:
    """Show what the training meter measured.

    Shows where each step's time went, model FLOPs utilization (MFU), tokens, dollars, joules, the slowest rank and what
    to change. Works without PyTorch: the meter stores one report per rank in the lake.
    """
    from gpuledger.cli.showing import give
    from gpuledger.lake.counted import read_counted
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents.training import by_run, training_document

    lake = Lake(lake_dir)
    counted = read_counted(lake)
    runs = by_run(counted)
    if not runs:
        hint = "wrap the loop in the meter: for batch in metered(loader, model, lake=DIR): see docs/training-meter.md"
        raise LakeError(f"{lake_dir}: no training job has been measured into this lake", hint=hint)
    if run_id is not None and run_id not in runs:
        raise UnknownName("measured run", run_id, runs)
    document = training_document(counted, run_id)
    give(document, screen)
    if lake.exists():
        screen.say(f"next: gpuledger audit --lake {lake_dir} puts these findings into dollars")
    else:
        screen.say(f"next: record the GPU during the job (gpuledger record --lake {lake_dir}), then audit in dollars")
