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


TARGETS = [
    Target("bench results", results, files_of("fuzz/seeds/results"), 1.0),
    Target("claims", read_claims, files_of("tests/data/s2/claims.json"), 1.0),
    Target("request trace", lambda p: list(read_trace(p)), files_of("fuzz/seeds/traces"), 1.0),
    Target("LoadGen log", lambda p: read_loadgen(p.parent), files_of("fuzz/seeds/loadgen"), 0.8),
]
