"""What can a file of an inventory hold, and which kinds of file are known?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventory import Paid
from gpuledger.registry import Registry


@dataclass(frozen=True, slots=True)
class Spent:
    """Dollars for one machine over one period.

    `names`: what the machine is called there, the surest first: an instance ID, a host name, or a GPU's UUID.
    `hours`: hours the machine ran in the period; None: all of it. `gpu_hours`: the dollars are for this many GPU-hours
    only, so they give a rate and not the cost of the period. `gpus`: how many GPUs the machine has, if known.
    """

    file: str
    row: int
    names: tuple[str, ...]
    start_ms: int
    end_ms: int
    usd: Decimal
    hours: Decimal | None = None
    gpu_hours: Decimal | None = None
    instance: str = ""
    region: str = ""
    purchase_option: str = "on_demand"
    gpus: int | None = None


@dataclass(frozen=True)
class Node:
    """A machine of a cluster, under all of its names, without dollars."""

    file: str
    row: int
    name: str
    aliases: frozenset[str] = frozenset()
    instance: str = ""
    region: str = ""
    gpus: int | None = None
    from_ms: int | None = None
    purchase_option: str = "on_demand"


@dataclass(frozen=True)
class Found:
    """All that one file holds."""

    path: str
    kind: str
    rows: int
    paid: tuple[Paid, ...] = ()
    spent: tuple[Spent, ...] = ()
    nodes: tuple[Node, ...] = ()
    skipped: Mapping[Skipped, int] = field(default_factory=dict)


class Kind(Protocol):
    """One kind of file."""

    def fits(self, content: Content) -> bool:
        """Whether the content is of this kind."""
        ...

    def read(self, content: Content) -> Found:
        """All rows, checked; an error names file, row, field and value."""
        ...


KINDS: Registry[Kind] = Registry("inventory", "gpuledger.cost.inventories", "gpuledger.inventories")
