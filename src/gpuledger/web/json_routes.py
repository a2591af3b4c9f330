"""Which figures can a program fetch? The statements as JSON, as the command line prints them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from gpuledger.plain_text import json_text
from gpuledger.web.asking import PROBLEMS, By, Chosen, Device, Find, Sort
from gpuledger.web.contract import Ask, Filters
from gpuledger.web.desk import Desk
from gpuledger.web.page_routes import minute


def add_json(app: FastAPI, desk: Desk) -> None:
    """Answer the addresses of the API."""
    options: dict[str, Any] = {"responses": PROBLEMS, "response_model": dict[str, Any]}

    async def figures(name: str, chosen: Filters, **params: str | int) -> Response:
        return _json(await desk.answer(Ask("json", name, chosen, tuple(params.items()))))

    @app.get("/api/v1/status", **{**options, "responses": {code: PROBLEMS[code] for code in (401, 421)}})
    async def status() -> Response:
        """Which edition is shown, how old the newest sample is, and what is wrong."""
        return _json(json_text(vars(desk.status)))

    @app.get("/api/v1/audit", **options)
    async def audit(chosen: Chosen, by: By = "") -> Response:
        """The cost audit, as `gpuledger audit --json` prints it."""
        return await figures("audit", chosen, by=by)

    @app.get("/api/v1/efficiency", **options)
    async def efficiency(chosen: Chosen) -> Response:
        """The efficiency statement, as `gpuledger analyze --json` prints it."""
        return await figures("efficiency", chosen)

    @app.get("/api/v1/gpus", **options)
    async def gpus(chosen: Chosen, q: Find = "", sort: Sort = "") -> Response:
        """Every GPU: what it did, what it cost."""
        return await figures("gpus", chosen, q=q, sort=sort)

    @app.get("/api/v1/gpus/{device:path}", **options)
    async def gpu(device: Device, chosen: Chosen) -> Response:
        """One GPU hour by hour, and its stretches without work."""
        return await figures("gpu", chosen, device=device)

    @app.get("/api/v1/energy", **options)
    async def energy(chosen: Chosen) -> Response:
        """Energy and carbon next to dollars, by owner, region and hour."""
        return await figures("energy", chosen)

    @app.get("/api/v1/plans/move", **options)
    async def move(chosen: Chosen) -> Response:
        """What each namespace should move to."""
        return await figures("move", chosen)

    @app.get("/api/v1/data", **options)
    async def data(chosen: Chosen) -> Response:
        """What came in, and how old it is."""
        return await figures("data", chosen, minute=minute())


def _json(text: str | bytes) -> Response:
    return Response(text, media_type="application/json")
