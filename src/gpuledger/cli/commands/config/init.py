"""How does a user begin a settings file or a migration planner configuration of their own?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("init")
@click.argument("folder", type=PATH, required=False)
@click.option("--scripts", is_flag=True, help="Use the GPU Fleet Optimizer layout: config/ and two scripts.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@screen_options
def command(screen: Screen, folder: Path | None, scripts: bool, force: bool) -> None:
    """Write a gpuledger.toml to edit, or planner files to FOLDER.

    Without FOLDER, writes gpuledger.toml to the working folder: every setting at its built-in value, commented out.
    With FOLDER, writes the three JSON files of the migration planner's reference. Edit them, then run gpuledger config
    check FOLDER and gpuledger plan migrate --config FOLDER.
    """
    if folder is None:
        file = _settings_file(force=force, scripts=scripts)
        screen.answer({"files": [str(file)]})
        screen.say(str(file), "next: edit it, then gpuledger config show")
        return
    from gpuledger.plan.guide.config import init_config

    files = [str(path) for path in init_config(folder, scripts=scripts, force=force)]
    screen.answer({"files": files})
    screen.say(*files, f"next: edit them, then gpuledger config check {folder / 'config' if scripts else folder}")


def _settings_file(*, force: bool, scripts: bool) -> Path:
    from gpuledger.cli.settings_values import template
    from gpuledger.errors import FileFault, InputError, map_os_error
    from gpuledger.settings import FILE

    if scripts:
        raise InputError("--scripts needs a folder", hint="gpuledger config init --scripts FOLDER")
    file = Path(FILE)
    if file.exists() and not force:
        raise FileFault(file, "it is there already", hint="edit it, or add --force to replace it")
    try:
        file.write_text(template(), encoding="utf-8")
    except OSError as error:
        raise map_os_error(error, file, "write the settings") from error
    return file
