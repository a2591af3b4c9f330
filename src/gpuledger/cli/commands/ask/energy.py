"""How much energy and carbon goes with the dollars?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.asking import answer, question_options
from gpuledger.cli.carbon_options import carbon_options, placing_of
from gpuledger.cli.options import by_option, statement_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.cost.emissions.statement import EnergyStatement
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.read.window import Window


@click.command("energy")
@by_option
@carbon_options
@statement_options
@question_options
def command(
    screen: Screen, chosen: Window, lake_dir: Path, paid: dict[str, Any], out: Path | None, full: bool, by: str | None,
    carbon: dict[str, Any],
) -> None:  # fmt: skip
    """Show kWh and kg CO2e next to dollars, by owner and region.

    Energy is that of the GPU boards, as recorded. Carbon is energy x PUE of the cloud x carbon intensity of the
    region's grid: a yearly average, or by hour from --carbon FILE. Where a GPU's place is unknown, so is its carbon.
    """
    from dataclasses import replace

    from gpuledger.ledger.read.window import scope_of

    placing = replace(placing_of(**carbon), by_hour=bool(full or out or screen.as_json))

    def make(lake: Lake, asked: Asked) -> EnergyStatement:
        from gpuledger.cost.emissions.build import energy_statement

        terms = asked.terms.copy()
        terms["by"] = by
        return energy_statement(lake, scope_of(lake, **chosen), placing, **terms)

    answer(screen, lake_dir, paid, out, full, make)
