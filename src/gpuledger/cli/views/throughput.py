"""How does an answer about speed look?"""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import number, percent
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.plan.speed.throughput import DecodeRate, Rate, Throughput, TrainRate
from gpuledger.units import Unknown


def page(answer: Throughput) -> list[RenderableType]:
    """The answer first, then where the time goes, and what was assumed."""
    parts: list[RenderableType] = [_headline(answer)]
    if not answer.fits:
        parts.append("[bold]It does not fit[/]: see gpuledger plan fit. The rates are what it would give if it did.")
    if isinstance(answer.train, TrainRate):
        parts += ["", _step(answer.train)]
    if isinstance(answer.decode, tuple):
        parts += ["", _decode(answer.decode)]
    if isinstance(answer.prefill, Rate):
        parts += ["", f"reading prompts: {_range(answer.prefill)} tokens/s"]
    table = pairs()
    for at, line in enumerate(answer.assumptions):
        table.add_row("" if at else "assumed", escape(line))
    return [*parts, "", table]


def _headline(answer: Throughput) -> str:
    what = escape(f"{answer.model} to {answer.setup.mode} on {answer.setup.count} x {answer.gpu}")
    if isinstance(answer.train, TrainRate):
        return f"[bold]{_range(answer.train.rate)} {answer.train.unit}s/s[/]: {what}"
    if isinstance(answer.decode, tuple):
        last = answer.decode[-1]
        return f"[bold]{_range(last.rate)} tokens/s[/] written: {what}, batch {last.batch}"
    why = answer.train if isinstance(answer.train, Unknown) else answer.decode
    return f"[bold]Not known[/]: {what}: {escape(why.why) if isinstance(why, Unknown) else ''}"


def _range(rate: Rate) -> str:
    return f"{_rate(rate.per_s)} ({_rate(rate.low_per_s)} to {_rate(rate.high_per_s)})"


def _rate(per_s: float) -> str:
    """A rate is never written as 0: what is slow gets two digits."""
    return number(per_s, 0) if per_s >= 10 else f"{per_s:.2g}"


def _step(train: TrainRate) -> Table:
    table = plain_table("One optimizer step of a GPU")
    table.add_column("part", no_wrap=True)
    table.add_column("s", justify="right", no_wrap=True)
    for name, seconds in train.step_parts_s.items():
        table.add_row(name, number(seconds, 3))
    table.add_section()
    table.add_row("step", number(train.step_s, 3))
    table.add_row(f"{train.unit}s a step, all GPUs", number(train.per_step, 0))
    mfu = NOT_GIVEN if isinstance(train.mfu_pct, Unknown) else percent(train.mfu_pct)
    table.add_row("MFU, of the dense peak", mfu)
    return table


NOT_GIVEN = "not known"


def _decode(rates: tuple[DecodeRate, ...]) -> Table:
    table = plain_table("Writing, all copies together")
    for head in ("batch a copy", "tokens/s", "low", "high", "ms a token", "fits"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rates:
        rate = row.rate
        figures = [_rate(v) for v in (rate.per_s, rate.low_per_s, rate.high_per_s)]
        table.add_row(str(row.batch), *figures, number(row.step_ms, 1), "yes" if row.fits else "no")
    return table
