"""How does an answer about memory look?"""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import NOT_KNOWN, number, parameters, percent, size
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.plan.fit.build import Fit

GB = 1_000_000_000


def page(fit: Fit) -> list[RenderableType]:
    """The answer first, then what takes the memory, what would help, and what was assumed."""
    parts: list[RenderableType] = [headline(fit), "", _breakdown(fit)]
    if fit.not_known:
        parts += ["", _not_known(fit)]
    if fit.remedies:
        parts += ["", _remedies(fit)]
    elif fit.nowhere:
        parts += ["", f"[bold]It fits nowhere[/]: {escape(fit.nowhere)}"]
    return [*parts, "", _assumed(fit)]


def headline(fit: Fit) -> str:
    """One line: does it fit, and by how much."""
    what = f"{fit.model} ({parameters(fit.params_total)}) to {fit.setup.mode} on {fit.setup.count} x {fit.gpu}"
    least = "at least " if fit.at_least else ""
    if not fit.fits:
        missing = f"{size(-fit.free_bytes)} too much"
        return f"[bold]Does not fit[/]: {escape(what)}: {least}{size(fit.total_bytes)} a GPU, {missing}"
    word = "What is known fits" if fit.at_least else "Fits, barely" if fit.close else "Fits"
    return f"[bold]{word}[/]: {escape(what)}: {least}{size(fit.total_bytes)} a GPU, {size(fit.free_bytes)} free"


def _breakdown(fit: Fit) -> Table:
    table = plain_table("Memory of the fullest GPU")
    table.add_column("part", no_wrap=True)
    table.add_column("GB", justify="right", no_wrap=True)
    table.add_column("of the card", justify="right", no_wrap=True)
    for name, value in fit.per_gpu_bytes.items():
        table.add_row(name, _gb(value, 2), percent(fit.of_capacity_pct[name]))
    for name in fit.not_known:
        table.add_row(name, NOT_KNOWN, "")
    table.add_section()
    table.add_row("total", _gb(fit.total_bytes, 2), percent(fit.of_capacity_pct["total"]))
    table.add_row("range", f"{_gb(fit.low_bytes)} to {_gb(fit.high_bytes)}", "")
    table.add_row("the card", _gb(fit.capacity_bytes, 2), "")
    return table


def _gb(value: int, digits: int = 1) -> str:
    return number(value / GB, digits)


def _not_known(fit: Fit) -> Table:
    table = pairs()
    for part, why in fit.not_known.items():
        table.add_row(part, escape(f"{NOT_KNOWN}: {why}"))
    return table


def _remedies(fit: Fit) -> Table:
    table = plain_table("What makes it fit, the least change first")
    table.add_column("", no_wrap=True)
    table.add_column("change")
    table.add_column("options")
    table.add_column("GB a GPU", justify="right", no_wrap=True)
    table.add_column("free GB", justify="right", no_wrap=True)
    barely = any(remedy.close for remedy in fit.remedies)
    for at, remedy in enumerate(fit.remedies, 1):
        words = escape("; ".join(remedy.changes))
        total = f"{'at least ' if remedy.at_least else ''}{_gb(remedy.total_bytes)}"
        mark = " !" if remedy.close else "  " if barely else ""
        table.add_row(str(at), words, escape(remedy.options), total, f"{_gb(remedy.free_bytes)}{mark}")
    if barely:
        table.caption, table.caption_justify = "! barely: within the error of the estimate", "left"
    return table


def _assumed(fit: Fit) -> Table:
    table = pairs()
    for at, line in enumerate(fit.assumptions):
        table.add_row("" if at else "assumed", escape(line))
    table.add_row("memory", escape(fit.capacity_from))
    return table
