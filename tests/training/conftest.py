"""Tests of the training room find their neighbors' helpers, and the benchmarks, by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "benchmarks")]
