"""Lines written by hand, so that every figure can be checked with a pencil."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.units import MS_PER_HOUR, PPM, day_start_ms

START = day_start_ms("2026-01-20")
HOUR = MS_PER_HOUR
H100 = "NVIDIA H100 80GB HBM3"

# Busy throughout, without pipe counters, at the power limit: power above idle power makes all of it productive.
BUSY: dict[str, Any] = {"busy_ppm_ms": HOUR * PPM, "pif_ms": HOUR, "pif_uj": 700_000 * HOUR}

Books = Callable[..., Lake]


def line(hour: int = 0, gpu: str = "GPU-a", **given: Any) -> dict[str, Any]:
    """One hour of one device in one state, fully observed, unless told otherwise. Without a state: idle, or work."""
    start = START + hour * HOUR
    row: dict[str, Any] = {name: 0 if column.merge == "sum" else None for name, column in lines.columns().items()}
    row |= {
        "hour_ms": start, "grain_ms": HOUR, "gpu_uuid": gpu, "gpu_model": H100, "first_ms": start,
        "last_ms": start + HOUR, "samples": 60, "observed_ms": HOUR, "cluster": "c1", "namespace": "n1",
        "limit_mw": 700_000, "state": "idle" if any(name.startswith("idle") for name in given) else "plain",
    }  # fmt: skip
    return row | given
