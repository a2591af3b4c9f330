"""Where is an OpenAI-compatible endpoint, and how are requests sent there over connections that are kept?"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec

from gpuledger.bench.http_stream import Body, Connection
from gpuledger.bench.load import Order
from gpuledger.bench.targets import TARGETS, Answer, Opened, Target
from gpuledger.bench.targets.sse import Completion
from gpuledger.catalog.files import data_dir
from gpuledger.errors import InputError

E = TypeVar("E", Completion, Body)
# Servers close a connection that was idle for some seconds; none does after less than this.
RESTED_S = 1.0
# A host that never answered and refused this many times in a row is given up.
TRIES = 3
CONNECT_S = 10.0
APIS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
HIDDEN = "***"
_USER = re.compile(r"(?<=//).*@")  # to the last @: a password may hold anything where it was not encoded
_SECRET = re.compile(r"([?&][^=&#]*(?:key|token|secret|sig|pass|auth|code)[^=&#]*=)[^&#]*", re.IGNORECASE)
_UNSENDABLE = re.compile(r"[\x00-\x20\x7f]")
_AS_WRITTEN = "/%:=&?~+!$,;'@()*[]"


@dataclass(frozen=True)
class Address:
    """An endpoint: `host` as it is sent, `path` without /v1, `query` with its question mark or empty."""

    secure: bool
    hostname: str
    port: int
    host: str
    path: str
    query: str
    basic: str

    def target(self, api: str) -> str:
        """The path of an API, with the query of the address."""
        return f"{self.path}{api}{self.query}"


def shown(url: str) -> str:
    """The address for results and messages: without user, password or query values that look like secrets."""
    return _SECRET.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", url))


def address_of(url: str) -> Address:
    """The parts of an endpoint's address; refused where it is not an address."""
    hint = "write it as http://HOST:PORT, or NAME=http://HOST:PORT"
    try:
        found = urlsplit(url)
        port, name = found.port, found.hostname
    except ValueError:
        raise InputError(f"{shown(url)!r} is not an endpoint", hint=hint) from None
    if found.scheme not in ("http", "https") or not name or port == 0 or _UNSENDABLE.search(url):
        raise InputError(f"{shown(url)!r} is not an endpoint", hint=hint)
    if "@" in found.netloc and "@" in found.path + found.query:
        encode = "write @ as %40 and / as %2F in user and password"
        raise InputError(f"{shown(url)!r} is not an endpoint: it has two @", hint=encode)
    secure = found.scheme == "https"
    user = f"{unquote(found.username or '')}:{unquote(found.password or '')}"
    return Address(
        secure=secure,
        hostname=name,
        port=port or (443 if secure else 80),
        host=found.netloc.rpartition("@")[2],
        path=quote(found.path.rstrip("/").removesuffix("/v1"), safe=_AS_WRITTEN),
        query=f"?{quote(found.query, safe=_AS_WRITTEN)}" if found.query else "",
        basic=base64.b64encode(user.encode()).decode() if "@" in found.netloc else "",
    )


def authorization(address: Address, key_env: str) -> str:
    """The Authorization header, or nothing; a user in the address comes before the variable with the API key."""
    if address.basic:
        return f"Authorization: Basic {address.basic}\r\n"
    key = os.environ.get(key_env, "") if key_env else ""
    if _UNSENDABLE.search(key) or not key.isascii():
        raise InputError(
            f"the API key in {key_env} holds a line break, a space or another character that cannot be sent",
            hint=f"set {key_env} to the key alone; tr -d '[:space:]' < FILE takes line breaks out of a file",
        )
    return f"Authorization: Bearer {key}\r\n" if key else ""


class Settings(msgspec.Struct, frozen=True):
    """How to send requests. `extra` is added to each body; `key_env` names the variable with the API key."""

    url: str
    model: str = ""
    api: str = "completions"
    stream: bool = True
    extra: dict[str, Any] = {}
    key_env: str = ""


@TARGETS.register("openai_http")
class OpenAiHttp(Target):
    """One endpoint."""

    remote = True

    def __init__(self, settings: Mapping[str, Any], seed: str, timeout_s: float) -> None:
        self._set = msgspec.convert(dict(settings), Settings)
        self._at = address_of(self._set.url)
        self._refused, self._reached, self._unreachable = 0, False, ""
        self._model, self._timeout_s = self._set.model, timeout_s
        self._idle: list[tuple[Connection, float]] = []
        self._secure = ssl.create_default_context() if self._at.secure else None
        self._dice = random.Random(seed)  # noqa: S311 - prompts, not secrets
        self._text = random.Random(seed).choices(_vocabulary(), k=4096)  # noqa: S311
        who = authorization(self._at, self._set.key_env)
        self._head = f"Host: {self._at.host}\r\nUser-Agent: gpuledger\r\nAccept: */*\r\n{who}"

    async def open(self) -> Opened:
        """List the models: whether the endpoint answers, and its first model where none was named."""
        raw = f"GET {self._at.target('/v1/models')} HTTP/1.1\r\n{self._head}\r\n".encode()
        body = await self._exchange(raw, lambda: Body(asyncio.get_running_loop()))
        url = shown(self._set.url)
        facts = {"url": url, "model": self._model}
        if body.code != 200 or body.why:
            problem = f"{url} does not list its models: {body.why or f'HTTP {body.code}'}"
            return Opened(facts, problem, unreachable=self._unreachable)
        with contextlib.suppress(msgspec.DecodeError, KeyError, IndexError, TypeError):
            self._model = self._model or str(msgspec.json.decode(body.raw)["data"][0]["id"])
        return Opened(facts | {"model": self._model})

    async def ask(self, order: Order) -> Answer:
        """One request, and its answer to the last token."""
        loop = asyncio.get_running_loop()
        began, raw = loop.time(), self._request(order)
        completion = await self._exchange(raw, lambda: Completion(loop, stream=self._set.stream))
        return completion.answer(began)

    def _request(self, order: Order) -> bytes:
        body: dict[str, Any] = {"model": self._model, "max_tokens": order.output_tokens, "stream": self._set.stream}
        if self._set.stream:
            body["stream_options"] = {"include_usage": True}
        prompt = self._prompt(order)
        body |= (
            {"prompt": prompt}
            if self._set.api == "completions"
            else {"messages": [{"role": "user", "content": prompt}]}
        )
        raw = msgspec.json.encode(body | self._set.extra)
        head = f"POST {self._at.target(APIS[self._set.api])} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\n"
        return f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw

    def _prompt(self, order: Order) -> str:
        """As many words as tokens were ordered, from a random place on, so that no cache has seen them."""
        count, text = order.input_tokens, self._text
        begin = self._dice.randrange(len(text))
        words = (text[begin:] + text * (count // len(text)) + text)[:count]
        return " ".join(words)

    async def _exchange(self, raw: bytes, make: Callable[[], E]) -> E:
        """Send, and wait for the answer until the time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s
        while True:
            exchange, (kept, rested_s) = make(), self._rested(loop.time())
            connection = kept or await self._connect(deadline - loop.time())
            if connection is None:
                exchange.broken(self._unreachable)
                return exchange
            timer = loop.call_at(deadline, exchange.broken, f"no whole answer within {self._timeout_s:g} s")
            connection.ask(raw, exchange)
            await exchange.done
            timer.cancel()
            if connection.usable and connection.free:
                self._idle.append((connection, loop.time()))
                return exchange
            # A server may close an idle connection just as we send: that is not a failed answer, and we try another
            # one. A connection that was in use a moment ago broke off an answer.
            stale = rested_s >= RESTED_S and connection.silent and loop.time() < deadline
            connection.close()
            if not stale:
                return exchange

    def _rested(self, now: float) -> tuple[Connection | None, float]:
        """A kept connection that is still open, and how long it was idle."""
        while self._idle:
            connection, since = self._idle.pop()
            if connection.usable:
                return connection, now - since
        return None, 0.0

    async def _connect(self, left_s: float) -> Connection | None:
        """A new connection; None, and why in `_unreachable`, where the host cannot be reached."""
        if self._refused >= TRIES and not self._reached:
            return None
        loop, within_s = asyncio.get_running_loop(), min(left_s, CONNECT_S)
        joining = loop.create_connection(Connection, self._at.hostname, self._at.port, ssl=self._secure)
        try:
            _, connection = await asyncio.wait_for(joining, within_s)
        except (OSError, ValueError) as error:
            self._refused += 1
            self._unreachable = _why_not(error, min(self._timeout_s, CONNECT_S))
            return None
        self._reached, self._refused, self._unreachable = True, 0, ""
        return connection

    async def close(self) -> None:
        """Close all connections."""
        for connection, _ in self._idle:
            connection.close()
        await asyncio.sleep(0)


def _why_not(error: Exception, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"cannot connect within {timeout_s:g} s"
    if isinstance(error, ConnectionRefusedError):
        return "cannot connect: connection refused"
    return f"cannot connect: {error}"


@cache
def _vocabulary() -> tuple[str, ...]:
    """Short words, most of them one token each."""
    return tuple(data_dir("gpuledger.bench", "data", "words.txt").read_text(encoding="utf-8").split())
