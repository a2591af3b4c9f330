"""What changed since the period before?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.asking import answer, question_options
from gpuledger.cli.options import statement_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window


@click.command("change")
@statement_options
@question_options
def command(screen: Screen, chosen: Window, lake_dir: Path, paid: dict[str, Any], out: Path | None, full: bool) -> None:
    """Compare this week with the last: dollars, waste, owners.

    Without a window the last seven days are compared with the seven before; with one, the period of the same length
    before it.
    """
    from gpuledger.advice.change import change
    from gpuledger.ledger.read.window import scope_of

    answer(screen, lake_dir, paid, out, full, lambda lake, terms: change(lake, scope_of(lake, **chosen), terms))
