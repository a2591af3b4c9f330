"""Who may look at the dashboard, and what may a page do?

On this machine alone anyone may look. Bound elsewhere, a token is asked for: in a header, or once in the address, which
then becomes a cookie. A request for a host name that is not ours is refused, so that a foreign page cannot look in
through the viewer's browser; an address in digits is always one of ours, as no foreign name stands for it.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import ipaddress
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
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


WRONG_WAITS_S = 0.5
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>gpuledger</title>
<style>body {{ font: 18px/1.5 sans-serif; max-width: 34em; margin: 3em auto; padding: 0 1em; }}
input, button {{ font: inherit; padding: 4px 8px; }}</style></head>
<body><main><h1>{title}</h1><p>{words}</p>{form}</main></body></html>
"""
_FORM = """<form method="get"><label>Token <input type="password" name="token" autocomplete="off" required></label>
<button type="submit">Show</button></form>"""


class Guard:
    """Checks each request before it is answered, and puts safe headers on each answer."""

    def __init__(self, app: ASGIApp, token: str | None, hosts: Sequence[str]) -> None:
        self._app, self._token = app, token
        self._hosts = {host.casefold() for host in (*LOOPBACK, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer, or why there is none."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        head = scope["method"] == "HEAD"  # answered as GET, without the body

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            elif head:
                message = {**message, "body": b""}
            await send(message)

        scope = {**scope, "method": "GET"} if head else scope
        request = Request(scope)
        refused = self._refusal(request)
        if refused is not None and refused.status_code == 401 and self._shown(request):
            await asyncio.sleep(WRONG_WAITS_S)  # so that tokens are not tried by the thousand
        return await (refused or self._app)(scope, receive, safely)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "").casefold()
        name = host if host.startswith("[") and host.endswith("]") else host.rsplit(":", 1)[0]
        if name not in self._hosts and not _in_digits(name):
            words = f"this server is not called {name[:80]!r}"
            return _problem(request, 421, words, "start it with --name NAME, or use a name or address of its machine")
        if self._token is None or request.url.path in OPEN:
            return None
        given = request.query_params.get("token")
        if given is not None and self._right(given):
            return self._let_in(request)
        if self._right(self._shown(request)):
            return None
        words = "the token is not right" if self._shown(request) else "a token is needed"
        hint = "use the address that gpuledger serve printed, or Authorization: Bearer TOKEN"
        return _problem(request, 401, words, hint, {"WWW-Authenticate": "Bearer"})

    def _shown(self, request: Request) -> str:
        """The token a request brings: in a header, kept as a cookie, or in the address."""
        header = request.headers.get("authorization", "")
        kept = request.cookies.get(cookie_name(request), "") or request.query_params.get("token", "")
        return header[7:] if header[:7].casefold() == "bearer " else kept

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), (self._token or "").encode())

    def _let_in(self, request: Request) -> Response:
        """The same address without the token, which the browser keeps from here on."""
        rest = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        to = re.sub(r"[/\\]{2,}", "/", request.url.path) + (f"?{urlencode(rest)}" if rest else "")
        answer = RedirectResponse(to, 303)
        answer.set_cookie(
            cookie_name(request),
            self._token or "",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer


def cookie_name(request: Request) -> str:
    """Of this dashboard: browsers keep cookies by host, and another dashboard may run on another port of it."""
    server = request.scope.get("server")
    return f"{COOKIE}_{server[1]}" if server and server[1] else COOKIE


def _in_digits(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _problem(request: Request, code: int, words: str, hint: str, headers: Mapping[str, str] | None = None) -> Response:
    """Why a request is refused: a page where a browser asks, else JSON."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": words, "hint": hint}, code, headers)
    title, form = html.escape(words[:1].upper() + words[1:]), ""
    if code == 401:
        hint, form = "Open the address that gpuledger serve printed, or enter its token.", _FORM
    return HTMLResponse(_PAGE.format(title=title, words=html.escape(hint[:1].upper() + hint[1:]), form=form), code)
