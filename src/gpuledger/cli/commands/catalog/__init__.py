"""Which facts are in the catalog? One module per kind of fact."""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="catalog", help="Look up GPU and model specifications and their sources.")
