"""Which pages are there, and what is on each?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from gpuledger.report.document import Document, Section
from gpuledger.report.documents import document_of
from gpuledger.report.tables import make_table
from gpuledger.web import gpu_table, pages
from gpuledger.web.asking import Chosen, Text, ready
from gpuledger.web.live_lake import Filters, LiveLake
from gpuledger.web.shell import Asked, page, static_files

NAMES = 200  # of a filter's choices
Made = tuple[Document, dict[str, Any]]


def data_document(live: LiveLake, given: Filters) -> Document:
    """What came in, as of now."""
    return pages.data_page(live.lake, live.audit(given), int(time.time() * 1000))


SIMPLE: dict[str, Callable[[LiveLake, Filters], Document]] = {
    "/": lambda live, given: pages.overview(live.audit(given)),
    "/timeline": lambda live, given: pages.timeline(live.efficiency(given)),
    "/savings": lambda live, given: pages.savings(live.audit(given)),
    "/plans": lambda live, given: document_of(live.moves(given)),
    "/data": data_document,
}


def add_pages(app: FastAPI, live: LiveLake) -> None:
    """Answer the addresses of pages."""
    options: dict[str, Any] = {"response_class": HTMLResponse, "include_in_schema": False}

    def simple(path: str, make: Callable[[LiveLake, Filters], Document]) -> None:
        @app.get(path, **options)
        def answer(chosen: Chosen) -> HTMLResponse:
            return _shown(live, path, chosen, (), lambda given: (make(live, given), {}))

    for path, make in SIMPLE.items():
        simple(path, make)

    @app.get("/owners", **options)
    def owners(chosen: Chosen, by: Text = "team") -> HTMLResponse:
        more = {"by": by, "owners": pages.OWNERS}
        return _shown(live, "/owners", chosen, (by,), lambda given: (pages.owners(live.audit(given, by=by)), more))

    @app.get("/gpus", **options)
    def gpus(
        chosen: Chosen, q: Text = "", sort: Text = "", page: Annotated[int, Query(ge=1, le=10**6)] = 1
    ) -> HTMLResponse:
        order = gpu_table.order_of(sort)
        return _shown(live, "/gpus", chosen, (q, order, page), lambda given: _gpus(live, given, q, order, page))

    @app.get("/gpus/{device:path}", **options)
    def gpu(device: str, chosen: Chosen) -> HTMLResponse:
        return _shown(live, "/gpus", chosen, (device,), lambda given: (document_of(live.gpu(given, device)), {}))

    @app.get("/docs/api", **options)
    def api() -> HTMLResponse:
        return HTMLResponse(_api_page(app, live))

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        found = static_files().get(name)
        if found is None:
            raise HTTPException(404, f"there is no file {name[:80]!r}")
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "max-age=300"})


def warm(live: LiveLake) -> None:
    """Draw the overview as most viewers ask for it."""
    _shown(live, "/", Filters(), (), lambda given: (SIMPLE["/"](live, given), {}))


def _shown(
    live: LiveLake, path: str, chosen: Filters, kind: Sequence[object], make: Callable[[Filters], Made]
) -> HTMLResponse:
    """A page, drawn once per edition of the lake."""
    given = ready(live, chosen)

    def draw() -> str:
        document, more = make(given)
        names = live.once("names", live.default, lambda: _names(live))
        return page(document, Asked(path, chosen), live.status, names, **more)

    return HTMLResponse(live.once("page", chosen, draw, None, path, *kind))


def _names(live: LiveLake) -> dict[str, list[str]]:
    """What the filters may choose from."""
    made = live.efficiency(live.default)
    clusters = sorted({g.cluster for g in made.per_gpu if g.cluster})
    spaces = [row.name for row in made.by_namespace]
    return {"cluster": clusters[:NAMES], "namespace": sorted(spaces)[:NAMES]}


def gpu_lines(live: LiveLake, given: Filters) -> list[gpu_table.GpuLine]:
    """All GPUs of a scope, made once."""

    def make() -> list[gpu_table.GpuLine]:
        return gpu_table.gpu_lines(live.audit(given), live.efficiency(given), live.recent(given)[1])

    return live.once("lines", given, make)


def _gpus(live: LiveLake, given: Filters, q: str, sort: str, at: int) -> Made:
    whole = gpu_lines(live, given)
    found = gpu_table.chosen_lines(whole, q, sort)
    count = max(1, -(-len(found) // gpu_table.PER_PAGE))
    at = min(at, count)
    shown = found[(at - 1) * gpu_table.PER_PAGE : at * gpu_table.PER_PAGE]
    document = Document(name="gpus", kind="GPUs", title="GPUs", headline=gpu_table.headline(found))
    more = {"lines": shown, "found": len(found), "total": len(whole), "q": q, "sort": sort}
    return document, more | {"at_page": at, "pages_in_all": count}


def _api_page(app: FastAPI, live: LiveLake) -> str:
    rows = [[path, what["get"].get("description", "")] for path, what in app.openapi()["paths"].items()]
    table = make_table("api", "Addresses", ("GET", "What it gives"), "ww", rows)
    document = Document(
        name="api",
        kind="JSON API",
        title="JSON API",
        headline="The same figures as JSON; /openapi.json describes them",
        sections=[Section("addresses", "Addresses", [table])],
    )
    return page(document, Asked("/docs/api", Filters()), live.status, {})
