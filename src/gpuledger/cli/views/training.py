"""How do stored reports of training meters look?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from gpuledger.lake.counted import CountedRun
from gpuledger.training.meter.rank import Ranks, compare, times_in
from gpuledger.training.meter.table import parts as report_parts


def by_run(counted: Sequence[CountedRun]) -> dict[str, list[CountedRun]]:
    """The ranks of each run, in order; one without a report was cut off before its first."""
    runs: dict[str, list[CountedRun]] = {}
    for one in sorted(counted, key=lambda r: r.rank):
        if one.report:
            runs.setdefault(one.run_id, []).append(one)
    return runs


def as_data(run_id: str, ranks: Sequence[CountedRun]) -> Mapping[str, Any]:
    """A run as JSON holds it: each rank's whole report, and the ranks side by side."""
    return {"run_id": run_id, "ranks": [r.report for r in ranks], "compared": asdict(_compared(ranks))}


def parts(ranks: Sequence[CountedRun]) -> Iterator[RenderableType]:
    """The first rank's report, and who keeps the others waiting."""
    yield from report_parts(ranks[0].report, _compared(ranks) if len(ranks) > 1 else None)


def _compared(ranks: Sequence[CountedRun]) -> Ranks:
    return compare([times_in(r.report) for r in ranks])
