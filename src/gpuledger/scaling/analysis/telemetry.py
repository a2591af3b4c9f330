"""What did the GPUs do while the run lasted? From the samples beside it, where its header names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.scaling.figures import Telemetry
from gpuledger.scaling.records import Run
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
        peak = _peak_bytes(lake)
    except GpuledgerError as error:
        return no_telemetry(f"the telemetry beside the run cannot be read: {error.message}")
    energy = means.energy_kwh
    return Telemetry(
        gpu_util_pct=means.gpu_util_pct,
        rfu_power_pct=means.rfu_power_pct,
        rfu_counters_pct=means.rfu_counters_pct,
        energy_j=energy if isinstance(energy, Unknown) else energy * J_PER_KWH,
        memory_peak_bytes=peak,
    )


def _peak_bytes(lake: Lake) -> int | Unknown:
    """The most memory any GPU used in any sample."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    most: list[int] = []
    for part in lake.manifest().parts:
        column = pq.read_table(lake.path(part), columns=["fb_used_bytes"])["fb_used_bytes"]
        if (found := pc.max(column).as_py()) is not None:
            most.append(int(found))
    return max(most) if most else Unknown("no sample says how much memory was used")
