"""What can other systems take from a lake? One module per target."""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="export", help="Export to FOCUS, Prometheus, Grafana or OpenTelemetry.")
