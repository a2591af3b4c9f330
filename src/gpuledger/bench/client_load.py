"""Was the client itself the bottleneck: its processor, its event loop, its timing?"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Any

LOOK_EVERY_S = 0.02
# One Python process has one core: near it, answers wait for the client and not for the server.
BUSY_RATIO = 0.85
# The loop may be late by a small part of an answer before the figures are its own and not the server's.
LATE_RATIO = 0.10
LEAST_LAG_S = 0.010


class ClientWatch:
    """Watches this process while it asks."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """From here on."""
        self._cpu_s, self._begun_s = time.process_time(), time.monotonic()
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)
            self._lags.append(max(0.0, loop.time() - due))

    async def stop(self, latencies_s: Sequence[float], late_s: Sequence[float], *, remote: bool) -> dict[str, Any]:
        """Up to here: figures and a verdict. `late_s`: how much later than due each request was sent."""
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
        # The quick answers: those that a late client held up are no measure of what it may take.
        quick_s = sorted(latencies_s)[len(latencies_s) // 10] if latencies_s else 0.0
        why = verdict(found, quick_s) if remote else ""
        return {**found, "bottleneck": bool(why), "why": why or _fine(remote)}


def verdict(found: dict[str, Any], quick_s: float) -> str:
    """Why the client was the bottleneck; empty where it was not. Without any answer there is nothing to hold up.

    `quick_s`: the tenth part of answers came at least so quickly.
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


def _fine(remote: bool) -> str:
    return "processor, event loop and timing had room" if remote else "the work itself runs in the worker"


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
