"""Fleets in which one thing is wrong, settings, and real receivers on free ports."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from alert_fleets import Change, write_samples
from gpuledger import settings
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake


@pytest.fixture
def lake_of(tmp_path) -> Callable[..., Lake]:
    """A lake of such a fleet; called again for the same lake it imports more."""
    numbers = iter(range(100))

    def make(change: Change, **more: Any) -> Lake:
        lake = Lake(tmp_path / "lake")
        import_files(lake, [write_samples(tmp_path / f"samples-{next(numbers)}.csv", change, **more)])
        return lake

    return make


@pytest.fixture(autouse=True)
def own_settings(tmp_path, monkeypatch) -> Iterator[Callable[[str], Path]]:
    """Settings of the test alone."""
    file = tmp_path / "settings" / "gpuledger.toml"
    file.parent.mkdir()

    def put(text: str) -> Path:
        file.write_text(text)
        settings.use(file)
        return file

    yield put
    settings.use(None)


@dataclass
class Hook:
    """A real HTTP server that keeps what it gets; `answers`: codes for the next requests, then 200."""

    url: str = ""
    got: list[dict] = field(default_factory=list)
    heads: list[dict] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def hook() -> Iterator[Hook]:
    kept = Hook()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            code = kept.answers.pop(0) if kept.answers else 200
            kept.bodies.append(body)
            kept.heads.append({name.lower(): value for name, value in self.headers.items()})
            kept.paths.append(self.path)
            if code < 300:
                kept.got.append(json.loads(body))
            self.send_response(code)
            for name, value in kept.more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"done")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        kept.url = f"http://127.0.0.1:{server.server_port}/hook"
        yield kept
        server.shutdown()
        thread.join()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
