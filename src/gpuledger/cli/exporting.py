"""Which options do exports share, and where does what they make go?"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import PATH, Command, lake_option, screen_options
from gpuledger.cli.price_options import inventory_option, price_of
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.lake.layout import Lake


def paid_options(command: Command) -> Command:
    """The lake and what is paid; the latter is given to the command as `paid` for `ready`."""

    @lake_option
    @inventory_option
    @click.option(
        "--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeat for each GPU."
    )
    @click.option("--instance", metavar="NAME", help="Price the GPUs as in this instance type, such as p5.48xlarge.")
    @click.option("--region", metavar="NAME", help="Region of --instance, such as us-east-1.")
    @click.option("--teams", type=PATH, help="TOML file that assigns namespaces to teams.")
    @screen_options
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        names = ("inventory", "prices", "instance", "region", "teams")
        return command(paid={name: given.pop(name) for name in names}, **given)

    return inner


def ready(screen: Screen, lake_dir: Path, paid: dict[str, Any]) -> tuple[Lake, Asked]:
    """The lake with its ledger up to date, and what is paid."""
    from gpuledger.advice.asking import asked
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.lake.layout import Lake

    terms = asked(lake_dir, price=price_of(paid.pop("prices")), dash="--", **paid)
    lake = Lake(lake_dir)
    with screen.stages() as stages:
        stages.post(lake, load_thresholds())
    return lake, terms


def deliver(screen: Screen, text: str, out: Path | None, what: str) -> None:
    """Text to a file, or to stdout where none is named."""
    from gpuledger.errors import map_os_error
    from gpuledger.lake.layout import write_atomically

    if out is None:
        screen.answer({"v": 1, "statement": "export", "what": what, "text": text})
        if not screen.as_json:
            click.echo(text, nl=False)
        return
    try:
        write_atomically(out, text.encode())
    except OSError as error:
        raise map_os_error(error, out, f"write {what}") from error
    screen.say(f"{what}: {out}")
    screen.answer({"v": 1, "statement": "export", "what": what, "file": str(out)})
