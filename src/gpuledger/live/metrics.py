"""What does a lake look like to Prometheus?

Without a window the figures are over the last hour before the newest sample: what a scrape should show.
"""

from __future__ import annotations

from dataclasses import replace

from gpuledger.advice.asking import Asked, audit
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.teams import Config
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import scope_of
from gpuledger.live.exposition import text_of
from gpuledger.live.figures import Seen, lake_families, window_families
from gpuledger.live.traffic import read_traffic

LAST = "1h"


def metrics_text(seen: Seen | None, newest: int) -> str:
    """The page of a window that is read already; `seen`: None where the window has no data."""
    return text_of(lake_families(newest) if seen is None else window_families(seen, newest))


def recent(lake: Lake, scope: Scope) -> Scope:
    """The scope, over the last hour before the newest sample where it names no window."""
    if scope.since_ms is not None or scope.until_ms is not None:
        return scope
    return replace(scope, since_ms=scope_of(lake, last=LAST).since_ms)


def read_window(lake: Lake, scope: Scope, asked: Asked) -> Seen:
    """What metrics rest on; the ledger must be posted."""
    teams = (asked.terms.get("teams") or Config()).set_team
    efficiency = efficiency_statement(
        lake, scope, thresholds=load_thresholds(None), calibration=load_calibration(lake), team_of=teams
    )
    return Seen(audit(lake, scope, asked), efficiency, read_traffic(lake, scope))
