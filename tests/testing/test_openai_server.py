"""Does the pretended OpenAI server do what its script says, over a real socket?"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
import urllib.request
from urllib.parse import urlsplit

import pytest

from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.errors import FactError, UnknownName
from gpuledger.testing.openai_script import Decisions, ServerFault, ServerScript, load_script, shipped
from gpuledger.testing.openai_server import OpenAiServer


def ask(url, path="/v1/completions", **body):
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=HUNG_S)
    body = {"model": "m", "prompt": "one two three", "max_tokens": 4, **body}
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        with connection.getresponse() as answer:
            return answer.status, answer.read()
    finally:
        connection.close()


def events(raw):
    return [line[6:] for line in raw.decode().split("\n") if line.startswith("data: ")]


def test_streamed_and_whole_answers_of_both_apis():
    with OpenAiServer("quick") as server:
        with urllib.request.urlopen(f"{server.url}/v1/models") as answer:
            models = json.loads(answer.read())
        assert models["data"][0]["id"] == "pretended"
        for path, piece in (("/v1/completions", "text"), ("/v1/chat/completions", "delta")):
            status, raw = ask(server.url, path, stream=True, stream_options={"include_usage": True})
            *parts, usage, done = events(raw)
            assert (status, done) == (200, "[DONE]")
            texts = [json.loads(p)["choices"][0][piece] for p in parts]
            texts = [t if piece == "text" else t.get("content") for t in texts]
            assert [t for t in texts if t] == [" word"] * 4
            assert json.loads(usage)["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
            status, raw = ask(server.url, path)
            assert json.loads(raw)["usage"]["completion_tokens"] == 4
        assert server.asked == 4
        assert ask(server.url, "/v1/nothing")[0] == 404


def test_times_are_kept_and_the_first_requests_are_cold():
    cold_s, warm_s = [], []
    for _ in range(4):
        with OpenAiServer(ServerScript(ttft_s=0.05, per_token_s=0.02, cold_requests=1, cold_s=0.2)) as server:
            for seconds in (cold_s, warm_s):
                begun = time.monotonic()
                ask(server.url, stream=True)
                seconds.append(time.monotonic() - begun)
    # The machine may hold up one or the other, never let it come early.
    assert 0.31 <= min(cold_s) < 0.5
    assert 0.11 <= min(warm_s) < 0.3


@pytest.mark.parametrize(("kind", "code"), [("http_500", 500), ("http_429", 429)])
def test_answers_that_are_errors(kind, code):
    with OpenAiServer(ServerScript(faults=(ServerFault(kind),))) as server:
        status, raw = ask(server.url, stream=True)
        assert status == code
        assert json.loads(raw)["error"]["message"]


def test_answers_that_break_off_or_cannot_be_read():
    def said(kind):
        with OpenAiServer(ServerScript(faults=(ServerFault(kind),))) as server:
            return ask(server.url, stream=True)[1]

    with pytest.raises(http.client.IncompleteRead) as cut:
        said("drop")
    assert len(events(cut.value.partial)) == 2
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        said("refuse")
    with pytest.raises(json.JSONDecodeError):
        [json.loads(e) for e in events(said("malformed_json")) if e != "[DONE]"]
    assert b"this is not an event stream" in said("malformed_sse")
    with OpenAiServer(ServerScript(faults=(ServerFault("stall"),))) as server:
        at = urlsplit(server.url)
        with socket.create_connection((at.hostname, at.port), timeout=HUNG_S) as line:
            body = b'{"stream": true, "max_tokens": 4}'
            line.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            came = b""
            while came.count(b"data: ") < 2:
                came += line.recv(65536)
            line.settimeout(0.4)
            with pytest.raises(TimeoutError):
                line.recv(1)


def test_slots_make_requests_wait():
    def three(slots):
        with OpenAiServer(ServerScript(ttft_s=0.1, slots=slots)) as server:
            at = urlsplit(server.url)
            lines = [socket.create_connection((at.hostname, at.port)) for _ in range(3)]
            begun = time.monotonic()
            for line in lines:
                line.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
            ends = []
            for line in lines:
                line.recv(65536)
                ends.append(time.monotonic() - begun)
                line.close()
            return ends

    one_slot, enough = [three(1) for _ in range(4)], [three(3) for _ in range(4)]
    assert all(ends[-1] >= 0.29 for ends in one_slot)
    # The machine may hold up any of them, but not all.
    assert min(ends[0] for ends in one_slot) < 0.2
    assert min(ends[-1] for ends in enough) < 0.25


def test_faults_are_drawn_by_the_seed():
    script = ServerScript(seed=4, faults=(ServerFault("drop", share=0.2), ServerFault("stall", after=5, times=1)))
    twice = [[d.next()[0] for _ in range(2000)] for d in (Decisions(script), Decisions(script))]
    assert twice[0] == twice[1]
    assert twice[0].count("drop") == pytest.approx(400, abs=60)
    assert twice[0].count("stall") == 1
    assert "stall" not in twice[0][:5]


def test_scripts_by_name_and_file(tmp_path):
    assert {"quick", "steady", "cold", "slow", "dropping"} <= set(shipped())
    assert load_script("dropping").faults[0].share == 0.2
    with pytest.raises(UnknownName, match="steddy"):
        load_script("steddy")
    (tmp_path / "s.toml").write_text("ttft_s = 'soon'\n")
    with pytest.raises(FactError, match="ttft_s"):
        load_script(tmp_path / "s.toml")


def test_it_runs_as_a_program():
    command = [sys.executable, "-m", "gpuledger.testing.openai_server", "--script", "quick"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().split()[-1]
        assert ask(url)[0] == 200
        server.kill()
