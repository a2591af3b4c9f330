"""Which settings make a training job fastest, and does it still train equally well?"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError, map_os_error

if TYPE_CHECKING:
    from gpuledger.cost.pricing import PriceChoice
    from gpuledger.training.tune.tuner import Tuning

_INTERRUPTED = 130


@click.command("tune")
@click.argument("job", metavar="MODULE:JOB")
@click.option(
    "--budget", "budget_s", type=float, metavar="S",
    help="Total seconds, including the final comparison with the start.",
)  # fmt: skip
@click.option("--price", metavar="USD", help="Dollars per GPU-hour; default: the market median for this GPU.")
@click.option("--only", "axes", multiple=True, metavar="AXIS", help="Tune only this axis; repeatable.")
@click.option("--plan", "plan_file", type=PATH, help="TOML file with what to try, instead of the built-in plan.")
@click.option("--out", type=PATH, help="Write the winning settings to this Python file.")
@screen_options
def command(
    screen: Screen, job: str, budget_s: float | None, price: str | None, axes: tuple[str, ...],
    plan_file: Path | None, out: Path | None,
) -> None:  # fmt: skip
    """Find the fastest settings for a training job.

    MODULE:JOB names a gpuledger.training.job.TrainingJob, as in my_training:job or path/to/file.py:job. Each setting
    trains for a few seconds, alternating with the current best, and is kept only if it is faster beyond noise and its
    loss follows the same curve. Keep other work off the GPU meanwhile. Ctrl-C stops and keeps what was found.
    """
    from gpuledger.cli.showing import show
    from gpuledger.cost.pricing import price_for
    from gpuledger.report.documents.tuning import tuning_document
    from gpuledger.training.job import load_job
    from gpuledger.training.tune.choices import load_plan
    from gpuledger.training.tune.tuner import figures, tune

    if budget_s is not None and budget_s <= 0:
        raise InputError(f"--budget {budget_s:g} leaves no time", hint="give a number of seconds above 0; 300 is usual")
    choice, plan = _choice(price), load_plan(plan_file).only(axes)
    wanted, stopped = load_job(job), False
    with screen.stages() as stages:
        tick = stages.start("settings tried")

        def say(what: str) -> None:
            tick(1)
            if screen.talks and not stages.shown:
                screen.say(f"trying: {what}", err=True)

        budget = float("inf") if budget_s is None else budget_s
        so_far: list[Tuning] = []
        try:
            found = tune(
                wanted, plan, budget_s=budget, price=lambda device: price_for(device, choice), say=say,
                watch=so_far.append,
            )  # fmt: skip
        except KeyboardInterrupt:
            if not so_far:
                raise
            found, stopped = so_far[-1], True
    data = figures(found)
    if out:
        _write(out, data["snippet"])
    document = tuning_document(data)
    screen.answer({**document.data(), "file": str(out) if out else None})
    show(document, {}, screen)
    screen.say(f"settings written to {out}" if out else "next: add --out settings.py to write the settings to a file")
    if stopped:
        screen.say("stopped before the end: this is what was found so far", err=True)
        raise click.exceptions.Exit(_INTERRUPTED)


def _choice(price: str | None) -> PriceChoice:
    """The price that was given, checked before anything is run."""
    from gpuledger.cost.pricing import PriceChoice
    from gpuledger.cost.user_settings import with_set_prices

    try:
        return PriceChoice(price=with_set_prices(None if price is None else Decimal(price)))
    except InvalidOperation as error:
        raise InputError(
            f"--price {price!r} is not a number", hint="give dollars per GPU-hour, for example 2.50"
        ) from error


def _write(out: Path, snippet: str) -> None:
    try:
        out.write_text(snippet, encoding="utf-8")
    except OSError as error:
        raise map_os_error(error, out, "write the settings") from error
