"""OpenCost and Kubecost allocations: what did the GPUs of each node cost?

An allocation holds the GPU-hours that pods asked for. It gives a price per GPU-hour; where the file also has the idle
time of the node (`__idle__` shared by node), it holds all of the node's GPU dollars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gpuledger.cost.inventories.content import Content, flat
from gpuledger.cost.inventories.fields import Fields, rows_of
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Spent
from gpuledger.errors import FileFault

IDLE = "__idle__"
_NODE = ("node", "properties_node")
_STARTS, _ENDS = ("window_start", "start", "date"), ("window_end", "end")
_SETS = "data"


class OpenCost:
    """The allocation API's JSON, or its rows as a table with a node column."""

    def read(self, content: Content) -> Found:
        """The GPU dollars of each node and window."""
        skipped, spent = Counter[Skipped](), list[Spent]()
        dollars: dict[Skipped, Decimal] = {}
        rows = list(_rows(content))
        if not any(row.text(*_NODE) for row in rows):
            hint = "ask for them by node: /allocation?aggregate=node (with includeIdle=true&idleByNode=true)"
            raise FileFault(content.path, "the allocations do not name their node", hint=hint)
        idle = {row.text(*_NODE) for row in rows if IDLE in row.text("name")}
        for row in rows:
            cost, node = row.number_of("gpu_cost"), row.text(*_NODE)
            if not node:
                skipped[Skipped.NO_MACHINE] += 1
                dollars[Skipped.NO_MACHINE] = dollars.get(Skipped.NO_MACHINE, Decimal(0)) + (cost or 0)
            elif not cost:
                skipped[Skipped.NO_GPU] += 1
            else:
                spent.append(self._spent(row, node, cost, whole=node in idle))
        return Found(content.path, "opencost", len(rows), spent=tuple(spent), skipped=skipped, skipped_usd=dollars)

    def _spent(self, row: Fields, node: str, cost: Decimal, *, whole: bool) -> Spent:
        start, end = row.period(_STARTS, _ENDS)
        hours = None if whole else row.number_of("gpu_hours")
        cluster = row.text("properties_cluster", "cluster")
        names = (row.text("properties_provider_id", "provider_id"), f"{cluster}/{node}" if cluster else "", node)
        return Spent(
            row.path, row.number, tuple(name for name in names if name), start, end, cost, gpu_hours=hours,
            region=row.text("region"),
        )  # fmt: skip


def _allocations(document: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every allocation of every step, with its name."""
    sets = document.get(_SETS) if isinstance(document, dict) else None
    for step in sets if isinstance(sets, list) else ():
        for name, allocation in step.items() if isinstance(step, dict) else ():
            if isinstance(allocation, dict):
                yield name, allocation


def _rows(content: Content) -> Iterator[Fields]:
    if not isinstance(content.document, dict):
        yield from rows_of(content)
        return
    for number, (name, allocation) in enumerate(_allocations(content.document), start=1):
        found = dict(flat(allocation))
        yield Fields(content, number, {"name": name, **found})


KINDS.register("opencost")(OpenCost())
