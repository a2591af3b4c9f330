"""What is configured, and how is it used? The guide's viewer, over `gpuledger config show`."""

from __future__ import annotations

from gpuledger.cli.analyzer import ConfigViewer
from gpuledger.cli.analyzer import view as main

__all__ = ["ConfigViewer", "main"]
