"""Hypothesis strategies and small makers of samples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from gpuledger.lake.parts import with_all_columns
from gpuledger.lake.rows import without_conflicts
from gpuledger.lake.sorting import in_order
from gpuledger.telemetry import schema
from gpuledger.units import day_start_ms

DAY = day_start_ms("2026-01-20")
MODELS = ("NVIDIA H100 80GB HBM3", "NVIDIA A10G", "Some GPU nobody knows")


def table(samples: list[dict]) -> pa.Table:
    """Samples as rows of the lake, in order and without conflicts."""
    columns = {}
    for name, column in schema.columns().items():
        values = [s.get(name) for s in samples]
        if any(v is not None for v in values):
            kind = pa.string() if column.type == "string" else column.arrow()
            array = pa.array(values, kind)
            columns[name] = array.dictionary_encode() if column.type == "string" else array
    return without_conflicts(in_order(with_all_columns(pa.table(columns))))[0]


def as_float32(value: float) -> float:
    return float(np.float32(value))


_share = st.one_of(st.none(), st.sampled_from([0.0, 0.005, 0.01, 0.1, 0.7, 1.0]), st.floats(0, 1, width=32))
_pct = st.one_of(st.none(), st.integers(0, 100).map(lambda p: p / 100))
_watts = st.one_of(st.none(), st.integers(0, 800_000).map(lambda mw: mw / 1000))
_bytes = st.one_of(st.none(), st.integers(0, 80 * 2**30))
_name = st.one_of(st.none(), st.sampled_from(["a", "b"]))


@st.composite
def sample(draw, at_ms: int, uuid: str, model: str | None) -> dict:
    return {
        "at_ms": at_ms,
        "gpu_uuid": uuid,
        "gpu_model": model,
        "namespace": draw(_name),
        "cluster": draw(st.sampled_from(["c1", "c2"])),
        "run_id": draw(st.sampled_from([None, None, "r1"])),
        "tensor_precision": draw(st.sampled_from([None, None, "fp8"])),
        "gpu_util_ratio": draw(_pct),
        "power_w": draw(_watts),
        "engine_ratio": draw(_share),
        "sm_ratio": draw(_share),
        "tensor_ratio": draw(_share),
        "sm_clock_mhz": draw(st.one_of(st.none(), st.integers(200, 2000).map(float))),
        "fb_used_bytes": draw(_bytes),
        "fb_free_bytes": draw(_bytes),
        "energy_mj": draw(st.one_of(st.none(), st.integers(0, 10**9))),
        "xid": draw(st.sampled_from([None, 0, 0, 31])),
        "pcie_replays": draw(st.sampled_from([None, 0, 1, 2])),
    }


@st.composite
def series(draw, max_devices: int = 3, max_samples: int = 14, shared: bool = False) -> list[dict]:
    """Samples of a few devices on one day, at irregular steps that cross hours; perhaps with shared instants."""
    out = []
    for d in range(draw(st.integers(1, max_devices))):
        model = draw(st.sampled_from([*MODELS, None]))
        at = DAY + draw(st.integers(0, 5 * 3600)) * 1000
        for _ in range(draw(st.integers(1, max_samples))):
            at += draw(st.sampled_from([500, 60_000, 60_000, 60_000, 61_234, 900_000, 4_000_000]))
            first = draw(sample(at, f"GPU-{d}", model))
            out.append(first)
            if shared and draw(st.booleans()):
                out.append(first | {"namespace": "other", "workload": "w"})
    return [s for s in out if s["at_ms"] < DAY + 86_400_000]
