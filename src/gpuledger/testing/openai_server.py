"""How is an OpenAI-compatible server tested against, over real sockets, without a model?

with OpenAiServer(ServerScript(ttft_s=0.02, per_token_s=0.002)) as server:
    ...  # server.url answers /v1/models, /v1/completions and /v1/chat/completions, streamed and not

python -m gpuledger.testing.openai_server --script steady --port 8000

A plain asyncio protocol with answers encoded beforehand: it must not be what limits a client under test.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
from collections import deque
from typing import Any

import msgspec

from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.testing.openai_script import Bodies, Decisions, FaultKind, ServerScript, http, load_script


class _Asked(msgspec.Struct):
    """What we read of a request's body."""

    stream: bool = False
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    prompt: Any = None
    messages: Any = None
    stream_options: Any = None


class _State:
    """What all connections of a server share."""

    def __init__(self, script: ServerScript) -> None:
        self.script, self.decisions, self.bodies = script, Decisions(script), Bodies(script.model)
        self.busy = 0
        self.line: deque[_Connection] = deque()
        self.open: set[_Connection] = set()

    def enter(self, one: _Connection) -> None:
        """Serve it now, or let it wait for a free slot."""
        if self.script.slots is not None and self.busy >= self.script.slots:
            self.line.append(one)
            return
        self.busy += 1
        one.begin()

    def leave(self) -> None:
        """A slot is free."""
        self.busy -= 1
        while self.line:
            one = self.line.popleft()
            if one.waiting:
                self.enter(one)
                return


class _Connection(asyncio.Protocol):
    """One connection: requests one after another, kept alive between them."""

    def __init__(self, state: _State, loop: asyncio.AbstractEventLoop) -> None:
        self._state, self._loop, self._buffer = state, loop, b""
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self.waiting = self._serving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._state.open.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._state.open.discard(self)
        self.waiting = False
        if self._timer:
            self._timer.cancel()
        self._done()

    def close(self) -> None:
        """Break off."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, gap, rest = self._buffer.partition(b"\r\n\r\n")
        if not gap:
            return
        first, _, fields = head.partition(b"\r\n")
        length = 0
        for field in fields.split(b"\r\n"):
            if field[:15].lower() == b"content-length:":
                length = int(field[15:])
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        self._route(first, rest[:length])

    def _route(self, first: bytes, body: bytes) -> None:
        path = first.split(b" ")[1] if first.count(b" ") == 2 else b""
        if path == b"/v1/models":
            self._transport.write(self._state.bodies.models)
        elif path in (b"/v1/completions", b"/v1/chat/completions"):
            try:
                self._asked = msgspec.json.decode(body, type=_Asked)
            except msgspec.DecodeError as error:
                self._transport.write(http(400, {"error": {"message": f"the body is not JSON: {error}"}}))
                return
            self._chat = path == b"/v1/chat/completions"
            self._fault, self._cold_s = self._state.decisions.next()
            self.waiting = True
            self._state.enter(self)
        else:
            self._transport.write(http(404, {"error": {"message": f"there is no {path.decode('latin-1')}"}}))

    def begin(self) -> None:
        """A slot is ours: answer after the time to the first token."""
        self.waiting, self._serving = False, True
        script = self._state.script
        self._tokens = self._asked.max_completion_tokens or self._asked.max_tokens or script.tokens
        self._given = 0
        self._due = self._loop.time() + script.ttft_s + self._cold_s
        if self._early(self._fault):
            return
        if self._asked.stream:
            bodies = self._state.bodies
            self._transport.write(bodies.head + bodies.role if self._chat else bodies.head)
            if script.ttft_s + self._cold_s + script.per_token_s:
                self._timer = self._loop.call_at(self._due, self._token)
            else:
                self._at_once()
            return
        whole_s = script.per_token_s * max(self._tokens - 1, 0)
        self._timer = self._loop.call_at(self._due + whole_s, self._whole)

    def _early(self, fault: FaultKind | None) -> bool:
        """Faults that come before any answer."""
        if fault == "refuse":
            self._transport.abort()
        elif fault in ("http_500", "http_429"):
            code, words = (500, "the model fell over") if fault == "http_500" else (429, "too many requests")
            self._transport.write(http(code, {"error": {"message": words}}))
            self._done()
        else:
            return False
        return True

    def _at_once(self) -> None:
        """The whole stream in one write, as long as nothing goes wrong in it."""
        if self._fault:
            while self._serving and self._given < self._tokens and self._step():
                pass
            return
        bodies = self._state.bodies
        self._transport.write(bodies.tokens(self._chat, self._tokens) + self._ending())
        self._done()

    def _token(self) -> None:
        if self._step():
            self._due += self._state.script.per_token_s
            self._timer = self._loop.call_at(self._due, self._token)

    def _step(self) -> bool:
        """One token of the stream; whether there is more to come."""
        bodies = self._state.bodies
        if self._fault and self._given >= min(2, self._tokens - 1) and self._fault.startswith("malformed"):
            self._transport.write(bodies.broken_json if self._fault == "malformed_json" else bodies.broken_sse)
            self._transport.write(bodies.last)
            self._done()
            return False
        if self._fault in ("drop", "stall") and self._given >= self._tokens // 2:
            if self._fault == "drop":
                self._transport.close()
            return False
        self._given += 1
        if self._given < self._tokens:
            self._transport.write(bodies.token(self._chat))
            return True
        self._transport.write(bodies.token(self._chat) + self._ending())
        self._done()
        return False

    def _ending(self) -> bytes:
        wants = isinstance(self._asked.stream_options, dict) and self._asked.stream_options.get("include_usage")
        usage = self._usage() if wants and self._state.script.usage else None
        return self._state.bodies.ending(self._chat, usage)

    def _usage(self) -> dict[str, int]:
        text = self._asked.prompt if self._asked.prompt is not None else self._asked.messages
        words = len(str(text).split()) if not isinstance(text, list) or self._chat else len(text)
        return {"prompt_tokens": words, "completion_tokens": self._tokens, "total_tokens": words + self._tokens}

    def _whole(self) -> None:
        if self._fault in ("drop", "stall"):
            if self._fault == "drop":
                self._transport.close()
            return
        bad = self._fault is not None
        usage = self._usage() if self._state.script.usage else None
        self._transport.write(self._state.bodies.whole(self._chat, self._tokens, usage, broken=bad))
        self._done()

    def _done(self) -> None:
        if self._serving:
            self._serving = False
            self._state.leave()
            if self._buffer:
                self.data_received(b"")


async def serve(script: ServerScript, host: str = "127.0.0.1", port: int = 0) -> tuple[asyncio.Server, _State]:
    """Listen; the caller keeps the server alive."""
    loop, state = asyncio.get_running_loop(), _State(script)
    server = await loop.create_server(lambda: _Connection(state, loop), host, port, backlog=4096)
    return server, state


class OpenAiServer:
    """A server in a thread of this process, for as long as the block lasts."""

    def __init__(self, script: ServerScript | str = "quick", host: str = "127.0.0.1", port: int = 0) -> None:
        self.script = load_script(script) if isinstance(script, str) else script
        self._host, self._port = host, port
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self.url = ""

    def __enter__(self) -> OpenAiServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        if not self._ready.wait(HUNG_S):
            raise RuntimeError("the pretended server did not begin to listen")
        return self

    async def _run(self) -> None:
        server, self._state = await serve(self.script, self._host, self._port)
        self._loop = asyncio.get_running_loop()
        self.url = f"http://{self._host}:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for connection in list(self._state.open):
            connection.close()
        await asyncio.sleep(0)

    @property
    def asked(self) -> int:
        """How many completions were asked for so far."""
        return self._state.decisions.asked

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(HUNG_S)


async def _forever(script: ServerScript, host: str, port: int) -> None:
    server, _ = await serve(script, host, port)
    sys.stdout.write(f"listening on http://{host}:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Serve until interrupted; the first line says where."""
    parser = argparse.ArgumentParser(description="A pretended OpenAI-compatible server.")
    parser.add_argument("--script", default="quick", help="quick, steady, cold, slow, dropping, or a TOML file")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    args = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_forever(load_script(args.script), args.host, args.port))


if __name__ == "__main__":
    main()
