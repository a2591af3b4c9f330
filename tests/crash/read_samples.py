"""Reads all samples of a lake by the Python call, without waiting for its writers; prints how many there are."""

from __future__ import annotations

import sys

import gpuledger
from gpuledger.errors import GpuledgerError

try:
    sys.stdout.write(f"{len(gpuledger.open(sys.argv[1]).samples())}\n")
except GpuledgerError as error:
    sys.stderr.write(f"error: {error}\n")
    sys.exit(2)
