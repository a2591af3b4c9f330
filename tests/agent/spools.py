"""Spools with samples in them, written as a recording writes them."""

from __future__ import annotations

from pathlib import Path

from gpuledger.agent.spool import Spool
from gpuledger.devices.device import Facts
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.recording.live_parts import Batch, LiveParts
from gpuledger.telemetry import schema
from gpuledger.units import GIB

START = 1_768_867_200_000  # 2026-01-20 00:00 UTC
MIN = 60_000
COLUMNS = ("at_ms", "gpu_util_ratio", "power_w", "energy_mj")


def spool_at(root: Path, most: int = GIB) -> Spool:
    spool = Spool(root, most)
    spool.prepare()
    return spool


def record(
    spool: Spool, from_ms: int, seconds: int = 60, gpus: int = 2, host: str = "h1", name: str = "GPU-{host}-{gpu}"
) -> None:
    """Samples of some GPUs, one per second, in the spool's own lake."""
    parts = LiveParts(spool.live)
    batches = [
        Batch(
            Facts(gpu, name.format(host=host, gpu=gpu), "NVIDIA H200"),
            {"host": host, "workload": "train"},
            COLUMNS,
            [(from_ms + 1000 * s, 0.9, 400.0 + gpu, (from_ms - START) + 400_000 * s) for s in range(seconds)],
        )
        for gpu in range(gpus)
    ]
    parts.append(batches)
    parts.close()


def sealed_minutes(spool: Spool, minutes: int, first: int = 0) -> None:
    """One batch a minute."""
    for minute in range(first, first + minutes):
        record(spool, START + minute * MIN)
        spool.seal()


def keys(lake: Lake) -> list[tuple[str, int, int]]:
    """Device, instant and energy of every row of a lake, in order, repeats included.

    On a busy machine a device may be read twice within a millisecond: these are two rows, which energy tells apart.
    """
    table = samples_table(lake)
    return sorted(zip(*(table[name].to_pylist() for name in ("gpu_uuid", schema.TIME, "energy_mj")), strict=True))
