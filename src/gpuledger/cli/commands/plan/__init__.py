"""Where should a job run, will it fit, and what will it cost there? One module per planner."""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="plan", help="Plan where a job should run and what it costs there.")
