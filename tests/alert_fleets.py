"""Samples of fleets in which one thing is wrong, and what alert rules report of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

from gpuledger.lake.layout import Lake
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.live.alerts.rule import ALERTS, Reading
from gpuledger.live.alerts.watcher import Eyes

START = dt.datetime(2026, 1, 20, tzinfo=dt.UTC)
START_MS = int(START.timestamp() * 1000)
MIN = 60_000
NAMES = {
    "util": "DCGM_FI_DEV_GPU_UTIL", "power": "DCGM_FI_DEV_POWER_USAGE", "clock": "DCGM_FI_DEV_SM_CLOCK",
    "used": "DCGM_FI_DEV_FB_USED", "free": "DCGM_FI_DEV_FB_FREE", "engine": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "throttle": "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "xid": "DCGM_FI_DEV_XID_ERRORS",
    "remapped": "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "remap_failed": "DCGM_FI_DEV_ROW_REMAP_FAILURE",
}  # fmt: skip
USUAL = {
    "util": 95, "power": 380, "clock": 1400, "used": 30000, "free": 10000, "engine": 0.95, "throttle": 0, "xid": 0,
    "remapped": 0, "remap_failed": 0,
}  # fmt: skip
Change = Callable[[int, int], dict[str, float] | None]


def write_samples(
    file: Path, change: Change, *, gpus: int = 4, first: int = 0, minutes: int = 120, job: str = "job-7"
) -> Path:
    """Samples each minute; `change`: by GPU and minute what differs from a healthy GPU, None for no sample."""
    rows = ["timestamp,UUID,modelName,Hostname,gpu,namespace,pod,run_id," + ",".join(NAMES.values())]
    for minute in range(first, first + minutes):
        for gpu in range(gpus):
            found = change(gpu, minute)
            if found is not None:
                at = (START + dt.timedelta(minutes=minute)).isoformat()
                place = f"{at},GPU-{gpu},NVIDIA A100-SXM4-40GB,node-1,{gpu},ml,train-0,{job}"
                rows.append(f"{place},{','.join(str((USUAL | found)[name]) for name in NAMES)}")
    file.write_text("\n".join(rows) + "\n")
    return file


def readings(lake: Lake, rule: str, now_ms: int | None = None) -> dict[str, Reading]:
    """What one rule reports of a lake, by subject."""
    now = START_MS + 120 * MIN if now_ms is None else now_ms
    look = Eyes(lake).look(load_alerts(), now)
    assert rule not in look.problems, look.problems
    assert set(look.problems) <= set(ALERTS.names())
    (found,) = [one for one in look.looked if one.rule.name == rule]
    return {r.subject.name: r for r in found.readings}
