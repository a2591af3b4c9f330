"""What did the GPUs do during the run, and how much of their memory was in use?

Utilization, energy and memory come from the samples that the header names. Memory is compared with the card that the
driver names, never with an assumed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpuledger.bench.records import LOOPBACK, Node, Run, present
from gpuledger.catalog.gpus import find_gpu
from gpuledger.scaling.figures import Figure, GpuPeak, NodeFigures, Telemetry
from gpuledger.units import GIB, MIB, Unknown

if TYPE_CHECKING:
    from gpuledger.lake.layout import Lake

J_PER_KWH = 3_600_000
NO_BYTES = "the node does not report memory_used_bytes"
UNITS = {"bytes": 1, "mib": MIB, "gib": GIB, "mb": 1_000_000, "gb": 1_000_000_000}
Memory = tuple[int | Unknown, str | Unknown, float | Unknown, Figure]


def no_telemetry(why: str) -> Telemetry:
    """Every figure unknown, with the reason."""
    none = Unknown(why)
    return Telemetry(none, none, none, none, none)


def telemetry_of(run: Run) -> Telemetry:
    """Utilization, RFU and energy over the whole lake of the run; a lake that cannot be read is reported, not fatal."""
    folder = run.telemetry_dir
    if isinstance(folder, Unknown):
        return no_telemetry("no telemetry was recorded with the run")
    if away := _served_away(run):
        who = f"{', '.join(away[:4])}{', ...' if len(away) > 4 else ''}"
        return no_telemetry(f"the samples are from the client's machine, and {who} answered elsewhere: record there")
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
        return no_telemetry(f"the telemetry of the run cannot be read: {error.message}")
    energy = means.energy_kwh
    return Telemetry(
        gpu_util_pct=means.gpu_util_pct,
        rfu_power_pct=means.rfu_power_pct,
        rfu_counters_pct=means.rfu_counters_pct,
        energy_j=energy if isinstance(energy, Unknown) else energy * J_PER_KWH,
        memory_peak_bytes=max((p.memory_bytes for p in peaks), default=Unknown("no sample has memory in use")),
        gpus=peaks,
    )


def _served_away(run: Run) -> Sequence[str]:
    """Endpoints on machines that were not sampled: the client's own GPUs show nothing of them."""
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


def memory_of(run: Run, name: str, telemetry: Telemetry) -> Memory:
    """Bytes in use on each GPU, the card, its bytes, and the share in percent."""
    node = run.nodes.get(name, Node())
    used = stated_bytes(node.more)
    if isinstance(used, Unknown):
        used = _sampled(run, name, telemetry)
    found = node.gpu if isinstance(node.gpu, Unknown) else find_gpu(node.gpu)
    if isinstance(found, Unknown):
        return used, found, found, found if isinstance(used, int) else used
    size = found.memory_bytes.value
    return used, found.name, size, used if isinstance(used, Unknown) else 100 * used / size


def stated_bytes(facts: Mapping[str, Any]) -> int | Unknown:
    """What a node or a claim states itself: memory_used_bytes, or the same in another unit."""
    for unit, size in UNITS.items():
        raw = facts.get(f"memory_used_{unit}")
        if isinstance(raw, int | float) and not isinstance(raw, bool) and raw >= 0:
            return round(raw * size)
    return Unknown(NO_BYTES)


def _sampled(run: Run, name: str, telemetry: Telemetry) -> int | Unknown:
    """The peak of the GPU that served the node, or of the busiest of its machine where no other node shares them."""
    if not telemetry.gpus:
        return Unknown(f"{NO_BYTES}, and its GPUs were not sampled")
    uuid, host = run.nodes.get(name, Node()).more.get("gpu_uuid"), _host(run, name)
    there = [g for g in telemetry.gpus if not host or g.host == host]
    if own := [g.memory_bytes for g in there if g.gpu_uuid == uuid]:
        return max(own)
    sharing = sum(_host(run, n) == host for n in run.names)
    if sharing > 1:
        return Unknown(f"{sharing} nodes share a machine, and the samples do not name the GPU of each")
    return max((g.memory_bytes for g in there), default=Unknown(f"the GPUs of {host} were not sampled"))


def _host(run: Run, name: str) -> str:
    """The machine of a node where the run had several; empty where all ran on one."""
    machine = run.nodes.get(name, Node()).more.get("machine")
    return str(machine.get("host") or "") if isinstance(machine, Mapping) else ""


def memory_pct(nodes: tuple[NodeFigures, ...], peak_bytes: int | Unknown) -> Figure:
    """The mean over the nodes whose share is known; else the peak of the telemetry, of the one card all nodes have."""
    cards = set(present(n.card_bytes for n in nodes))
    if not present(n.memory_used_bytes for n in nodes) and len(cards) == 1 and not isinstance(peak_bytes, Unknown):
        return 100 * peak_bytes / cards.pop()
    known = present(n.memory_pct for n in nodes)
    return sum(known) / len(known) if known else next((n.memory_pct for n in nodes), Unknown("the run has no node"))
