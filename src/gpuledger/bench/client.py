"""What machine runs a worker, and was the client itself the bottleneck: its processor, its event loop, its timing?"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import os
import platform
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

LOOK_EVERY_S = 0.02
# A Python process has one core: close to it, answers wait for the client and not for the server.
BUSY_RATIO = 0.85
# The loop may be late by a small part of an answer before the figures describe the client and not the server.
LATE_RATIO = 0.10
LEAST_LAG_S = 0.010
_NAMED = ("gpuledger", "torch", "vllm", "transformers", "ray")


def machine_facts() -> dict[str, Any]:
    """Host, processor, operating system and versions, without loading any of the packages."""
    return {
        "host": socket.gethostname(),
        "os": platform.platform(),
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version for name in _NAMED if (version := _version(name))},
    }


def _version(name: str) -> str:
    if name == "gpuledger":
        # By name: the top package knows every room, and this room may not import them all.
        return str(importlib.import_module("gpuledger").__version__)
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


class ClientWatch:
    """Watches this process while it sends requests."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._cpu_s, self._begun_s = time.process_time(), time.monotonic()
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)
            self._lags.append(max(0.0, loop.time() - due))

    async def stop(self, latencies_s: Sequence[float], late_s: Sequence[float], *, remote: bool) -> dict[str, Any]:
        """Figures and a verdict. `late_s`: how long after its due time each request was sent."""
        wall_s, cpu_s = time.monotonic() - self._begun_s, time.process_time() - self._cpu_s
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        lags = sorted(self._lags) or [0.0]
        found = {
            "cpu_s": round(cpu_s, 6),
            "wall_s": round(wall_s, 6),
            "median_lag_s": round(median(lags), 6),
            "p95_lag_s": round(_p95(lags), 6),
            "max_lag_s": round(lags[-1], 6),
            "p95_late_s": round(_p95(sorted(late_s)), 6) if late_s else None,
        }
        # The fast answers: those that a late client delayed do not show how late it may be.
        quick_s = sorted(latencies_s)[len(latencies_s) // 10] if latencies_s else 0.0
        why = verdict(found, quick_s) if remote else ""
        fine = "processor, event loop and timing had room" if remote else "the work itself runs in the worker"
        return {**found, "bottleneck": bool(why), "why": why or fine}


def verdict(found: dict[str, Any], quick_s: float) -> str:
    """Why the client was the bottleneck; empty where it was not, or nothing was answered.

    `quick_s`: the 10th percentile of the latencies.
    """
    wall_s = found["wall_s"]
    if not quick_s:
        return ""
    if wall_s and found["cpu_s"] / wall_s >= BUSY_RATIO:
        return f"the client used {100 * found['cpu_s'] / wall_s:.0f} % of a core"
    allowed = max(LEAST_LAG_S, LATE_RATIO * quick_s)
    if found["p95_lag_s"] > allowed:
        return f"the client's event loop was late by {1000 * found['p95_lag_s']:.0f} ms (95th percentile)"
    if (late := found["p95_late_s"]) is not None and late > allowed:
        return f"requests were sent {1000 * late:.0f} ms after they were due (95th percentile)"
    return ""


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
