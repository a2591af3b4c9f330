"""How does a user begin a configuration of their own?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("init")
@click.argument("folder", type=PATH)
@click.option("--scripts", is_flag=True, help="Use the GPU Fleet Optimizer layout: config/ and two scripts.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@screen_options
def command(screen: Screen, folder: Path, scripts: bool, force: bool) -> None:
    """Write the three JSON files of the reference to FOLDER.

    Edit them, then run gpuledger config check FOLDER and gpuledger plan migrate --config FOLDER.
    """
    from gpuledger.plan.guide.config import init_config

    files = [str(path) for path in init_config(folder, scripts=scripts, force=force)]
    screen.answer({"files": files})
    screen.say(*files, f"next: edit them, then gpuledger config check {folder / 'config' if scripts else folder}")
