"""Will the month stay within its budget?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.asking import answer, question_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from decimal import Decimal

    from gpuledger.advice.asking import Asked
    from gpuledger.cost.month_budget import MonthBudget
    from gpuledger.lake.layout import Lake


@click.command("budget")
@click.option(
    "--budget", "budgets", multiple=True, metavar="[NAME=]USD",
    help="Dollars per month, for all GPUs, a team or a namespace; repeatable. Default: [budgets] of gpuledger.toml.",
)  # fmt: skip
@click.option("--month", metavar="YYYY-MM", help="The month; default: that of the newest sample.")
@question_options
def command(
    screen: Screen, lake_dir: Path, paid: dict[str, Any], out: Path | None, full: bool, budgets: tuple[str, ...],
    month: str | None,
) -> None:  # fmt: skip
    """Compare a month's spending and its forecast with the budget.

    The forecast takes the mean of the whole days seen, by weekday from 14 days on; its range comes from their scatter.
    """
    given = dict(_budget(text) for text in budgets)
    if len(given) < len(budgets):
        raise InputError("--budget gives two budgets for one name", hint="give one")

    def make(lake: Lake, asked: Asked) -> MonthBudget:
        from gpuledger.cost.month_budget import month_budget
        from gpuledger.cost.user_settings import set_budgets

        return month_budget(lake, given or set_budgets(), month, **asked.terms)

    answer(screen, lake_dir, paid, out, full, make)


def _budget(text: str) -> tuple[str, Decimal]:
    """NAME=USD, or USD for all GPUs."""
    from gpuledger.cost.month_budget import ALL
    from gpuledger.numerals import number_given

    name, equals, amount = text.rpartition("=")
    hint = "give dollars per month above 0: --budget 20000, or --budget research=5000"
    dollars = number_given(amount, f"--budget {name}".strip(), "budget", hint, points=False)
    if dollars <= 0:
        raise InputError(f"--budget {text!r} is not a budget", hint=hint)
    return (name.strip() if equals else ALL), dollars
