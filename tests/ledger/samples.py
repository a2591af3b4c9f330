"""Hypothesis strategies and small makers of samples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from gpuledger.lake.parts import with_all_columns
from gpuledger.lake.rows import without_conflicts
from gpuledger.lake.sorting.order import in_order
from gpuledger.telemetry import schema
from gpuledger.units import day_start_ms

DAY = day_start_ms("2026-01-20")
DAY_MS = 86_400_000
H200 = "NVIDIA H200"
MODELS = ("NVIDIA H100 80GB HBM3", "NVIDIA A10G", H200, "Some GPU nobody knows")


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
# An import rejects more than twice the power of a board, and the smallest here, an A10G, has 300 W.
_watts = st.one_of(st.none(), st.integers(0, 600_000).map(lambda mw: mw / 1000))
_bytes = st.one_of(st.none(), st.integers(0, 80 * 2**30))
_name = st.one_of(st.none(), st.sampled_from(["a", "b"]))
_rate = st.one_of(st.none(), st.sampled_from([0.0, 0.0, 2.5e6, 2e9, 3e9]))

# What a source records beside utilization and power; each sample of it may still miss a reading.
_COUNTERS = {
    "engine_ratio": _share,
    "sm_ratio": _share,
    "tensor_ratio": _share,
    "dram_ratio": _share,
    "sm_clock_mhz": st.one_of(st.none(), st.integers(200, 2000).map(float)),
    "pcie_tx_bytes_per_s": _rate,
    "pcie_rx_bytes_per_s": _rate,
}
_PIPES = {f"{p}_ratio": _share for p in ("fp32", "fp16", "fp64", "hmma", "imma", "dfma", "occupancy", "integer")}
_MEMORY = {"fb_used_bytes": _bytes, "fb_free_bytes": _bytes}
_LIMITS = {
    # 300.1 W is not a whole number of milliwatts in 32 bits; 400.00001 W rounds to the same as 400 W.
    "power_limit_w": st.sampled_from([None, 150.0, 300.1, 400.0, 400.00003, 700.0]),
    "throttle_bits": st.sampled_from([None, 0, 0x4, 0x20, 0x84, 0x100]),
}
_FAULTS = {
    "energy_mj": st.one_of(st.none(), st.integers(0, 10**9)),
    "xid": st.sampled_from([None, 0, 0, 31]),
    "pcie_replays": st.sampled_from([None, 0, 1, 2]),
    "remapped_correctable_rows": st.sampled_from([None, 0, 1]),
    "mem_copy_util_ratio": _share,
    "nvlink_bytes_per_s": _rate,
}
GROUPS = (_COUNTERS, _PIPES, _MEMORY, _LIMITS, _FAULTS)
# A counter window that was missed: all zero, PCIe too.
_MISSED = {n: 0.0 for n in (*_COUNTERS, *_PIPES) if n != "sm_clock_mhz"}


# Made once: a strategy made anew for each reading takes longer than the reading.
_flag, _cluster = st.booleans(), st.sampled_from(["c1", "c2"])
_run, _precision = st.sampled_from([None, None, "r1"]), st.sampled_from([None, None, "fp8"])
_place = st.sampled_from([{}, {"host": "h1", "gpu_index": "0"}, {"host": "h2"}])
_model, _start = st.sampled_from([*MODELS, None]), st.integers(0, 5 * 3600)
_other = st.sampled_from([{"namespace": "other", "workload": "w"}, {"pod": "p2"}, {"user": "u2", "account": "a"}])
_change = st.sampled_from(["none", "still", "missed"])
_slices = st.sampled_from([[1 / 7], [1 / 7, 3 / 7], [None, 2 / 7, 0.28571427]])
_instances = st.sampled_from([[None], [None], ["1"], ["1", "2"], [None, "1"]])


def _source(draw) -> dict[str, st.SearchStrategy]:
    """What one device records."""
    found = {"gpu_util_ratio": _pct, "power_w": _watts}
    for group in GROUPS:
        if draw(_flag):
            found |= group
    return found


def _sample(draw, recorded: dict[str, st.SearchStrategy], **given: object) -> dict:
    owner = {"namespace": draw(_name), "cluster": draw(_cluster), "run_id": draw(_run)}
    owner |= {"tensor_precision": draw(_precision)} | draw(_place)
    return owner | {name: draw(values) for name, values in recorded.items()} | given


source, sample = st.composite(_source), st.composite(_sample)

# Paces: coarse ones that cross hours, and fine ones at which waits occur and counter windows are missed.
_COARSE = (500, 60_000, 60_000, 60_000, 61_234, 900_000, 4_000_000)
_FINE = ((100, 100, 100, 200, 3_000), (1_000, 1_000, 1_000, 4_000), (10_000, 10_000, 10_000, 25_000))
_fine = st.sampled_from(_FINE)


def _device(draw, uuid: str, instance: str | None, max_samples: int, shared: bool) -> list[dict]:
    """Samples of one device on one day; perhaps with shared instants."""
    model = draw(_model)
    recorded = _source(draw)
    fine = draw(_flag)
    paces = draw(_fine) if fine else _COARSE
    at = DAY + draw(_start) * 1000
    if fine and draw(_flag):
        at += 3_600_000 - at % 3_600_000 - 2 * paces[0]  # so that a pause crosses the hour
    owner = _sample(draw, {}) if fine else {}
    pace, cut = st.sampled_from(paces), st.sampled_from([None] if instance is None else draw(_slices))
    out = []
    for _ in range(draw(st.integers(1, max_samples))):
        at += draw(pace)
        given = {"at_ms": at, "gpu_uuid": uuid, "gpu_instance_id": instance, "gpu_model": model} | owner
        first = _sample(draw, recorded, slice_ratio=draw(cut), **given)
        if fine:
            first |= _changed(first, draw(_change))
        out.append(first)
        if shared and draw(_flag):
            other = draw(_other)
            out.append(first | other)
            if draw(_flag):
                out.append(first | other | {"pod": "p3", "container": "c"})
    return [s for s in out if s["at_ms"] < DAY + DAY_MS]


def _changed(first: dict, change: str) -> dict:
    """What the same sample reads without work, or where its counters were missed."""
    if change == "still":
        return {n: 0.0 for n in ("gpu_util_ratio", "engine_ratio", "sm_ratio", "power_w") if first.get(n) is not None}
    return _MISSED if change == "missed" and "engine_ratio" in first else {}


@st.composite
def series(draw, max_devices: int = 3, max_samples: int = 14, shared: bool = False) -> list[dict]:
    """Samples of a few boards on one day, whole or cut into MIG instances, at steps that cross hours."""
    out = []
    for d in range(draw(st.integers(1, max_devices))):
        for instance in draw(_instances):
            out += _device(draw, f"GPU-{d}", instance, max_samples, shared)
    return out or [{"at_ms": DAY, "gpu_uuid": "GPU-0", "gpu_util_ratio": 0.5}]
