"""Which options do exports share, and where does what they make go?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import Command, screen_options
from gpuledger.cli.price_options import paid_options, price_of
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.lake.layout import Lake


def export_options(command: Command) -> Command:
    """The lake, what is paid, and --json."""
    return paid_options(screen_options(command))


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
