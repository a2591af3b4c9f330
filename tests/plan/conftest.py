"""A small fleet written line by line: every demand can be checked with a pencil."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.units import MS_PER_HOUR, PPM, day_start_ms, utc_day

START = day_start_ms("2026-01-20")
A10G, A100 = "NVIDIA A10G", "NVIDIA A100-SXM4-40GB"
CARDS = {A10G: 24e9, A100: 40e9}

Hour = Callable[..., dict[str, Any]]


@pytest.fixture
def hour() -> Hour:
    """One device's hour: shares of time busy, of its tensor pipe and of its memory bandwidth, and bytes used."""

    def make(
        at: int = 0, gpu: str = "GPU-a", *, model: str = A10G, busy: float = 0.5, tensor: float = 0.2,
        dram: float = 0.2, used_bytes: float = 8e9, nvlink_bytes_per_s: float = 0.0, counters: bool = True,
        **given: Any,
    ) -> dict[str, Any]:  # fmt: skip
        start, ms = START + at * MS_PER_HOUR, MS_PER_HOUR
        row: dict[str, Any] = {name: 0 if column.merge == "sum" else None for name, column in lines.columns().items()}
        row |= {
            "hour_ms": start, "grain_ms": ms, "gpu_uuid": gpu, "gpu_model": model, "first_ms": start,
            "last_ms": start + ms, "samples": 60, "observed_ms": ms, "cluster": "c1", "namespace": "serving",
            "state": "plain", "limit_mw": 150_000, "card_bytes": int(CARDS[model]),
            "fb_ms": ms, "fb_max_bytes": int(used_bytes),
            "fb_mib_ms": int(used_bytes / 2**20) * ms, "busy_ppm_ms": int(busy * PPM) * ms, "active_ms": ms,
            "active_util_ppm_ms": int(busy * PPM) * ms, "util_ms": ms, "util_ppm_ms": int(busy * PPM) * ms,
            "engine_ms": ms, "engine_ppm_ms": int(busy * PPM) * ms, "nvlink_ms": ms,
            "nvlink_bytes": int(nvlink_bytes_per_s * 3600), "phase_productive_ms": ms, "power_ms": ms,
            "power_uj": 75_000 * ms, "pif_ms": ms, "pif_uj": 75_000 * ms,
        }  # fmt: skip
        if counters:
            row |= {
                "tensor_ms": ms, "tensor_ppm_ms": int(tensor * PPM) * ms,
                "tensor_ppm_mhz_ms": int(tensor * PPM) * 1000 * ms,
                "dram_ms": ms, "dram_ppm_ms": int(dram * PPM) * ms, "clock_ms": ms, "clock_mhz_ms": 1000 * ms,
                "fp32_ms": ms, "state": "matrix",
            }  # fmt: skip
        row |= given
        unknown = sorted(set(row) - set(lines.columns()))
        assert not unknown, f"no such column of a line: {unknown}"
        return row

    return make


@pytest.fixture
def books(tmp_path: Path) -> Callable[..., Lake]:
    """Writes lines into a lake of their own."""

    def write(*rows: dict[str, Any]) -> Lake:
        lake = Lake(tmp_path / "lake")
        with lake.locked():
            lake.commit([])
            for day in sorted({utc_day(r["hour_ms"]) for r in rows}):
                table = pa.Table.from_pylist([r for r in rows if utc_day(r["hour_ms"]) == day], lines.arrow_schema())
                Ledger(lake).put(PostedDay(day, 1, (1,), (), table.num_rows, 0), {"lines": table})
        return lake

    return write
