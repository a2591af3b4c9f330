"""How do tests wait for a dashboard, or run one as a process?"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
from starlette.testclient import TestClient


def wait_ready(client: TestClient) -> dict[str, object]:
    """The status once the first statements are made."""
    for _ in range(600):
        status = client.get("/api/v1/status").json()
        if status["state"] != "loading":
            return status
        time.sleep(0.05)
    raise AssertionError("the dashboard never got ready")


class Server:
    """`gpuledger serve` as a process."""

    def __init__(self, lake: Path, *more: str) -> None:
        command = [sys.executable, "-m", "gpuledger", "serve", "--lake", str(lake), "--port", "0", "--every", "0.2"]
        self.process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"http://[^/]+:(\d+)/(\?token=(\S+))?", self.said)
        assert found, (self.said, self.process.stderr.read() if self.process.stderr else "")
        self.port, self.token = int(found[1]), found[3]
        self.base = f"http://127.0.0.1:{self.port}"

    def wait_ready(self) -> None:
        """Until its first page has figures."""
        for _ in range(1200):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.base}/api/v1/status", timeout=60).json()["state"] == "ready":
                    return
            time.sleep(0.05)
        raise AssertionError("the dashboard never got ready")

    def stop(self) -> tuple[int, str]:
        """Its exit code, and what it said on stderr."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors
