"""What does a pretended OpenAI server do and send: how fast, how many tokens, and what goes wrong?

A script is a TOML file or a `ServerScript`. Which requests a fault hits is drawn by the seed and the order in which
they come, so a run can be repeated.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import UnknownName

FaultKind = Literal["refuse", "drop", "malformed_json", "malformed_sse", "http_500", "http_429", "stall"]


class ServerFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong with a share of the requests; the first `after` ones are spared, at most `times` are hit.

    refuse: the connection is closed without an answer. drop: closed after half of the tokens. malformed_json and
    malformed_sse: the answer, or its third event, cannot be read. stall: after half of the tokens nothing more comes.
    """

    kind: FaultKind
    share: float = 1.0
    after: int = 0
    times: int | None = None


class ServerScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the server behaves.

    `tokens`: how many it gives where the request sets no limit. `cold_s` is added to the first `cold_requests`.
    `slots`: how many it serves at once, the others wait in line. `usage`: whether it counts tokens itself.
    """

    model: str = "pretended"
    ttft_s: float = 0.0
    per_token_s: float = 0.0
    tokens: int = 32
    cold_requests: int = 0
    cold_s: float = 0.0
    slots: int | None = None
    usage: bool = True
    seed: int = 0
    faults: tuple[ServerFault, ...] = ()


class Decisions:
    """Decides, request by request, what goes wrong and how much longer it takes."""

    def __init__(self, script: ServerScript) -> None:
        self._script, self._dice = script, random.Random(script.seed)  # noqa: S311 - no secret
        self._left = [f.times for f in script.faults]
        self.asked = 0

    def next(self) -> tuple[FaultKind | None, float]:
        """The fault of the next request, and the seconds a cold server adds to it."""
        number, found = self.asked, None
        self.asked += 1
        for i, fault in enumerate(self._script.faults):
            # Drawn for every fault of every request, so that one fault does not move the others.
            hit = self._dice.random() < fault.share and number >= fault.after and self._left[i] != 0
            if hit and found is None:
                found = fault.kind
                left = self._left[i]
                self._left[i] = None if left is None else left - 1
        return found, self._script.cold_s if number < self._script.cold_requests else 0.0


@cache
def shipped() -> dict[str, Path]:
    """The scripts that come with gpuledger, by name."""
    folder = data_dir("gpuledger.testing", "data", "servers")
    return {Path(f.name).stem: Path(str(f)) for f in folder.iterdir() if f.name.endswith(".toml")}


def load_script(name: str | Path) -> ServerScript:
    """A script by its shipped name, or from a file."""
    path = Path(name)
    if path.suffix == ".toml":
        return load_toml(path, ServerScript)
    if str(name) not in shipped():
        raise UnknownName("server script", str(name), shipped())
    return load_toml(shipped()[str(name)], ServerScript)


_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
WORD = " word"


def http(code: int, body: Any) -> bytes:
    """A whole answer with a JSON body."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    head = f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    return head.encode() + raw


def _chunk(raw: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(raw), raw)


def _event(body: Any) -> bytes:
    return _chunk(b"data: " + msgspec.json.encode(body) + b"\n\n")


class Bodies:
    """The answers of one model."""

    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    broken_json = _chunk(b'data: {"choices": [{"text": " wo\n\n')
    broken_sse = _chunk(b"this is not an event stream\n\n")
    last = _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def __init__(self, model: str) -> None:
        self._model = model
        self.models = http(200, {"object": "list", "data": [{"id": model, "object": "model", "owned_by": "gpuledger"}]})
        self._tokens = {chat: _event(self._part(chat, WORD, None)) for chat in (False, True)}
        self._finish = {chat: _event(self._part(chat, "", "length")) for chat in (False, True)}
        self.role = _event(self._part(True, "", None, role="assistant"))
        self.tokens = cache(self._tokens_at_once)

    def _part(self, chat: bool, text: str, finish: str | None, **delta: str) -> dict[str, Any]:
        piece: dict[str, Any] = {"delta": {**delta, "content": text}} if chat else {"text": text}
        choice = {"index": 0, **piece, "logprobs": None, "finish_reason": finish}
        kind = "chat.completion.chunk" if chat else "text_completion"
        return {"id": "cmpl-0", "object": kind, "created": 0, "model": self._model, "choices": [choice]}

    def token(self, chat: bool) -> bytes:
        """One more token."""
        return self._tokens[chat]

    def _tokens_at_once(self, chat: bool, count: int) -> bytes:
        return self._tokens[chat] * count

    def ending(self, chat: bool, usage: dict[str, int] | None) -> bytes:
        """Why it ends, what it counted, and that it is done."""
        if usage is None:
            return self._finish[chat] + self.last
        count = {"id": "cmpl-0", "object": "usage", "created": 0, "model": self._model, "choices": [], "usage": usage}
        return self._finish[chat] + _event(count) + self.last

    def whole(self, chat: bool, tokens: int, usage: dict[str, int] | None, *, broken: bool) -> bytes:
        """An answer that is not streamed."""
        text = WORD * tokens
        piece: dict[str, Any] = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        choice = {"index": 0, **piece, "finish_reason": "length"}
        kind = "chat.completion" if chat else "text_completion"
        body: dict[str, Any] = {"id": "cmpl-0", "object": kind, "created": 0, "model": self._model, "choices": [choice]}
        raw = msgspec.json.encode({**body, "usage": usage} if usage else body)
        return http(200, raw[: len(raw) // 2] if broken else raw)
