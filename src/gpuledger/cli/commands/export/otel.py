"""Can an OpenTelemetry collector have the figures?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.exporting import export_options, ready
from gpuledger.cli.options import statement_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window


@click.command("otel")
@click.option(
    "--endpoint", default="http://localhost:4318/v1/metrics", show_default=True, metavar="URL",
    help="Address of the collector's OTLP/HTTP receiver.",
)  # fmt: skip
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header to send, such as a token.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Seconds.")
@statement_options
@export_options
def command(
    screen: Screen, chosen: Window, lake_dir: Path, paid: dict[str, Any], endpoint: str, headers: tuple[str, ...],
    timeout_s: float,
) -> None:  # fmt: skip
    """Send hw.gpu.* metrics to an OpenTelemetry collector.

    Once, over OTLP/HTTP: utilization, memory, power, energy and errors by the semantic conventions for hardware, and
    dollars by bucket. Without a window it is the last hour before the newest sample. For a steady feed run it hourly.
    """
    from gpuledger.ledger.read.window import scope_of
    from gpuledger.live.metrics import read_window, recent
    from gpuledger.live.otel import metrics_data, send
    from gpuledger.units import count

    if not endpoint.startswith(("http://", "https://")):
        raise InputError(f"--endpoint {endpoint!r} is not an address", hint="write http://HOST:4318/v1/metrics")
    given = dict(_header(text) for text in headers)
    lake, asked = ready(screen, lake_dir, paid)
    seen = read_window(lake, recent(lake, scope_of(lake, **chosen)), asked)
    sent = send(metrics_data(seen), endpoint, given, timeout_s)
    gpus = seen.efficiency.gpus
    screen.say(f"{count(sent, 'point')} of {count(gpus, 'GPU')} sent to {endpoint}")
    screen.answer({"v": 1, "statement": "otel", "points": sent, "gpus": gpus, "endpoint": endpoint})


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--header {text!r} is not NAME=VALUE", hint="for example --header authorization='Bearer ...'")
    return name.strip(), value
