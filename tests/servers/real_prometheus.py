"""A real Prometheus for tests: started on a folder, scraping exporters that replay the synthetic fleet."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest

PROMETHEUS = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")
LABELS = {"UUID": "UUID", "MODELNAME": "modelName", "HOSTNAME": "Hostname"}

# Without CI the tests of a machine without Prometheus are skipped, with the command that installs it.
needs_prometheus = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL) and not os.environ.get("CI"),
    reason="Prometheus is not installed: apt-get install prometheus",
)


class RealPrometheus:
    """One server on its own folder; `with` starts and stops it."""

    def __init__(self, folder: Path, scrapes: str = "[]") -> None:
        self.data = folder / "data"
        self.config = folder / "prometheus.yml"
        folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(f"global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs: {scrapes}\n")
        self.log = folder / "log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.at = f"127.0.0.1:{probe.getsockname()[1]}"

    @property
    def address(self) -> str:
        return f"prometheus://{self.at}"

    def backfill(self, text: Path) -> None:
        """Make blocks from OpenMetrics text, before the start."""
        command = [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", str(text), str(self.data)]
        subprocess.run(command, check=True, capture_output=True)

    def dump(self) -> str:
        """All samples as promtool writes them, after the end."""
        (self.data / "wal").mkdir(exist_ok=True)
        return subprocess.run(
            [PROMTOOL, "tsdb", "dump", str(self.data)], check=True, capture_output=True, text=True
        ).stdout

    def __enter__(self) -> RealPrometheus:
        options = ["--storage.tsdb.retention.time=50y", f"--storage.tsdb.path={self.data}"]
        command = [PROMETHEUS, f"--config.file={self.config}", f"--web.listen-address={self.at}", *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://{self.at}/-/ready", timeout=1):
                    return self
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.process.kill()
        self.process.wait()
        raise RuntimeError(f"Prometheus did not start:\n{self.log.read_text()}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Exporter:
    """Serves one page after another, a new one for each scrape, the last one for good."""

    def __init__(self, pages: list[str]) -> None:
        self.served = 0
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = pages[min(exporter.served, len(pages) - 1)].encode()
                exporter.served += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.at = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Exporter:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def line(name: str, labels: dict[str, str], value: object, at_ms: int | None = None) -> str:
    """One line of a page, or of OpenMetrics text where it has a time."""
    inner = ",".join(f'{k}="{v}"' for k, v in labels.items())
    return f"{name}{{{inner}}} {value}" + ("" if at_ms is None else f" {at_ms / 1000:.3f}")
