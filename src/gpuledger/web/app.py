"""Which addresses does the dashboard answer? Pages, the same figures as JSON, and the stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from gpuledger import __version__
from gpuledger.errors import GpuledgerError, LakeError, UnknownName
from gpuledger.web.contract import Filters, Maker, NotReady
from gpuledger.web.desk import Desk
from gpuledger.web.events import Hub
from gpuledger.web.guard import Guard
from gpuledger.web.json_routes import add_json
from gpuledger.web.metrics_route import add_metrics
from gpuledger.web.page_routes import add_files, add_pages
from gpuledger.web.shell import Asked, message


def create_app(
    maker: Maker, *, token: str | None = None, hosts: Sequence[str] = (), every_s: float = 2.0,
    stale_ms: int | None = None,
) -> FastAPI:  # fmt: skip
    """The whole dashboard of one lake; `maker` makes its views. `stale_ms`: from when on pages show the age of the
    newest sample.
    """
    desk = Desk(maker)
    hub = Hub(desk, every_s, stale_ms)

    @asynccontextmanager
    async def running(_app: FastAPI) -> AsyncIterator[None]:
        hub.start()
        yield
        hub.stop()

    app = FastAPI(
        title="gpuledger", version=__version__, lifespan=running, docs_url=None, redoc_url=None,
        description="What each GPU did, what it cost and what to change. Read-only.",
    )  # fmt: skip
    app.add_middleware(Guard, token=token, hosts=hosts)
    app.state.hub = hub
    _errors(app, desk)
    add_pages(app, desk)
    add_files(app, desk)
    add_json(app, desk)
    add_metrics(app, desk)
    _streams(app, hub)
    return app


def _errors(app: FastAPI, desk: Desk) -> None:
    def answer(
        request: Request, code: int, title: str, words: str, hint: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        more = {**(headers or {}), **({"Retry-After": "2"} if code == 503 else {})}
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": words, "hint": hint}, code, more)
        if request.url.path == "/metrics":  # Prometheus shows a reason it can read
            return PlainTextResponse(f"{words}\nnext: {hint}\n" if hint else f"{words}\n", code, more)
        asked = Asked(request.url.path, Filters())
        return HTMLResponse(message(title, words, hint, asked, desk.status), code, more)

    @app.exception_handler(GpuledgerError)
    async def _refused(request: Request, error: GpuledgerError) -> Response:
        code = 404 if isinstance(error, UnknownName) else 503 if isinstance(error, LakeError) else 400
        return answer(request, code, "That cannot be shown", error.message, error.hint)

    @app.exception_handler(NotReady)
    async def _not_ready(request: Request, _error: NotReady) -> Response:
        now = desk.status
        titles = {"loading": "Reading the lake", "empty": "No data yet", "error": "The lake cannot be read"}
        words = now.problem or "The first statements are being made; this page shows them as soon as they are."
        return answer(request, 503, titles.get(now.state, "Not ready"), words, now.hint)

    @app.exception_handler(HTTPException)
    async def _no_such(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            words, hint = f"{request.method} is not answered: this server is read-only", "ask with GET"
            return answer(request, 405, "Read-only", words, hint, error.headers)
        hint = "the addresses are at /docs/api" if request.url.path.startswith("/api/") else "go to the overview: /"
        return answer(request, error.status_code, "No such page", str(error.detail), hint, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _wrong(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": [{k: e[k] for k in ("loc", "msg", "type")} for e in error.errors()]}, 422)
        return answer(request, 422, "That cannot be shown", f"{where}: {first['msg']}", "change the address")


def _streams(app: FastAPI, hub: Hub) -> None:
    @app.get("/events", include_in_schema=False)
    async def events(request: Request, seen: Annotated[int, Query(ge=0)] = 0) -> StreamingResponse:
        last = request.headers.get("last-event-id", "")
        return StreamingResponse(hub.events(int(last) if last.isdecimal() else seen), media_type="text/event-stream")

    @app.get("/health", include_in_schema=False)
    async def health() -> PlainTextResponse:
        return PlainTextResponse("ok\n")
