"""Does each target time what it should, count tokens right, and name what went wrong?"""

from __future__ import annotations

import asyncio
import socket
import sys
import time

import pytest

from gpuledger.bench.load import Order
from gpuledger.bench.targets import TARGETS, openai_http
from gpuledger.bench.targets.python_callable import load_callable
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.errors import InputError, UnknownName
from gpuledger.testing.openai_script import ServerFault, ServerScript
from gpuledger.testing.openai_server import OpenAiServer
from gpuledger.units import Unknown

STEADY = ServerScript(ttft_s=0.06, per_token_s=0.05)
HURRY_S = 0.4


def answers(kind, settings, count=1, timeout_s=HUNG_S, hurried=None, **order):
    """What comes of some requests; the one that is `hurried` has less than half a second."""

    async def work():
        target = TARGETS.get(kind)(settings, "0/a", timeout_s)
        opened = await target.open()
        orders = [Order(i, **{"input_tokens": 7, "output_tokens": 5, **order}) for i in range(count)]
        found = []
        for i, one in enumerate(orders):
            target._timeout_s = HURRY_S if i == hurried else timeout_s
            found.append(await target.ask(one))
        await target.close()
        return opened, found

    return asyncio.run(work())


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_stream_is_timed_to_its_first_and_last_token(api):
    with OpenAiServer(STEADY) as server:
        opened, found = answers("openai_http", {"url": server.url, "api": api}, 6)
    assert opened.facts["model"] == "pretended"
    for answer in found:
        assert answer.ok
        assert (answer.input_tokens, answer.output_tokens) == (7 if api == "completions" else answer.input_tokens, 5)
        assert answer.more["tokens_from"] == "usage"
        # The role that begins a chat is no token: it comes at once, the first token does not.
        assert answer.ttft_s >= 0.06
        assert answer.latency_s >= 0.26
        assert answer.latency_s >= answer.ttft_s + answer.more["max_gap_s"] - 1e-5
    # Where the machine held up an answer, its figures say so; it does not hold up all of them.
    assert min(a.ttft_s for a in found) < 0.4
    assert min(a.latency_s for a in found) < 1.0
    assert max(a.latency_s - a.ttft_s for a in found) > 0.1
    assert max(a.more["max_gap_s"] for a in found) >= 0.02


def test_tokens_are_counted_where_the_server_does_not():
    with OpenAiServer(ServerScript(usage=False)) as server:
        _, (streamed,) = answers("openai_http", {"url": server.url})
        _, (whole,) = answers("openai_http", {"url": server.url, "stream": False})
    assert (streamed.output_tokens, streamed.more["tokens_from"]) == (5, "events")
    assert streamed.input_tokens == Unknown("the server did not count them")
    assert whole.ok
    assert whole.output_tokens == Unknown("the server did not count them")
    assert whole.ttft_s == Unknown("the answer was not streamed")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("http_500", "HTTP 500: the model fell over"), ("http_429", "HTTP 429: too many requests"),
        ("drop", "the connection was closed"), ("refuse", "the connection was closed before any answer"),
        ("malformed_json", "malformed JSON in the"), ("stall", "no whole answer within 0.4 s"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_named_and_the_next_request_goes_on(kind, words, stream):
    script = ServerScript(faults=(ServerFault(kind, after=1, times=1),))
    with OpenAiServer(script) as server:
        begun = time.monotonic()
        hurried = 1 if kind == "stall" else None
        _, found = answers("openai_http", {"url": server.url, "stream": stream}, 3, hurried=hurried)
        assert time.monotonic() - begun < HUNG_S
    assert [a.ok for a in found] == [True, False, True]
    assert words in found[1].error
    assert found[1].latency_s is not None


def test_only_a_connection_that_rested_is_replaced_quietly(monkeypatch):
    """Closed just as we asked: after a rest that is housekeeping, otherwise it is a failed request."""
    script = ServerScript(faults=(ServerFault("refuse", after=1, times=1),))
    for rested_s, oks, asked in ((HUNG_S, [True, False, True], 3), (0.0, [True, True, True], 4)):
        monkeypatch.setattr(openai_http, "RESTED_S", rested_s)
        with OpenAiServer(script) as server:
            _, found = answers("openai_http", {"url": server.url}, 3)
        assert [a.ok for a in found] == oks
        assert server.asked == asked


def test_a_stream_that_is_none():
    with OpenAiServer(ServerScript(faults=(ServerFault("malformed_sse"),))) as server:
        _, (answer,) = answers("openai_http", {"url": server.url})
    assert answer.error.startswith("malformed event stream: b'this is not an event stream'")


def raw_server(reply):
    line = socket.create_server(("127.0.0.1", 0))
    line.settimeout(HUNG_S)

    def serve():
        import threading

        def loop():
            for _ in range(2):
                peer, _ = line.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(reply)

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        return thread

    return line, serve()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'data: {"choices": [{"text": "a"}]}\n\n', "the stream ended without an end event"),
        (b'data: {"error": {"message": "out of memory"}}\n\ndata: [DONE]\n\n', "the server said: out of memory"),
        (b': hello\nevent: x\nid: 1\n\ndata: {"choices": [{"text": "a", "finish_reason": "stop"}]}\n\n', ""),
    ],
)
def test_ends_of_a_stream(body, words):
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    line, thread = raw_server(head + body)
    with line:
        _, (answer,) = answers("openai_http", {"url": f"http://127.0.0.1:{line.getsockname()[1]}", "model": "m"})
        thread.join(HUNG_S)
    assert answer.error == words
    assert answer.ok is (not words)


def test_no_endpoint_there():
    opened, (answer,) = answers("openai_http", {"url": "http://127.0.0.1:1"})
    assert "connection refused" in opened.problem
    assert answer.error == "cannot connect: connection refused"
    for url in ("127.0.0.1:80", "ftp://a", "http://", "http://a:b"):
        with pytest.raises(InputError, match="is not an endpoint"):
            TARGETS.get("openai_http")({"url": url}, "0", 1.0)
    with pytest.raises(UnknownName):
        TARGETS.get("openai_htpp")


def test_functions_of_every_kind(tmp_path, monkeypatch):
    (tmp_path / "made_here.py").write_text(
        "import asyncio, time\n"
        "def nothing(): pass\n"
        "def count(output_tokens): return output_tokens\n"
        "def told(**order): return {'output_tokens': 3, 'input_tokens': 2, 'ttft_s': 0.5, 'colour': 'red'}\n"
        "def stream(output_tokens):\n    for i in range(output_tokens):\n        time.sleep(0.02)\n        yield i\n"
        "async def later(request): await asyncio.sleep(0.02); return 1\n"
        "async def tokens(output_tokens):\n    for i in range(output_tokens):\n        await asyncio.sleep(0.02)\n"
        "        yield i\n"
        "class Engine:\n    async def __call__(self): return await later(0)\n"
        "engine = Engine()\n"
        "def handed_on(output_tokens): return tokens(output_tokens)\n"
        "def owns(): return {'node': 'host7', 'request': 'x', 'latency_s': 99, 'colour': 'red'}\n"
        "def refuses(): return {'ok': False, 'error': 'out of memory'}\n"
        "def fails(): raise ValueError('no')\n"
        "def forever(): time.sleep(60)\n"
        "number = 5\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def one(name, **more):
        return answers("python_callable", {"callable": f"made_here:{name}"}, **more)[1][0]

    assert one("nothing").output_tokens == Unknown("the function did not report it")
    assert one("count").output_tokens == 5
    told = one("told")
    assert (told.output_tokens, told.input_tokens, told.ttft_s, told.more) == (3, 2, 0.5, {"colour": "red"})
    stream = one("stream")
    assert stream.output_tokens == 5
    assert 0.02 <= stream.ttft_s < stream.latency_s
    assert one("later").latency_s >= 0.02
    for name in ("tokens", "handed_on"):
        found = one(name)
        assert found.output_tokens == 5
        assert 0.02 <= found.ttft_s < found.latency_s
    assert one("engine").output_tokens == 1
    assert one("owns").more == {"own_node": "host7", "own_request": "x", "own_latency_s": 99, "colour": "red"}
    assert (one("refuses").ok, one("refuses").error) == (False, "out of memory")
    assert one("fails").error == "ValueError: no"
    assert one("forever", timeout_s=0.2).error == "no result within 0.2 s"
    for spec, words in (("made_here", "MODULE:FUNCTION"), ("made_here:no", "no attribute"), ("nope_x:f", "No module"),
                        ("made_here:number", "not a function")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            load_callable(spec)
    sys.modules.pop("made_here", None)
