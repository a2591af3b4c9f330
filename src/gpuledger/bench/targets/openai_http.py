"""How is an OpenAI-compatible endpoint asked, again and again, over connections that are kept?"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from gpuledger.bench.http_stream import Connection
from gpuledger.bench.load import Order
from gpuledger.bench.targets import TARGETS, Answer, Opened
from gpuledger.bench.targets.address import address_of, authorization, shown
from gpuledger.bench.targets.sse import Body, Completion
from gpuledger.catalog.files import data_dir

E = TypeVar("E", Completion, Body)
# Servers close a connection that rested for some seconds; none does after less than this.
RESTED_S = 1.0
# A host that did not answer so many times in a row, and never before, is not asked again.
TRIES = 3
CONNECT_S = 10.0
APIS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


class Settings(msgspec.Struct, frozen=True):
    """How to ask. `extra` is added to each request's body; `key_env` names the variable that holds the API key."""

    url: str
    model: str = ""
    api: str = "completions"
    stream: bool = True
    extra: dict[str, Any] = {}
    key_env: str = ""


@TARGETS.register("openai_http")
class OpenAiHttp:
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
        self._text = _words_of(seed)
        who = authorization(self._at, self._set.key_env)
        self._head = f"Host: {self._at.host}\r\nUser-Agent: gpuledger\r\nAccept: */*\r\n{who}"

    async def open(self) -> Opened:
        """Ask for the models: whether it answers, and which model it has where none was named."""
        raw = f"GET {self._at.target('/v1/models')} HTTP/1.1\r\n{self._head}\r\n".encode()
        body = await self._exchange(raw, lambda: Body(asyncio.get_running_loop()))
        url = shown(self._set.url)
        facts = {"url": url, "model": self._model}
        if body.code != 200 or body.why:
            problem = f"{url} does not say which models it has: {body.why or f'HTTP {body.code}'}"
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
        """As many words as tokens are wanted, begun at a random place: no cache has seen them."""
        count, text = order.input_tokens, self._text
        begin = self._dice.randrange(len(text))
        words = (text[begin:] + text * (count // len(text)) + text)[:count]
        return " ".join(words)

    async def _exchange(self, raw: bytes, make: Callable[[], E]) -> E:
        """Send, wait, and give what came of it, at the latest when the time is up."""
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
            # A server lets go of a connection that rested for long, maybe just as we ask: that is no failure of an
            # answer, and we ask on another one. One that was in use a moment ago broke off an answer.
            stale = rested_s >= RESTED_S and connection.silent and loop.time() < deadline
            connection.close()
            if not stale:
                return exchange

    def _rested(self, now: float) -> tuple[Connection | None, float]:
        """A connection from before that is still open, and how long it rested."""
        while self._idle:
            connection, since = self._idle.pop()
            if connection.usable:
                return connection, now - since
        return None, 0.0

    async def _connect(self, left_s: float) -> Connection | None:
        """A new connection; None, and why in `_unreachable`, where there is none or the host never had one."""
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

    def found(self) -> Mapping[str, Any]:
        """Nothing beyond the answers."""
        return {}

    async def close(self) -> None:
        """Let all connections go."""
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
    return tuple(data_dir("gpuledger.scaling", "data", "words.txt").read_text(encoding="utf-8").split())


def _words_of(seed: str) -> list[str]:
    """A text of short words, most of them one token each."""
    return random.Random(seed).choices(_vocabulary(), k=4096)  # noqa: S311
