"""An S3 server as a process of its own: moto's, one request at a time, with faults on order.

    python tests/s3_server.py PORT

One at a time, because moto checks a condition and writes in two steps. PUT /_fault takes what is to go wrong (`Fault`);
GET /_count answers how many requests there were. `Server` starts and asks it from a test.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__)
BUCKET = "lakes"


class App:
    """The server as a WSGI application."""

    def __init__(self):
        from moto.server import DomainDispatcherApplication, create_backend_app

        self.moto = DomainDispatcherApplication(create_backend_app)
        self.lock, self.count, self.fault, self.released = threading.Lock(), 0, {}, {}
        self.waiting, self.go_on = threading.Event(), threading.Event()

    def __call__(self, environ, start):
        path = environ["PATH_INFO"]
        if path == "/_fault":
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            self.fault, self.count = json.loads(body), 0
            self.waiting.clear()
            self.go_on.clear()
            return self._said(start, {})
        if path == "/_count":
            return self._said(start, {"count": self.count, "waiting": self.waiting.is_set()})
        if path == "/_go_on":
            self.released = {"drop": environ["QUERY_STRING"]}
            self.go_on.set()
            return self._said(start, {})
        with self.lock:
            self.count += 1
            fault = self.fault if self._hits(environ) else {}
            if fault.get("pause"):
                self.waiting.set()
                self.go_on.wait(60)
                fault = self.released
            return self._answered(environ, start, fault)

    def _hits(self, environ):
        fault, first = self.fault, self.fault.get("first", 1)
        if not fault or fault.get("path", "") not in environ["PATH_INFO"]:
            return False
        if fault.get("method", environ["REQUEST_METHOD"]) != environ["REQUEST_METHOD"]:
            return False
        fault["seen"] = fault.get("seen", 0) + 1
        return first <= fault["seen"] < first + fault.get("times", 1 << 30)

    def _answered(self, environ, start, fault):
        if fault.get("no_conditions"):
            for name in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
                environ.pop(name, None)
        if fault.get("status"):
            start(f"{fault['status']} Fault", [("Content-Type", "application/xml")])
            return [fault.get("body", "").encode()]
        if fault.get("drop") == "before":
            return self._dropped(environ, start)
        answer = list(self.moto(environ, start))
        return self._dropped(environ, None) if fault.get("drop") == "after" else answer

    def _dropped(self, environ, start):
        with contextlib.suppress(OSError):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        if start is not None:
            start("500 Dropped", [])
        return [b""]

    def _said(self, start, what):
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(what).encode()]


class Server:
    """The process, from a test's side."""

    scheme, script = "s3", HERE

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = self.env_of(folder)
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen([sys.executable, str(self.script), str(self.port)], stdout=log, stderr=log)
        self._wait_until_up()
        self._send("PUT", f"/{BUCKET}")

    def env_of(self, folder):
        """What leads a client here."""
        return {
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url, "GPULEDGER_CACHE": str(folder / "cache"), "GPULEDGER_STORE_WAIT": "20",
        }  # fmt: skip

    def _wait_until_up(self):
        end = time.monotonic() + 60
        while True:
            try:
                return self._send("GET", "/_count")
            except OSError:
                assert self.process.poll() is None, "the S3 server has ended"
                assert time.monotonic() < end, "the S3 server does not answer"
                time.sleep(0.05)

    def _send(self, method, path, body=b""):
        request = urllib.request.Request(self.url + path, data=body or None, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def fault(self, **what):
        """From now on this goes wrong; nothing: all is well."""
        self._send("PUT", "/_fault", json.dumps(what).encode())

    def state(self):
        """How many requests there were since the last fault was ordered, and whether one is held."""
        return json.loads(self._send("GET", "/_count"))

    def go_on(self, drop=""):
        """Let the request go that is held, or drop it "before" or "after" the server has done what it asks for."""
        self._send("GET", f"/_go_on?{drop}")

    def close(self):
        """End the process."""
        self.process.kill()
        self.process.wait()


def serve(app, port):
    """Answer requests until the process is ended."""
    from werkzeug.serving import WSGIRequestHandler, run_simple

    class Quiet(WSGIRequestHandler):
        """Keeps connections open, as S3 does, and logs nothing."""

        protocol_version = "HTTP/1.1"

        def log_request(self, *_what):
            """Nothing."""

    os.environ.setdefault("MOTO_S3_CUSTOM_ENDPOINTS", "")
    run_simple("127.0.0.1", port, app, threaded=True, request_handler=Quiet)


if __name__ == "__main__":
    serve(App(), int(sys.argv[1]))
