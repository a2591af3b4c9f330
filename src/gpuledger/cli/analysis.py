"""How does a stale ledger become current before a statement?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.cli.screen import Stages

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.lake.layout import Lake


def post(lake: Lake, limits: Thresholds, stages: Stages) -> None:
    """Bring the ledger up to date, with a bar that knows its end when nothing was posted before."""
    from gpuledger.ledger.engine import post_lake
    from gpuledger.ledger.store import Ledger

    lake.require()
    fresh = not Ledger(lake).manifest().days
    post_lake(lake, limits, stages.start("posting", sum(p.rows for p in lake.manifest().parts) if fresh else None))
