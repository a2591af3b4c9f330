"""What does a scrape of the dashboard give?"""

from __future__ import annotations

from dataclasses import replace

from fastapi import FastAPI
from fastapi.responses import Response

from gpuledger.live.exposition import CONTENT_TYPE
from gpuledger.live.figures import Seen
from gpuledger.live.metrics import LAST, metrics_text
from gpuledger.live.traffic import read_traffic
from gpuledger.web.asking import Chosen, ready
from gpuledger.web.live_lake import Filters, LiveLake


def add_metrics(app: FastAPI, live: LiveLake) -> None:
    """Answer /metrics: figures of the last hour, or of the window that the address names."""

    @app.get("/metrics", include_in_schema=False)
    def metrics(chosen: Chosen) -> Response:
        windowed = chosen.since or chosen.until or chosen.last
        given = ready(live, chosen if windowed else replace(chosen, last=LAST))
        return Response(live.once("metrics", given, lambda: _made(live, given)), media_type=CONTENT_TYPE)


def _made(live: LiveLake, given: Filters) -> str:
    traffic = read_traffic(live.lake, given.scope(live.lake))
    return metrics_text(Seen(live.audit(given), live.efficiency(given), traffic), live.status.newest_ms or 0)
