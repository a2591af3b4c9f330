"""Which figures can a program fetch? The statements as JSON, as the command line prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from gpuledger.plain_text import json_text
from gpuledger.report.documents import document_of
from gpuledger.web import gpu_table
from gpuledger.web.asking import PROBLEMS, Chosen, Text, ready
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.page_routes import data_document, gpu_lines


def add_json(app: FastAPI, live: LiveLake) -> None:
    """Answer the addresses of the API."""
    options: dict[str, Any] = {"responses": PROBLEMS, "response_model": dict[str, Any]}

    @app.get("/api/v1/status", **{**options, "responses": {401: PROBLEMS[401]}})
    def status() -> Response:
        """Which edition is shown, how old the newest sample is, and what is wrong."""
        return _written(vars(live.status))

    @app.get("/api/v1/audit", **options)
    def audit(chosen: Chosen, by: Text = "") -> Response:
        """The cost audit, as `gpuledger audit --json` prints it."""
        return _statement(live.audit(ready(live, chosen), by=by or None))

    @app.get("/api/v1/efficiency", **options)
    def efficiency(chosen: Chosen) -> Response:
        """The efficiency statement, as `gpuledger analyze --json` prints it."""
        return _statement(live.efficiency(ready(live, chosen)))

    @app.get("/api/v1/gpus", **options)
    def gpus(chosen: Chosen, q: Text = "", sort: Text = "") -> Response:
        """Every GPU: what it did, what it cost."""
        found = gpu_table.chosen_lines(gpu_lines(live, ready(live, chosen)), q, gpu_table.order_of(sort))
        return _written({"v": 1, "statement": "gpus", "gpus": [vars(line) for line in found]})

    @app.get("/api/v1/gpus/{device:path}", **options)
    def gpu(device: str, chosen: Chosen) -> Response:
        """One GPU hour by hour, and its stretches without work."""
        return _statement(live.gpu(ready(live, chosen), device))

    @app.get("/api/v1/plans/move", **options)
    def move(chosen: Chosen) -> Response:
        """What each namespace should move to."""
        return _statement(live.moves(ready(live, chosen)))

    @app.get("/api/v1/data", **options)
    def data(chosen: Chosen) -> Response:
        """What came in, and how old it is."""
        return _written(data_document(live, ready(live, chosen)).data())


def _statement(statement: object) -> Response:
    return _written(document_of(statement).data())


def _written(figures: Mapping[str, Any]) -> Response:
    return Response(json_text(dict(figures)), media_type="application/json")
