"""Who may look at the dashboard, and what may a page do?

On this machine alone anyone may look. Bound elsewhere, a token is asked for: in a header, or once in the address, which
then becomes a cookie. A request for a host name that is not ours is refused, so that a foreign page cannot look in
through the viewer's browser.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "gpuledger_token"
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
OPEN = ("/health",)  # for probes; it shows nothing of the lake
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src 'self' "
        "data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Checks each request before it is answered, and puts safe headers on each answer."""

    def __init__(self, app: ASGIApp, token: str | None, hosts: Sequence[str]) -> None:
        self._app, self._token = app, token
        self._hosts = {host.casefold() for host in (*LOOPBACK, *hosts)}
        self._any_host = "*" in self._hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer, or why there is none."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return await (self._refusal(Request(scope)) or self._app)(scope, receive, safely)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "").casefold()
        name = host if host.startswith("[") and host.endswith("]") else host.rsplit(":", 1)[0]
        if not (self._any_host or name in self._hosts):
            problem = {"error": f"this server is not called {name[:80]!r}", "hint": "start it with --name NAME"}
            return JSONResponse(problem, 421)
        if self._token is None or request.url.path in OPEN:
            return None
        given = request.query_params.get("token")
        if given is not None and self._right(given):
            return self._let_in(request)
        header = request.headers.get("authorization", "")
        shown = header[7:] if header[:7].casefold() == "bearer " else request.cookies.get(COOKIE, "")
        if self._right(shown):
            return None
        problem = {"error": "a token is needed", "hint": "open the address that gpuledger serve printed"}
        return JSONResponse(problem, 401, {"WWW-Authenticate": "Bearer"})

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), (self._token or "").encode())

    def _let_in(self, request: Request) -> Response:
        """The same address without the token, which the browser keeps from here on."""
        rest = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        to = request.url.path.replace("//", "/") + (f"?{urlencode(rest)}" if rest else "")
        answer = RedirectResponse(to, 303)
        answer.set_cookie(
            COOKIE, self._token or "", httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer
