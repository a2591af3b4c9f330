"""Will this model fit these GPUs, and if not, what is the least that must change?"""

from __future__ import annotations

import click

from gpuledger.cli.options import screen_options
from gpuledger.cli.planning import Asked, run_options
from gpuledger.cli.screen import Screen


@click.command("fit")
@run_options
@screen_options
def command(screen: Screen, asked: Asked) -> None:
    """Say whether a model fits, and the least that makes it fit.

    Weights, gradients, optimizer, activations, cache and overhead of the fullest GPU. Every assumption is printed.
    A question that is answered with "no" ends with 0; what cannot be asked ends with 2.
    """
    from gpuledger.cli.views.fit import page
    from gpuledger.plan.fit import fit
    from gpuledger.plan.fit_encode import fit_as_data

    answer = fit(asked.model, asked.gpu, asked.setup)
    screen.answer(fit_as_data(answer))
    if screen.talks:
        screen.show(*page(answer))
