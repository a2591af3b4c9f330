"""How well does a training job use its GPUs, and what would make it faster?"""

from __future__ import annotations

from gpuledger.cli.app import CommandFolder

command = CommandFolder(__name__, name="train", help="Measure and improve how well training uses its GPUs.")
