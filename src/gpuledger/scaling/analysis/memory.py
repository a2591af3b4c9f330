"""How much of the card does a node use? Of the card it has, by the driver's name, never of an assumed one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.bench.records import Node, Run
from gpuledger.catalog.gpus import find_gpu
from gpuledger.scaling.figures import Figure, NodeFigures, Telemetry
from gpuledger.units import GIB, MIB, Unknown

USED = "memory_used"
UNITS = {"bytes": 1, "mib": MIB, "gib": GIB, "mb": 1_000_000, "gb": 1_000_000_000}
Memory = tuple[int | Unknown, str | Unknown, float | Unknown, Figure]


def memory_of(run: Run, name: str, telemetry: Telemetry) -> Memory:
    """Bytes in use on each GPU, the card, its bytes, and the share in percent."""
    node = run.nodes.get(name, Node())
    used = told_bytes(node.more)
    if isinstance(used, Unknown):
        used = _sampled(run, name, telemetry)
    found = node.gpu if isinstance(node.gpu, Unknown) else find_gpu(node.gpu)
    if isinstance(found, Unknown):
        return used, found, found, found if isinstance(used, int) else used
    size = found.memory_bytes.value
    return used, found.name, size, used if isinstance(used, Unknown) else 100 * used / size


def told_bytes(said: Mapping[str, Any]) -> int | Unknown:
    """What a node or a claim says itself: memory_used_bytes, or the same in another unit."""
    for unit, size in UNITS.items():
        raw = said.get(f"{USED}_{unit}")
        if isinstance(raw, int | float) and not isinstance(raw, bool) and raw >= 0:
            return round(raw * size)
    return Unknown(f"the node does not say {USED}_bytes")


def _sampled(run: Run, name: str, telemetry: Telemetry) -> int | Unknown:
    """The peak of the GPU that served the node, or of the busiest of its machine where no other node shares them."""
    if not telemetry.gpus:
        return Unknown(f"the node does not say {USED}_bytes, and there are no samples of its GPUs")
    uuid, host = run.nodes.get(name, Node()).more.get("gpu_uuid"), _host(run, name)
    own = [g.memory_bytes for g in telemetry.gpus if g.gpu_uuid == uuid and (not host or g.host == host)]
    if own:
        return max(own)
    beside = [n for n in run.names if n != name and _host(run, n) == host]
    if beside:
        return Unknown(f"{len(beside) + 1} nodes share a machine, and the samples do not say whose GPU is whose")
    there = [g.memory_bytes for g in telemetry.gpus if not host or g.host == host]
    return max(there) if there else Unknown(f"there are no samples of {host}")


def _host(run: Run, name: str) -> str:
    """The machine of a node where the run had several; empty where all ran on one."""
    machine = run.nodes.get(name, Node()).more.get("machine")
    return str(machine.get("host") or "") if isinstance(machine, Mapping) else ""


def memory_pct(nodes: tuple[NodeFigures, ...], peak_bytes: int | Unknown) -> Figure:
    """The mean over the nodes whose share is known; else the peak of the telemetry, of the one card all nodes have."""
    cards = {n.card_bytes for n in nodes if not isinstance(n.card_bytes, Unknown)}
    silent = all(isinstance(n.memory_used_bytes, Unknown) for n in nodes)
    if silent and len(cards) == 1 and not isinstance(peak_bytes, Unknown):
        return 100 * peak_bytes / cards.pop()
    known = [n.memory_pct for n in nodes if not isinstance(n.memory_pct, Unknown)]
    if known:
        return sum(known) / len(known)
    return next((n.memory_pct for n in nodes if isinstance(n.memory_pct, Unknown)), Unknown("there is no node"))
