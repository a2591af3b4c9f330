"""What can a file of an inventory hold, which kinds of file are known, and what do several files hold together?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Protocol, runtime_checkable

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventory import Paid
from gpuledger.errors import FileFault, InputError, UnknownKind
from gpuledger.registry import Registry
from gpuledger.telemetry import formats


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
    """All that one file holds.

    `skipped_usd`: what the rows passed over cost, where they say so in dollars; `skipped_unread`: how many do not.
    """

    path: str
    kind: str
    rows: int
    paid: tuple[Paid, ...] = ()
    spent: tuple[Spent, ...] = ()
    nodes: tuple[Node, ...] = ()
    skipped: Mapping[Skipped, int] = field(default_factory=dict)
    skipped_usd: Mapping[Skipped, Decimal] = field(default_factory=dict)
    skipped_unread: Mapping[Skipped, int] = field(default_factory=dict)


class Kind(Protocol):
    """One kind of file, by the key of its format; telemetry/formats/bills.py knows which one a file is in."""

    def read(self, content: Content) -> Found:
        """All rows, checked; an error names file, row, field and value."""
        ...


@runtime_checkable
class ForeignKind(Kind, Protocol):
    """A kind of another package, which recognizes its files itself."""

    def fits(self, content: Content) -> bool:
        """Whether the content is of this kind."""
        ...


KINDS: Registry[Kind] = Registry("inventory", "gpuledger.cost.inventories", "gpuledger.inventories")


OWN = "own"
_EXPECTED = (
    "give your own table (device, usd_per_h, ...), an AWS, Azure, Google Cloud or FOCUS bill, OpenCost allocations, "
    "kubectl get nodes -o json, or scontrol show node"
)


@dataclass(frozen=True)
class Stock:
    """Files that were read, not yet matched with the GPUs of a lake."""

    found: tuple[Found, ...]

    @property
    def path(self) -> str:
        """All of them by name."""
        return ", ".join(one.path for one in self.found)


def read_stock(files: Iterable[str | Path]) -> Stock:
    """All files, in any order; an error where one is of no known kind, or is given twice."""
    seen: dict[str, str] = {}
    found: list[Found] = []
    for file in files:
        content = Content(str(file))
        if (twice := seen.setdefault(content.digest, content.path)) != content.path or len(seen) == len(found):
            raise InputError(f"{content.path} has the same content as {twice}", hint="give it once")
        found.append(_read(content))
    return Stock(tuple(sorted(found, key=lambda one: (one.kind, one.path))))


def _read(content: Content) -> Found:
    if not content.head.strip():
        raise FileFault(content.path, "the file is empty", hint=_EXPECTED)
    return _read_as(_kind_of(content), content)


def _kind_of(content: Content) -> Kind:
    """The kind that reads a file: of a format that is sure, of another package, or of one that may fit."""
    found = None
    with suppress(UnknownKind):
        found = formats.recognize(content.path, formats.Kind.INVENTORY)
    sure = found is not None and found.seen.fit is formats.Fit.SURE
    own = found.key if found is not None and found.format.kind is formats.Kind.INVENTORY else ""
    if not (own and sure):
        foreign = (kind for _, kind in KINDS if isinstance(kind, ForeignKind) and kind.fits(content))
        if kind := next(foreign, None):
            return kind
    if own:
        return KINDS.get(own)
    some = ", ".join(sorted(content.columns)[:4])  # a fault where it is broken
    if found is not None and sure:
        raise formats.other_kind(Path(content.path), found.format, "a bill or a list of machines")
    raise FileFault(content.path, f"not a known kind of inventory (columns: {some or 'none'})", hint=_EXPECTED)


def _read_as(kind: Kind, content: Content) -> Found:
    """The rows; again where a decimal comma shows up after points were taken to stand before decimals."""
    points = content.written.points
    found = kind.read(content)
    return found if content.written.points == points else kind.read(content)
