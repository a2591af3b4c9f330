"""What benchmarks leave behind: results, claims, request traces, LoadGen's logs."""

from __future__ import annotations

from pathlib import Path

from gpuledger.bench.load import read_trace
from gpuledger.bench.loadgen import read_loadgen
from gpuledger.scaling.build import gather, scaling_statement
from gpuledger.scaling.claims.rule import read_claims
from targets import Target, files_of


def results(path: Path) -> object:
    """What `gpuledger scaling FILE` makes of a file of results."""
    return scaling_statement(gather([path]))


def logs(path: Path) -> object:
    """A folder of LoadGen's logs of which one is hostile."""
    for other in files_of("fuzz/seeds/loadgen")():
        if other.name != path.name:
            (path.parent / other.name).write_bytes(other.data)
    try:
        return read_loadgen(path.parent)
    finally:
        for file in path.parent.iterdir():
            file.unlink()


TARGETS = [
    Target("bench results", results, files_of("fuzz/seeds/results"), 0.4),
    Target("claims", read_claims, files_of("tests/data/s2/claims.json"), 5.0),
    Target("request trace", lambda p: list(read_trace(p)), files_of("fuzz/seeds/traces"), 4.0),
    Target("LoadGen log", logs, files_of("fuzz/seeds/loadgen"), 4.0),
]
