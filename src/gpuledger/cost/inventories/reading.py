"""Which kind is each file of an inventory, and what do they hold together?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.kinds import KINDS, Found
from gpuledger.errors import FileFault, InputError

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
    for name, kind in KINDS:
        if name != OWN and kind.fits(content):
            return kind.read(content)
    own = KINDS.get(OWN)
    if own.fits(content):
        return own.read(content)
    some = ", ".join(sorted(content.columns)[:4])
    raise FileFault(content.path, f"not a known kind of inventory (columns: {some or 'none'})", hint=_EXPECTED)
