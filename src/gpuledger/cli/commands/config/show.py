"""What does the configuration hold?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("show")
@click.argument("folder", type=PATH, required=False)
@screen_options
def command(screen: Screen, folder: Path | None) -> None:
    """Show instances, sizes, priorities, workloads and sets.

    FOLDER holds your own files. Without it, shows the built-in reference.
    """
    from gpuledger.cli.views.config import as_data, parts
    from gpuledger.plan.guide.config import load_config

    config = load_config(folder)
    screen.answer(as_data(config))
    if screen.talks:
        screen.show(*parts(config))
