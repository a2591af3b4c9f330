"""What bytes does a pretended OpenAI server send? Encoded once, so that a token costs one write."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

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
    broken_sse = _chunk(b"this is no event stream\n\n")
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
