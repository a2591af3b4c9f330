"""Loops written by hand: what a meter saw, without torch."""

from __future__ import annotations

from typing import Any

from gpuledger.catalog.gpus import get_gpu
from gpuledger.training.meter.events import PHASES
from gpuledger.training.meter.observed import Identity, LoaderFacts, MemoryFacts, Observed, Place, StepSeconds, Work
from gpuledger.units import GIB

H100 = "h100-sxm5-80gb"
V100 = "v100-sxm2-16gb"


def place(gpu: str = H100) -> Place:
    found = get_gpu(gpu)
    return Place("cuda", found.name, found, "GPU-a", None, int(found.memory_bytes.value))


def observed(gpu: str | None = H100, ms: dict[str, float] | None = None, **given: Any) -> Observed:
    """A loop in good order: 100 ms a step, 40 of them forward and 50 backward, in bf16, unless told otherwise."""
    spent = dict.fromkeys(PHASES, 0.0) | ({"forward": 40.0, "backward": 50.0, "optimizer": 5.0} if ms is None else ms)
    spent["other"] += max(0.0, 100.0 - sum(spent.values()))
    phases = {p: v / 1000 for p, v in spent.items()}
    total = sum(phases.values())
    card = 80 * GIB
    plain: dict[str, Any] = {
        "who": Identity("run-1"), "place": place(gpu) if gpu else Place("cpu", "cpu", get_unknown()), "state": "done",
        "steps": 50, "timed_steps": 40, "updates": 50, "start_ms": 0, "end_ms": 5000, "phases_s": phases,
        "host_s": phases, "step": StepSeconds(total, total, total, total), "precision": "bf16",
        # Half the peak of an H100 over a step of 100 ms.
        "work": Work(989.5e12 * 0.05, 989.5e12 * 0.05, 989.5e12 * 0.05 / 3, "counted", kernels=1000),
        "tokens_per_step": 8192.0, "samples_per_step": 8.0, "fused_optimizer": True, "optimizer": "AdamW", "cpus": 8,
        "loader": LoaderFacts("DataLoader", 8, True, 2, True), "memory": MemoryFacts(70 * GIB, 72 * GIB, card),
    }  # fmt: skip
    return Observed(**(plain | given))


def get_unknown() -> Any:
    from gpuledger.units import Unknown

    return Unknown("the loop runs on cpu, not on a GPU")


def why_not(statement: dict[str, Any], figure: str) -> str:
    """Why a figure of a statement is unknown."""
    return next(missing["why"] for missing in statement["not_known"] if missing["figure"] == figure)
