"""How does the fleet look in Grafana?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.exporting import deliver
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("grafana")
@click.option("--out", type=PATH, metavar="FILE", help="File to write.  [default: standard output]")
@screen_options
def command(screen: Screen, out: Path | None) -> None:
    """Write a Grafana dashboard of the fleet: dollars first.

    It needs a Prometheus that scrapes gpuledger serve. In Grafana: Dashboards, New, Import, and choose that Prometheus.
    """
    from gpuledger.live.grafana import dashboard
    from gpuledger.plain_text import json_text

    deliver(screen, json_text(dashboard(), indent=2) + "\n", out, "dashboard")
