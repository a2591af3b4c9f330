"""How does a stale ledger become a statement?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.cli.options import Chosen
from gpuledger.cli.screen import Stages
from gpuledger.units import MS_PER_DAY, day_start_ms

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.lake.layout import Lake


def post(lake: Lake, limits: Thresholds, stages: Stages) -> None:
    """Bring the ledger up to date, with a bar that knows its end when nothing was posted before."""
    from gpuledger.ledger.engine import post_lake
    from gpuledger.ledger.store import Ledger

    lake.require()
    fresh = not Ledger(lake).manifest().days
    post_lake(lake, limits, stages.start("posting", sum(p.rows for p in lake.manifest().parts) if fresh else None))


def state(lake: Lake, limits: Thresholds, chosen: Chosen, achievable: str) -> EfficiencyStatement:
    """The statement over the chosen window and owners."""
    from gpuledger.efficiency.build import efficiency_statement
    from gpuledger.efficiency.calibration_files import load_calibration

    return efficiency_statement(
        lake,
        since_ms=since_ms(lake, chosen),
        until_ms=chosen.until_ms,
        clusters=chosen.clusters,
        namespaces=chosen.namespaces,
        owners=chosen.owners,
        thresholds=limits,
        achievable=achievable,
        calibration=load_calibration(lake),
    )


def since_ms(lake: Lake, chosen: Chosen) -> int | None:
    """Where the window starts; --last counts back from --until, else from the newest sample."""
    from gpuledger.ledger.store import Ledger

    if chosen.last_ms is None:
        return chosen.since_ms
    if chosen.until_ms is not None:
        return chosen.until_ms - chosen.last_ms
    newest = max((p.last_ms + 1 for p in lake.manifest().parts), default=0)
    posted = max((day_start_ms(d.day) + MS_PER_DAY for d in Ledger(lake).manifest().days), default=0)
    return (newest or posted) - chosen.last_ms
