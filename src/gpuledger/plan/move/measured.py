"""What did a namespace's GPUs of one model do, all of them together?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuledger.plan.move.busy_hours import PHASES
from gpuledger.plan.move.demand import Evidence, Load
from gpuledger.plan.move.moves import Holding
from gpuledger.plan.move.statement import Measured
from gpuledger.units import Unknown


def measured(holding: Holding) -> Measured:
    """Means over observed time; the busy hours of each GPU added up; of memory and links the most of any GPU."""
    loads = holding.loads
    observed = sum(load.observed_h for load in loads)
    phases = Counter[str]()
    for load in loads:
        phases.update(load.phases_ms)
    total = phases.total()
    evidence: Evidence = "none"
    for kind in ("power", "counters"):
        if any(load.evidence == kind for load in loads):
            evidence = "power" if kind == "power" else "counters"
    return Measured(
        gpus=len(loads) or len(holding.paid),
        observed_h=observed,
        busy_gpu_h=sum(load.busy_ratio * load.observed_h for load in loads),
        busy_ratio=sum(load.busy_ratio * load.observed_h for load in loads) / observed if observed else 0.0,
        busy_hours_gpus=sum(load.busy_hours_ratio for load in loads),
        evidence=evidence,
        tflops_low=_tflops(loads, 0),
        tflops_middle=_tflops(loads, 1),
        tflops_high=_tflops(loads, 2),
        busy_hours_tflops=_total(loads, "busy_hours_tflops"),
        busy_hours_dram_bytes_per_s=_total(loads, "busy_hours_dram_bytes_per_s"),
        memory_max_bytes=_most(loads, "memory_max_bytes"),
        nvlink_bytes_per_s=_most(loads, "nvlink_bytes_per_s"),
        phases_pct={p: 100 * phases[p] / total if total else 0.0 for p in PHASES},
        purpose=next(iter(holding.purposes)) if len(holding.purposes) == 1 else None,
        classes=tuple(dict.fromkeys(c.klass for c in holding.cases)),
    )


def _tflops(loads: Sequence[Load], end: int) -> float | Unknown:
    found = [load.tflops for load in loads]
    if unknown := next((f for f in found if isinstance(f, Unknown)), None):
        return unknown
    return sum(f[end] for f in found if not isinstance(f, Unknown)) if found else Unknown("no device was seen")


def _known(loads: Sequence[Load], figure: str) -> list[float] | Unknown:
    found = [getattr(load, figure) for load in loads]
    missing = next((f for f in found if isinstance(f, Unknown)), None)
    return missing if missing is not None else (found or Unknown("no device was seen"))


def _total(loads: Sequence[Load], figure: str) -> float | Unknown:
    found = _known(loads, figure)
    return found if isinstance(found, Unknown) else sum(found)


def _most(loads: Sequence[Load], figure: str) -> float | Unknown:
    found = _known(loads, figure)
    return found if isinstance(found, Unknown) else max(found)
