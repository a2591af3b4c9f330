"""Which GPUs should be given back first?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.asking import answer, question_options
from gpuledger.cli.options import statement_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window


@click.command("give-back")
@click.option("-n", "n", type=click.IntRange(1), default=10, show_default=True, help="Number of GPUs to list.")
@statement_options
@question_options
def command(
    screen: Screen, chosen: Window, lake_dir: Path, paid: dict[str, Any], out: Path | None, full: bool, n: int
) -> None:
    """List the GPUs to give back first, with dollars and evidence.

    A GPU is listed where the advice of the audit for idle GPUs applies to it and it hardly works, or has stopped
    working. It is judged over the time of all of its owners. One whose idleness is unknown is never listed.
    """
    from gpuledger.advice.give_back import give_back
    from gpuledger.ledger.read.window import scope_of

    answer(
        screen, lake_dir, paid, out, full, lambda lake, terms: give_back(lake, scope_of(lake, **chosen), terms, n)
    )  # fmt: skip
