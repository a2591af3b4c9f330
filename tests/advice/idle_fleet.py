"""Small fleets with known idle stretches, written as DCGM exports, imported and posted."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.units import day_start_ms, utc

START = day_start_ms("2026-01-05")
HOUR = 3_600_000
DAY = 24 * HOUR
STEP = 600_000  # a sample every ten minutes
FREE, HELD = 100, 20_000  # MiB
A100 = "NVIDIA A100-SXM4-40GB"
Row = dict[str, Any]


def idle(held: int = FREE) -> Row:
    """The readings of a GPU that does nothing."""
    return {"DCGM_FI_DEV_GPU_UTIL": 0, "DCGM_FI_DEV_POWER_USAGE": 60, "DCGM_FI_DEV_FB_USED": held}


def busy(held: int = HELD) -> Row:
    """The readings of a GPU at work."""
    return {"DCGM_FI_DEV_GPU_UTIL": 95, "DCGM_FI_DEV_POWER_USAGE": 350, "DCGM_FI_DEV_FB_USED": held}


def gpu(
    name: str, hours: Iterable[float], does: Callable[[float], Row | None], *, model: str = A100, namespace: str = "ml"
) -> list[Row]:
    """Samples of one GPU from the first to the last hour; `does` has its readings at an hour, None for no sample."""
    first, last = hours
    out = []
    for at in range(START + round(first * HOUR), START + round(last * HOUR), STEP):
        found = does((at - START) / HOUR)
        if found is not None:
            labels = {"Hostname": f"node-{name}", "gpu": "3", "namespace": namespace}
            when = f"{utc(at):%Y-%m-%dT%H:%M:%SZ}"
            out.append({"timestamp": when, "UUID": f"GPU-{name}", "modelName": model, **labels, **found})
    return out


def lake_of(folder: Path, *gpus: list[Row]) -> Lake:
    """A lake of these GPUs, posted."""
    rows = [row for one in gpus for row in one]
    names = list(dict.fromkeys(name for row in rows for name in row))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "fleet.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    lake = Lake(folder / "lake")
    import_files(lake, [file])
    post_lake(lake, load_thresholds())
    return lake
