"""What is every GPU doing right now, and what does it cost?"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import LAKE, Pause, screen_options
from gpuledger.cli.price_options import inventory_option, price_of
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError, MissingExtra
from gpuledger.times import length_ms
from gpuledger.tui.orders import SORTS, Sort, ordered

if TYPE_CHECKING:
    from gpuledger.tui.live_devices import LiveDevices
    from gpuledger.tui.sources import Source

_RATES = Path("gpuledger-data")  # rates and calibrations of your own, where a lake holds them
ONCE_S = 3.0
_LONGEST_S = 10.0


@click.command("top")
@click.option(
    "--device", metavar="nvml|amd|replay:FILE", help="Live GPUs of this machine, or a recording.  [default: nvml]"
)
@click.option("--lake", "lake_dir", type=LAKE, help="Show the newest samples of this lake instead of live GPUs.")
@click.option(
    "--last", type=length_ms, metavar="LENGTH", help="With --lake: window before the newest sample.  [default: 1h]"
)
@click.option(
    "--every", "every_ms", type=Pause("0.5s", "1h"), metavar="LENGTH", default="2s", show_default=True,
    help="Time between updates (5, 5s, 2m).",
)  # fmt: skip
@click.option("--sort", type=click.Choice(SORTS), default="waste", show_default=True, help="Order of the GPUs.")
@click.option("--filter", "words", default="", metavar="WORDS", help="Only GPUs with these words in a name or state.")
@inventory_option
@click.option("--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeatable.")
@click.option("--once", is_flag=True, help="Print one table and exit; the default without a terminal.")
@screen_options
def command(
    screen: Screen, device: str | None, lake_dir: Path | None, last: int | None, every_ms: int, sort: Sort, words: str,
    inventory: tuple[Path, ...], prices: tuple[str, ...], once: bool,
) -> int:  # fmt: skip
    """Watch GPUs live: work, watts, dollars and waste.

    Utilization stands next to the realized share of the peak; waste is stalled, underused and idle time in dollars per
    hour. In the view, ? lists the keys.
    """
    if device and lake_dir:
        raise InputError("--device and --lake both name a source", hint="give one of them")
    if last is not None and not lake_dir:
        raise InputError("--last goes with --lake", hint="without a lake, the view covers the last ten seconds")
    watched = not once and not screen.as_json and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if watched:
        _need_textual()
    source = _source(device, lake_dir, last, inventory, prices)
    try:
        source.start()
        if watched:
            from gpuledger.tui.app import Top

            app = Top(source, every_ms / 1000, sort, words)
            app.run()
            if app.failure is not None:
                raise app.failure
            return 0
        return _once(screen, source, sort, words)
    finally:
        source.close()


def _need_textual() -> None:
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the terminal view", "tui") from error


def _source(
    device: str | None, lake_dir: Path | None, last: int | None, inventory: tuple[Path, ...], prices: tuple[str, ...]
) -> Source:
    from gpuledger.advice.asking import asked
    from gpuledger.efficiency.calibration_files import load_calibration
    from gpuledger.lake.layout import Lake
    from gpuledger.tui.lake_view import LakeView
    from gpuledger.tui.live_devices import LiveDevices
    from gpuledger.units import MS_PER_HOUR

    own = lake_dir or _RATES
    terms = asked(own, price=price_of(prices), inventory=list(inventory) or None, dash="--").terms
    if lake_dir:
        return LakeView(lake_dir, terms, last or MS_PER_HOUR)
    terms["calibration"] = load_calibration(Lake(own))
    return LiveDevices(device or "nvml", terms)


def _once(screen: Screen, source: Source, sort: Sort, words: str) -> int:
    from gpuledger.encode import encode
    from gpuledger.tui.drawing import table
    from gpuledger.tui.live_devices import LiveDevices

    if isinstance(source, LiveDevices):
        _sampled(source)
    fleet = source.look()
    screen.answer(encode("top", replace(fleet, gpus=tuple(ordered(fleet.gpus, sort, words)))))
    screen.show(*table(fleet, screen.console().width, sort, words))
    return 0


def _sampled(source: LiveDevices) -> None:
    """Wait for a few seconds of readings; not for long where no GPU gives any: the table then says so."""
    until = time.monotonic() + _LONGEST_S
    while source.observed_s < ONCE_S - 1 and time.monotonic() < until:
        time.sleep(0.1)
