"""Will this model fit these GPUs, and if not, what is the least that must change?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.planning import Asked, run_options
from gpuledger.cli.screen import Screen


@click.command("fit")
@run_options
@click.option("--out", type=PATH, metavar="DIR", help="Folder for fit.html, fit.md and fit.json.")
@screen_options
def command(screen: Screen, asked: Asked, out: Path | None) -> int:
    """Check whether a model fits, and what would make it fit.

    Counts weights, gradients, optimizer state, activations, cache and overhead on the fullest GPU, and prints every
    assumption. Exits 0 even if the model does not fit; 2 for invalid input or a model that fits nowhere.
    """
    from gpuledger.cli.views.fit import page
    from gpuledger.encode import encode
    from gpuledger.plan.fit.build import fit

    answer = fit(asked.model, asked.gpu, asked.setup)
    files = {}
    if out is not None:
        from gpuledger.report.write_fit import write_fit

        files = {name: str(path) for name, path in write_fit(answer, out).items()}
    screen.answer({**encode("fit", answer), "files": files})
    if screen.talks:
        screen.show(*page(answer))
        screen.say(*(f"written: {path}" for path in files.values()))
    if answer.nowhere:
        tell(answer.nowhere, "choose a smaller model; --mode serve and --lora-rank 16 take less than full training")
        return BAD_INPUT
    return 0
