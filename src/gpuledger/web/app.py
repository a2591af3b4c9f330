"""Which addresses does the dashboard answer? Pages, the same figures as JSON, and the stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from gpuledger import __version__
from gpuledger.errors import GpuledgerError, UnknownName
from gpuledger.web.asking import NotReady
from gpuledger.web.events import Hub
from gpuledger.web.guard import Guard
from gpuledger.web.json_routes import add_json
from gpuledger.web.live_lake import Filters, LiveLake
from gpuledger.web.metrics_route import add_metrics
from gpuledger.web.page_routes import add_pages, warm
from gpuledger.web.shell import Asked, message


def create_app(live: LiveLake, *, token: str | None = None, hosts: Sequence[str] = (), every_s: float = 2.0) -> FastAPI:
    """The whole dashboard of one lake."""
    hub = Hub(live, every_s, lambda: warm(live))

    @asynccontextmanager
    async def running(_app: FastAPI) -> AsyncIterator[None]:
        hub.start()
        yield
        hub.stop()

    app = FastAPI(
        title="gpuledger", version=__version__, lifespan=running, docs_url=None, redoc_url=None,
        description="What each GPU did, what it cost and what to change. Read-only.",
    )  # fmt: skip
    app.middleware("http")(Guard(token, hosts))
    app.state.hub = hub
    _errors(app, live)
    add_pages(app, live)
    add_json(app, live)
    add_metrics(app, live)
    _streams(app, hub)
    return app


def _errors(app: FastAPI, live: LiveLake) -> None:
    def answer(request: Request, code: int, title: str, words: str, hint: str) -> Response:
        more = {"Retry-After": "2"} if code == 503 else None
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": words, "hint": hint}, code, more)
        asked = Asked(request.url.path, Filters())
        return HTMLResponse(message(title, words, hint, asked, live.status), code, more)

    @app.exception_handler(GpuledgerError)
    def _refused(request: Request, error: GpuledgerError) -> Response:
        code = 404 if isinstance(error, UnknownName) else 400
        return answer(request, code, "That cannot be shown", error.message, error.hint)

    @app.exception_handler(NotReady)
    def _not_ready(request: Request, _error: NotReady) -> Response:
        now = live.status
        titles = {"loading": "Reading the lake", "empty": "No data yet", "error": "The lake cannot be read"}
        words = now.problem or "The first statements are being made; this page shows them as soon as they are."
        return answer(request, 503, titles.get(now.state, "Not ready"), words, now.hint)

    @app.exception_handler(HTTPException)
    def _no_such(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, "No such page", str(error.detail), "go to the overview: /")

    @app.exception_handler(RequestValidationError)
    def _wrong(request: Request, error: RequestValidationError) -> Response:
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
