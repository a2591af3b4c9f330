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
    from gpuledger.cli.views.training import as_data, by_run, parts
    from gpuledger.lake.counted import read_counted
    from gpuledger.lake.layout import Lake

    lake = Lake(lake_dir)
    runs = by_run(read_counted(lake))
    if not runs:
        hint = "put the meter round the loop: for batch in metered(loader, model, lake=DIR): see docs/training-meter.md"
        raise LakeError(f"{lake_dir}: no training job has been measured into this lake", hint=hint)
    if run_id is not None:
        if run_id not in runs:
            raise UnknownName("measured run", run_id, runs)
        runs = {run_id: runs[run_id]}
    screen.answer({"runs": [as_data(name, ranks) for name, ranks in runs.items()]})
    if screen.talks:
        for ranks in runs.values():
            screen.show(*parts(ranks), "")
        if lake.exists():
            screen.say(f"next: gpuledger audit --lake {lake_dir} puts these findings into dollars")
        else:
            screen.say(
                f"next: record the GPU beside the job (gpuledger record --lake {lake_dir}): then audit has dollars"
            )
