"""Posting the slow and obvious way, one sample at a time, for tests to compare with."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.units import Unknown

HOUR = 3_600_000
OWNER = ("cluster", "namespace", "workload", "run_id")


def _whole(value: float) -> int:
    return round(value)


def _owner_key(row: dict) -> list[str]:
    return [row.get(o) or "" for o in OWNER]


def post(samples: list[dict], limits: Thresholds) -> dict[tuple, dict[str, int]]:
    """Lines by (device, hour, owner, precision) of samples without conflicts, of one day."""
    lines: dict[tuple, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    by_device = defaultdict(list)
    for s in samples:
        by_device[s["gpu_uuid"], s.get("gpu_instance_id")].append(s)
    for device, rows in by_device.items():
        stamps = sorted({r["at_ms"] for r in rows})
        run_at = {at: min((r for r in rows if r["at_ms"] == at), key=_owner_key).get("run_id") for at in stamps}
        for i, at in enumerate(stamps):
            after = stamps[i + 1] if i + 1 < len(stamps) else None
            steps = sorted(b - a for a, b in itertools.pairwise(s for s in stamps if run_at[s] == run_at[at]))
            median = steps[(len(steps) - 1) // 2] if steps else (after - at if after is not None else 0)
            span = median if after is None else min(after - at, median * 5 // 2)
            sharing = sorted((r for r in rows if r["at_ms"] == at), key=_owner_key)
            for place, row in enumerate(sharing):
                own = span // len(sharing) + (place < span % len(sharing))
                _add_row(lines, device, row, at, span, own, len(sharing), limits)
    return {k: dict(v) for k, v in lines.items()}


def _add_row(lines, device, row, at, span, own, n, limits) -> None:
    hour, first = at // HOUR, True
    while first or hour * HOUR < at + span:
        low, high = max(at, hour * HOUR), min(at + span, (hour + 1) * HOUR)
        ms = math.floor(Fraction(own * (high - at), max(span, 1))) - math.floor(
            Fraction(own * (low - at), max(span, 1))
        )
        key = (*device, hour * HOUR, *(row.get(o) for o in OWNER), row.get("tensor_precision"))
        line = lines[key]
        line["samples"] += first
        line["observed_ms"] += ms
        line["shared_ms"] += ms if n > 1 else 0
        _add_physics(line, row, ms, limits)
        hour, first = hour + 1, False


def _add_physics(line, row, ms, limits) -> None:
    util, power, engine = row.get("gpu_util_ratio"), row.get("power_w"), row.get("engine_ratio")
    gpu = find_gpu(row["gpu_model"]) if row.get("gpu_model") else Unknown("no name")
    board = None if isinstance(gpu, Unknown) else gpu.board_power_w.value
    activity = engine if engine is not None else row.get("sm_ratio")
    if activity is None and util is None:
        line["unstated_ms"] += ms
    else:
        # Activity is stored in 32 bits: 0.01 as read must count as 0.01.
        still = activity < float(np.float32(0.01)) if activity is not None else util < 0.10
        used = row.get("fb_used_bytes")
        card = (used or 0) + row["fb_free_bytes"] if row.get("fb_free_bytes") is not None else 0
        if still and used is not None and used > max(2 * 2**30, 0.02 * card):
            line["idle_held_ms"] += ms
        elif still:
            line["idle_ms"] += ms
        else:
            line["busy_ppm_ms"] += _whole((activity if activity is not None else util) * 1e6) * ms
    if util is not None:
        line["util_ms"] += ms
        line["util_ppm_ms"] += _whole(util * 1e6) * ms
        line["active_ms"] += ms if util > 0.01 else 0
        phase = (
            "idle" if util < 0.1 else "underutilized" if util < 0.7 else "productive" if util < 0.9 else "compute_bound"
        )
        line[f"phase_{phase}_ms"] += ms
        line[f"util_h{min(int(util * 20), 19):02d}"] += ms
    if power is not None:
        line["power_uj"] += _whole(power * 1e3) * ms
        if board is not None:
            pif = min(power / board, 1.0)
            line["pif_uj"] += _whole(min(_whole(power * 1e3), board * 1e3)) * ms
            if util is not None:
                line[f"class_{_class(util, pif)}_ms"] += ms
                line["bottleneck_ms"] += ms if util > 0.7 and pif < 0.6 else 0
    clock, tensor = row.get("sm_clock_mhz"), row.get("tensor_ratio")
    if clock is not None and tensor is not None:
        line["tensor_ppm_mhz_ms"] += _whole(tensor * 1e6) * _whole(clock) * ms


def _class(util: float, pif: float) -> str:
    if util < 0.10:
        return "idle"
    if util >= 0.70 and pif >= 0.75:
        return "efficient"
    if util >= 0.70 and pif < 0.60:
        return "bottlenecked"
    if util >= 0.40 and pif >= 0.50:
        return "moderate"
    return "inefficient"
