"""What is in the answer of an OpenAI-compatible server: tokens, counts, its end, an error?

Each event is decoded as it comes, into the few fields that matter: about a microsecond each.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from gpuledger.bench.http_stream import Body
from gpuledger.bench.targets import Answer
from gpuledger.units import Unknown

NO_END = "the stream ended without an end event"
NOT_COUNTED = Unknown("the server did not count them")


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Part(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Part).decode


class Completion(Body):
    """One answer while it comes in; the request decides whether it is streamed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, stream: bool) -> None:
        super().__init__(loop)
        self._loop, self._stream = loop, stream
        self._rest = b""
        self._usage: _Usage | None = None
        self._ended = False
        self.first_s = self.last_s = self.max_gap_s = 0.0
        self.chunks = 0

    def piece(self, data: bytes) -> None:
        """More of the body."""
        if self.code != 200 or not self._stream:
            super().piece(data)
            return
        if self._rest:
            data = self._rest + data
        lines = data.split(b"\n")
        self._rest = lines.pop()
        now, before = self._loop.time(), self.chunks
        for line in lines:
            if line[:5] == b"data:":
                self._event(line[5:].strip())
            elif line and line[0] not in b":\r" and line.partition(b":")[0] not in (b"event", b"id", b"retry"):
                self.fail(f"malformed event stream: {line[:60]!r}")
        if self.chunks > before:
            if not before:
                self.first_s = now
            elif now - self.last_s > self.max_gap_s:
                self.max_gap_s = now - self.last_s
            self.last_s = now

    def _event(self, raw: bytes) -> None:
        try:
            part = _decode(raw)
        except msgspec.DecodeError as error:
            if raw == b"[DONE]":
                self._ended = True
            else:
                self.fail(f"malformed JSON in the stream: {error}")
            return
        for choice in part.choices:
            delta = choice.delta
            if choice.text or (delta is not None and (delta.content or delta.reasoning_content)):
                self.chunks += 1
            if choice.finish_reason is not None:
                self._ended = True
        if part.usage is not None:
            self._usage = part.usage
        if part.error is not None:
            self.fail(f"the server said: {_words(part.error)}")

    def finished(self) -> None:
        """The whole answer came."""
        if self.code != 200:
            self.fail(f"HTTP {self.code}: {_body_words(self.raw)}")
        elif not self._stream:
            self._whole()
        elif not self._ended:
            self.fail(NO_END)
        super().finished()

    def _whole(self) -> None:
        try:
            part = _decode(self.raw)
        except msgspec.DecodeError as error:
            self.fail(f"malformed JSON in the answer: {error}")
            return
        self._usage = part.usage
        if part.error is not None:
            self.fail(f"the server said: {_words(part.error)}")
        elif not part.choices:
            self.fail("the answer has no choices")

    def answer(self, began_s: float) -> Answer:
        """The outcome, in seconds from `began_s` on."""
        usage = self._usage or _Usage()
        tokens, taken = usage.completion_tokens, usage.prompt_tokens
        more: dict[str, Any] = {"tokens_from": "events" if tokens is None else "usage"} if self._stream else {}
        if self.chunks > 1:
            more["max_gap_s"] = round(self.max_gap_s, 6)
        if tokens is None and self._stream:
            tokens = self.chunks
        no_token = Unknown("no token came" if self._stream else "the answer was not streamed")
        return Answer(
            ok=not self.why,
            latency_s=self._loop.time() - began_s,
            ttft_s=self.first_s - began_s if self.chunks else no_token,
            input_tokens=NOT_COUNTED if taken is None else taken,
            output_tokens=NOT_COUNTED if tokens is None else tokens,
            error=self.why,
            more=more,
        )


def _words(error: Any) -> str:
    said = error.get("message", error) if isinstance(error, dict) else error
    return str(said)[:200]


def _body_words(raw: bytes) -> str:
    try:
        found = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return raw[:200].decode("utf-8", "replace").strip() or "no words"
    return _words(found.get("error", found)) if isinstance(found, dict) else str(found)[:200]
