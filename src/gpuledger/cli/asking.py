"""Which options do questions share, and how is each answered?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuledger.cli.options import REPORT, Command, full_option, screen_options
from gpuledger.cli.price_options import paid_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.lake.layout import Lake

S = TypeVar("S")
out_option = click.option(
    "--out", type=REPORT, metavar="PATH",
    help="Folder for the answer as a page, Markdown and JSON; or one file of its table, FILE.csv or FILE.xlsx.",
)  # fmt: skip


def question_options(command: Command) -> Command:
    """The lake, what is paid, and where the answer goes."""
    return paid_options(out_option(full_option(screen_options(command))))


def answer(
    screen: Screen,
    lake_dir: Path,
    paid: dict[str, Any],
    out: Path | None,
    full: bool,
    make: Callable[[Lake, Asked], object],
) -> None:
    """Post what is new, make the statement and show it."""
    from gpuledger.advice.asking import asked
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.price_options import price_of
    from gpuledger.cli.showing import give, write_files
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents import document_of

    terms = asked(lake_dir, price=price_of(paid.pop("prices")), dash="--", **paid)
    lake = Lake(lake_dir)
    with screen.stages() as stages:
        stages.post(lake, load_thresholds())
        tick = stages.start("answering")
        document = document_of(make(lake, terms))
        tick(1)
        files = write_files(document, out, screen, stages)
    give(document, screen, files, full=full)
