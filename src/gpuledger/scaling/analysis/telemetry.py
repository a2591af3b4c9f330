"""What did the GPUs do while the run lasted? From the samples beside it, where its header names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpuledger.bench.plan import LOOPBACK
from gpuledger.bench.records import Run
from gpuledger.scaling.figures import GpuPeak, Telemetry
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.lake.layout import Lake

J_PER_KWH = 3_600_000


def no_telemetry(why: str) -> Telemetry:
    """Nothing is known, and why."""
    none = Unknown(why)
    return Telemetry(none, none, none, none, none)


def telemetry_of(run: Run) -> Telemetry:
    """Utilization, RFU and energy of the whole lake of the run; a lake that cannot be read is said, not fatal."""
    folder = run.telemetry_dir
    if isinstance(folder, Unknown):
        return no_telemetry("no telemetry was recorded beside the run")
    if away := _served_away(run):
        who = f"{', '.join(away[:4])}{', ...' if len(away) > 4 else ''}"
        return no_telemetry(f"the samples are of the machine that asked, and {who} answered elsewhere: record there")
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.efficiency.build import efficiency_statement
    from gpuledger.errors import GpuledgerError
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.engine import post_lake

    try:
        lake = Lake(folder)
        lake.require()
        post_lake(lake, load_thresholds())
        means = efficiency_statement(lake).fleet
        peaks = _peaks(lake)
    except GpuledgerError as error:
        return no_telemetry(f"the telemetry beside the run cannot be read: {error.message}")
    energy = means.energy_kwh
    silent = Unknown("no sample says how much memory was used")
    return Telemetry(
        gpu_util_pct=means.gpu_util_pct,
        rfu_power_pct=means.rfu_power_pct,
        rfu_counters_pct=means.rfu_counters_pct,
        energy_j=energy if isinstance(energy, Unknown) else energy * J_PER_KWH,
        memory_peak_bytes=max((p.memory_bytes for p in peaks), default=silent),
        gpus=peaks,
    )


def _served_away(run: Run) -> Sequence[str]:
    """Endpoints on machines that nobody sampled: the client's own GPUs say nothing of them."""
    urls = ((name, node.more.get("url")) for name, node in run.nodes.items())
    return [name for name, url in urls if url and urlsplit(str(url)).hostname not in LOOPBACK]


def _peaks(lake: Lake) -> tuple[GpuPeak, ...]:
    """The most memory each GPU used in any sample."""
    import pyarrow.parquet as pq

    most: dict[tuple[str, str], int] = {}
    for part in lake.manifest().parts:
        rows = pq.read_table(lake.path(part), columns=["host", "gpu_uuid", "fb_used_bytes"])
        grouped = rows.group_by(["host", "gpu_uuid"]).aggregate([("fb_used_bytes", "max")])
        for row in grouped.to_pylist():
            if row["fb_used_bytes_max"] is not None:
                key = (str(row["host"] or ""), str(row["gpu_uuid"] or ""))
                most[key] = max(most.get(key, 0), int(row["fb_used_bytes_max"]))
    return tuple(GpuPeak(host, uuid, used) for (host, uuid), used in sorted(most.items()))
