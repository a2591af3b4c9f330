"""At which addresses are the pages, and what does each address take?"""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from gpuledger.report.document import Document, Section
from gpuledger.report.tables import make_table
from gpuledger.web.asking import By, Chosen, Device, Find, Sort
from gpuledger.web.contract import Ask, Filters
from gpuledger.web.desk import Desk
from gpuledger.web.shell import Asked, page, static_files

SIMPLE = ("/", "/timeline", "/savings", "/energy", "/plans")


def add_pages(app: FastAPI, desk: Desk) -> None:
    """Answer the addresses of pages."""
    options: dict[str, Any] = {"response_class": HTMLResponse, "include_in_schema": False}

    async def shown(path: str, chosen: Filters, **params: str | int) -> HTMLResponse:
        return HTMLResponse(await desk.answer(Ask("page", path, chosen, tuple(params.items()))))

    def simple(path: str) -> None:
        @app.get(path, **options)
        async def answer(chosen: Chosen) -> HTMLResponse:
            return await shown(path, chosen)

    for path in SIMPLE:
        simple(path)

    @app.get("/data", **options)
    async def data(chosen: Chosen) -> HTMLResponse:
        return await shown("/data", chosen, minute=minute())

    @app.get("/owners", **options)
    async def owners(chosen: Chosen, by: By = "") -> HTMLResponse:
        return await shown("/owners", chosen, by=by)

    @app.get("/gpus", **options)
    async def gpus(
        chosen: Chosen, q: Find = "", sort: Sort = "", page: Annotated[int, Query(ge=1, le=10**6)] = 1
    ) -> HTMLResponse:
        return await shown("/gpus", chosen, q=q, sort=sort, page=page)

    @app.get("/gpus/{device:path}", **options)
    async def gpu(device: Device, chosen: Chosen) -> HTMLResponse:
        return await shown("/gpus/one", chosen, device=device)


def add_files(app: FastAPI, desk: Desk) -> None:
    """Answer the addresses of what pages load, and of the page about the API."""

    @app.get("/docs/api", response_class=HTMLResponse, include_in_schema=False)
    async def api() -> HTMLResponse:
        return HTMLResponse(_api_page(app, desk))

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        found = static_files().get(name)
        if found is None:
            raise HTTPException(404, f"no file is called {name[:80]!r}")
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "max-age=300"})


def minute() -> int:
    """Which minute it is: a page that shows an age holds for one."""
    return int(time.time() // 60)


def _api_page(app: FastAPI, desk: Desk) -> str:
    rows = [[path, what["get"].get("description", "")] for path, what in app.openapi()["paths"].items()]
    table = make_table("api", "Addresses", ("GET", "What it gives"), "ww", rows)
    document = Document(
        name="api",
        kind="JSON API",
        title="JSON API",
        headline="The same figures as JSON; /openapi.json describes them",
        sections=[Section("addresses", "Addresses", [table])],
    )
    return page(document, Asked("/docs/api", Filters()), desk.status, {})
