"""What is set, and is it right? One module per command."""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="config", help="Show or create settings; show, create or check planner files.")
