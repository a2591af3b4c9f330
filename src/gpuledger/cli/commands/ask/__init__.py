"""Which questions have one command each? One module per question."""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="ask", help="Answer one question: what to give back, budget, what changed.")
