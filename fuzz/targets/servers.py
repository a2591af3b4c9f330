"""Answers of a Prometheus server, over a real socket, taken in as `gpuledger import prometheus://...` takes them."""

from __future__ import annotations

import functools
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gpuledger
from targets import Seed, Target, files_of

LABELS = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "gpu": "0", "Hostname": "node-1"}


class _Server(ThreadingHTTPServer):
    body = b""


class _Answers(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """The hostile answer to questions for samples; to all other questions too where its first byte says so."""
        hostile = self.server.body.startswith(b"!") or ("/query" in self.path and "vector" not in self.path)
        body = self.server.body.removeprefix(b"!") if hostile else json.dumps(self._honest()).encode()
        self.send_response(200)
        if body.startswith(b"\x1f\x8b"):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def _honest(self) -> object:
        if "/label/" in self.path:
            data: object = [LABELS["__name__"]]
        elif "/series" in self.path:
            data = [LABELS]
        else:
            data = {"resultType": "vector", "result": [{"metric": {}, "value": [1768867200, "1"]}]}
        return {"status": "success", "data": data}

    do_POST = do_GET  # noqa: N815 - as http.server calls it

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@functools.cache
def _server() -> _Server:
    server = _Server(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def pulled(path: Path) -> object:
    """What the server's answer becomes in a lake."""
    server = _server()
    server.body = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        address = f"prometheus://127.0.0.1:{server.server_port}"
        times = {"since": "2026-01-20T00:00:00Z", "until": "2026-01-20T01:00:00Z", "step": "60s"}
        return gpuledger.open(folder).pull(address, host="node-1", gpu_model="NVIDIA H100 80GB HBM3", **times)


def _seeds() -> list[Seed]:
    found = files_of("tests/telemetry/fixtures/prometheus_json")()
    return [*found, *(Seed(f"all-{s.name}", b"!" + s.data) for s in found)]


TARGETS = [Target("Prometheus server", pulled, _seeds, 0.5)]
