"""What is configured, and how is it used? The guide's viewer, over `gpuledger config show`."""

from __future__ import annotations

from gpuledger.cli.config_viewing import ConfigViewer, main

__all__ = ["ConfigViewer", "main"]
