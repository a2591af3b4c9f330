"""Which options say where GPUs are and what their energy carries?"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import PATH, Command

if TYPE_CHECKING:
    from gpuledger.cost.emissions.build import Placing


def carbon_options(command: Command) -> Command:
    """--cloud, --at and --carbon, given to the command as `carbon` for `placing_of`."""

    @click.option("--cloud", default="", metavar="NAME", help="Cloud of the regions that samples name, such as aws.")
    @click.option(
        "--at", default="", metavar="CLOUD:REGION", help="Where GPUs without a region are, such as aws:us-east-1."
    )
    @click.option(
        "--carbon", "carbon_file", type=PATH, metavar="FILE",
        help="Carbon intensity by hour: CSV with hour,region,g_per_kwh.  [default: yearly averages]",
    )  # fmt: skip
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        found = {name: given.pop(name) for name in ("cloud", "at", "carbon_file")}
        return command(carbon=found, **given)

    return inner


def placing_of(cloud: str, at: str, carbon_file: Path | None) -> Placing:
    """The options, checked."""
    from gpuledger.cost.emissions.build import placing

    return placing(cloud, at, carbon_file)
