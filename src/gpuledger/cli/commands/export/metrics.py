"""What would a scrape give?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.exporting import deliver, export_options, ready
from gpuledger.cli.options import PATH, statement_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window


@click.command("metrics")
@click.option("--out", type=PATH, metavar="FILE", help="File to write.  [default: standard output]")
@statement_options
@export_options
def command(screen: Screen, chosen: Window, lake_dir: Path, paid: dict[str, Any], out: Path | None) -> None:
    """Write the figures of a window as Prometheus text.

    The same page that gpuledger serve gives at /metrics. For the textfile collector of a node exporter, write it to a
    .prom file. Without a window the figures are over the last hour before the newest sample.
    """
    from gpuledger.ledger.read.window import newest_ms, scope_of
    from gpuledger.live.metrics import metrics_text, read_window, recent

    lake, asked = ready(screen, lake_dir, paid)
    seen = read_window(lake, recent(lake, scope_of(lake, **chosen)), asked)
    deliver(screen, metrics_text(seen, newest_ms(lake)), out, "metrics")
