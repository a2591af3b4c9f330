"""What is set, and where does each value come from?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("show")
@click.argument("folder", type=PATH, required=False)
@screen_options
def command(screen: Screen, folder: Path | None) -> None:
    """Show every setting in force and the file it comes from.

    With FOLDER, shows that migration planner configuration: instances, sizes, priorities, workloads and sets. FOLDER
    may be the word reference, for the built-in one.
    """
    from gpuledger.cli.showing import give

    if folder is None:
        from gpuledger.cli.settings_values import settings_document, settings_in_force

        give(settings_document(settings_in_force()), screen)
        return
    from gpuledger.plan.guide.config import load_config
    from gpuledger.report.documents.configuration import configuration_document

    config = load_config(None if folder == Path("reference") and not folder.is_dir() else folder)
    give(configuration_document(config), screen)
