"""What does a scrape of the dashboard give?"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import Response

from gpuledger.live.exposition import CONTENT_TYPE
from gpuledger.web.asking import Chosen
from gpuledger.web.contract import Ask
from gpuledger.web.desk import Desk


def add_metrics(app: FastAPI, desk: Desk) -> None:
    """Answer /metrics: figures of the last hour, or of the window that the address names."""

    @app.get("/metrics", include_in_schema=False)
    async def metrics(chosen: Chosen) -> Response:
        return Response(await desk.answer(Ask("metrics", "", chosen)), media_type=CONTENT_TYPE)
