"""How much of the card does a node use? Of the card it has, by the driver's name, never of an assumed one."""

from __future__ import annotations

from gpuledger.catalog.gpus import find_gpu
from gpuledger.scaling.figures import Figure, NodeFigures
from gpuledger.scaling.records import Node
from gpuledger.units import Unknown

USED = "memory_used_bytes"


def memory_of(node: Node) -> tuple[int | Unknown, str | Unknown, float | Unknown, Figure]:
    """Bytes in use on each GPU, the card, its bytes, and the share in percent."""
    raw = node.more.get(USED)
    good = isinstance(raw, int | float) and not isinstance(raw, bool) and raw >= 0
    used: int | Unknown = int(raw) if good and raw is not None else Unknown(f"the node does not say {USED}")
    found = node.gpu if isinstance(node.gpu, Unknown) else find_gpu(node.gpu)
    if isinstance(found, Unknown):
        return used, found, found, found if isinstance(used, int) else used
    size = found.memory_bytes.value
    return used, found.name, size, used if isinstance(used, Unknown) else 100 * used / size


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
