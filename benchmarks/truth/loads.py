"""How is a GPU kept busy in one way for a time, and how many FLOPs was that?"""

from __future__ import annotations

import time
from collections.abc import Callable

Turn = tuple[Callable[[], object], float]
LOADS = ("gemm", "copy", "fp32", "tiny", "wait")


def torch_loads() -> dict[str, Turn]:
    """Each load as (one turn, its FLOPs); a turn is launched, not waited for."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    n, small = 8192, 64
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c, d = (torch.randn(n, n, device="cuda") for _ in range(2))
    e = torch.randn(small, small, device="cuda", dtype=torch.bfloat16)
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target, out, out32, out_small = (torch.empty_like(x) for x in (source, a, c, e))
    return {
        "gemm": (lambda: torch.mm(a, b, out=out), 2.0 * n**3),
        "fp32": (lambda: torch.mm(c, d, out=out32), 2.0 * n**3),
        "tiny": (lambda: torch.mm(e, e, out=out_small), 2.0 * small**3),
        "copy": (lambda: target.copy_(source), 0.0),
    }


def dry_loads() -> dict[str, Turn]:
    """Loads that only take time."""
    return {load: (lambda: time.sleep(0.001), 0.0) for load in LOADS if load != "wait"}


class Runner:
    """Runs loads for a time and counts their FLOPs."""

    def __init__(self, dry: bool) -> None:
        self._loads = dry_loads() if dry else torch_loads()
        self._synchronize: Callable[[], None] = lambda: None
        if not dry:
            import torch

            self._synchronize = torch.cuda.synchronize
        self._chunk: dict[str, int] = {}
        for load in self._loads:
            self.run(load, 0.5)

    def run(self, load: str, seconds: float) -> float:
        """One part; returns its FLOPs. About 10 ms of work between synchronizations."""
        end, done = time.perf_counter() + seconds, 0.0
        if load == "wait":
            time.sleep(seconds)
            return done
        turn, flop = self._loads[load]
        chunk = self._chunk.get(load, 1)
        while (before := time.perf_counter()) < end:
            for _ in range(chunk):
                turn()
            self._synchronize()
            done += chunk * flop
            took = time.perf_counter() - before
            chunk = max(1, min(2 * chunk, round(chunk * 0.01 / max(1e-6, took))))
            self._chunk[load] = chunk
        return done
