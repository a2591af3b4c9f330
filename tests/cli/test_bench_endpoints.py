"""What does `gpuledger bench` send to an endpoint, what does it keep, and what if nobody is there?"""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpuledger.bench.results import read_run
from gpuledger.bench.targets import openai_http
from gpuledger.testing.openai_server import OpenAiServer

SECRET = "p@ss/w0rd"
ENCODED = "p%40ss%2Fw0rd"
SHORT = ("--requests", 3, "--device", "none", "--no-stream", "--json")


@pytest.fixture
def heard():
    """A small server, and what it was asked."""
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, found: dict) -> None:
            asked.append((self.path, dict(self.headers)))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            raw = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self) -> None:
            self._answer({"data": [{"id": "tiny"}]})

        def do_POST(self) -> None:
            self._answer({"choices": [{"text": "a"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.asked = asked
    yield server
    server.shutdown()
    server.server_close()


def everything(ended) -> str:
    """All that was printed and all that was written."""
    return ended.out + ended.err + "".join(f.read_bytes().decode("latin-1") for f in Path().rglob("*") if f.is_file())


def test_a_user_in_the_url_is_sent_as_basic_and_kept_nowhere(cli, heard, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one")
    at = f"127.0.0.1:{heard.server_port}"
    ended = cli("bench", f"http://ada:{ENCODED}@{at}/api/v1?api-version=7&api-key=hush", *SHORT, "--out", "r.jsonl")
    assert (ended.code, ended.json()["ok"]) == (0, 3), ended
    assert {path for path, _ in heard.asked} == {
        f"/api{api}?api-version=7&api-key=hush" for api in ("/v1/models", "/v1/completions")
    }
    basic = base64.b64encode(f"ada:{SECRET}".encode()).decode()
    for _, head in heard.asked:
        assert head["Host"] == at
        assert head["Authorization"] == f"Basic {basic}"
    assert list(read_run("r.jsonl").nodes) == [at]
    assert read_run("r.jsonl").nodes[at].more["url"] == f"http://***@{at}/api/v1?api-version=7&api-key=***"
    assert cli("scaling", "r.jsonl", "--out", "report").code == 0
    kept = everything(ended)
    for word in (SECRET, ENCODED, "w0rd", basic, "hush", "ada:", "sk-not"):
        assert word not in kept, word


@pytest.mark.parametrize("url", [f"http://ada:{SECRET}@:b", f"ftp://ada:{SECRET}@host", f"http://ada:{SECRET}@"])
def test_a_refused_url_is_shown_without_its_password(cli, url):
    ended = cli("bench", url)
    assert ended.code == 2
    assert "is not an endpoint" in ended.err
    assert "w0rd" not in ended.err


def test_the_key_is_sent_where_the_url_has_no_user(cli, heard, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-123")
    ended = cli("bench", f"http://127.0.0.1:{heard.server_port}", *SHORT, "--key-env", "MY_KEY")
    assert ended.code == 0
    assert {head["Authorization"] for _, head in heard.asked} == {"Bearer sk-123"}
    assert "sk-123" not in everything(ended)


@pytest.mark.parametrize("key", ["sk-1\r\nX-Evil: 1", "sk-1\n", "sk 1", "sk\x00", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused(cli, heard, monkeypatch, key):
    monkeypatch.setattr(os, "environ", {**os.environ, "OPENAI_API_KEY": key})  # as a key with a NUL cannot be set
    ended = cli("bench", f"http://127.0.0.1:{heard.server_port}", *SHORT)
    assert ended.code == 2
    assert "the API key in OPENAI_API_KEY" in ended.err
    assert "set OPENAI_API_KEY to the key alone" in json.loads(ended.err)["next"]
    assert key not in ended.err
    assert heard.asked == []


@pytest.fixture
def silent_port():
    """A port that takes no connection and refuses none: its queue is full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        held = []
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            held.append(one)
        yield port
        for one in held:
            one.close()


def test_nobody_there_is_an_error_before_anything_is_measured(cli):
    ended = cli("bench", "a=http://127.0.0.1:1", "b=http://127.0.0.1:2", "--requests", 3, "--device", "none")
    assert ended.code == 2
    assert "cannot reach any of the 2 endpoints: a: cannot connect: connection refused; b: " in ended.err
    assert "next: check host and port" in ended.err
    assert list(Path().glob("*.jsonl")) == []


def test_a_host_that_does_not_answer_costs_seconds(cli, silent_port):
    begun = time.monotonic()
    ended = cli("bench", f"http://127.0.0.1:{silent_port}", "--requests", 100, "--device", "none", "--timeout", 1)
    assert ended.code == 2, ended
    assert "cannot connect within 1 s" in ended.err
    assert time.monotonic() - begun < 30


def test_one_node_that_cannot_be_reached_stays_a_result(cli, silent_port):
    """After a few tries it is not asked again: 60 requests one by one would take a minute."""
    begun = time.monotonic()
    with OpenAiServer("quick") as server:
        ended = cli(
            "bench", f"a={server.url}", f"b=http://127.0.0.1:{silent_port}", "--requests", 60, "--concurrency", 1,
            "--device", "none", "--timeout", 1, "--json",
        )  # fmt: skip
    assert ended.code == 0, ended
    assert [(n["ok"], n["failed"]) for n in ended.json()["nodes"]] == [(60, 0), (0, 60)]
    assert ended.json()["nodes"][1]["first_error"] == "cannot connect within 1 s"
    assert time.monotonic() - begun < 30


def test_no_connection_is_waited_for_longer_than_a_bound():
    assert openai_http.CONNECT_S * openai_http.TRIES <= 30


def test_answers_that_are_all_errors_are_an_exit_code(cli):
    with OpenAiServer("quick") as server:
        ended = cli("bench", f"{server.url}/nowhere", *SHORT, "--out", "r.jsonl")
    assert ended.code == 1
    assert "no request was answered" in ended.err
    assert "next: " in ended.err
    assert len(read_run("r.jsonl").measured) == 3
