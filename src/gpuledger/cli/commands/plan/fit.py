"""Will this model fit these GPUs, and if not, what is the least that must change?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cli.options import PATH, full_option, screen_options
from gpuledger.cli.planning import run_options
from gpuledger.cli.screen import Screen


@click.command("fit")
@run_options
@click.option("--out", type=PATH, metavar="DIR", help="Folder for fit.html, fit.md and fit.json.")
@full_option
@screen_options
def command(screen: Screen, asked: Any, out: Path | None, full: bool) -> int:
    """Check whether a model fits, and what would make it fit.

    The model is a name from the catalog (--model) or a file (--config); either may also stand alone.

    Counts weights, gradients, optimizer state, activations, cache and overhead on the fullest GPU; --full adds every
    assumption. Exits 0 even if the model does not fit; 2 for invalid input or a model that fits nowhere.
    """
    from gpuledger.cli.showing import give, write_files
    from gpuledger.plan.fitting.build import fit
    from gpuledger.report.documents.fit import fit_document

    answer = fit(*asked)
    document = fit_document(answer)
    with screen.stages() as stages:
        files = write_files(document, out, screen, stages)
    give(document, screen, files, full=full)
    if answer.nowhere:
        tell(answer.nowhere, "choose a smaller model; --mode serve and --lora-rank 16 take less than full training")
        return BAD_INPUT
    return 0
