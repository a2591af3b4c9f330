"""How does config_viewer show a migration planner configuration?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gpuledger.cli.failures import explain
from gpuledger.cli.terminal import as_text
from gpuledger.errors import GpuledgerError
from gpuledger.plan.guide.config import load_config
from gpuledger.report.documents.configuration import configuration_document
from gpuledger.report.render.terminal import screen

WIDTH = 100


class Configured:
    """A configuration: the three JSON files of a folder, or the shipped reference."""

    default_config_dir: Path | None = None  # the shipped reference

    def __init__(self, config_dir: str | Path | None = None) -> None:
        self.config = load_config(self.default_config_dir if config_dir is None else config_dir)


class ConfigViewer(Configured):
    """The configuration of a folder, or the shipped reference, as text."""

    def __str__(self) -> str:
        return as_text(screen(configuration_document(self.config), WIDTH), WIDTH)


def main(kind: type[ConfigViewer] = ConfigViewer, arguments: Sequence[str] | None = None) -> int:
    """Print the configuration of the folder named, or the default one."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return explained(lambda: sys.stdout.write(str(kind(given[0] if given else None))))


def explained(step: Callable[[], object]) -> int:
    """The exit code of a script that takes one step; what went wrong is said on stderr."""
    try:
        step()
        sys.stdout.flush()
    except (GpuledgerError, BrokenPipeError) as error:  # the pipe breaks where the reader stops early: `| head`
        return explain(error, as_json=False)
    return 0
