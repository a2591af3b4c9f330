"""Job tables: sacct, pods as kubectl writes them, and tables of one's own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import gpuledger
from targets import Target, files_of


def add(path: Path) -> object:
    """What `gpuledger jobs FILE --tz UTC` adds to a lake."""
    with tempfile.TemporaryDirectory() as folder:
        return gpuledger.open(folder).jobs(path, tz="UTC")


TARGETS = [Target("job table", add, files_of("fuzz/seeds/jobs"), 3.0)]
