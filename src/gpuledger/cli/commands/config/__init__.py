"""What does the configuration say, and is it right? One module a thing to do with it."""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="config", help="Show, create or check a migration planner configuration.")
