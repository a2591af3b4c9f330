"""What does a bill or a list of machines show by itself, before it meets the samples of a fleet?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from gpuledger.cost.inventories.findings import NODES, FileUse, InventoryUse, Skipped
from gpuledger.cost.inventories.kinds import OWN, Found, Node, Spent, read_stock
from gpuledger.cost.inventories.unused import not_used
from gpuledger.cost.inventory import Paid
from gpuledger.telemetry.formats.bills import BILLS
from gpuledger.units import Unknown

MOST_MACHINES = 100
_NO_COUNT = Unknown("the file does not show how many GPUs it has")
_NO_DOLLARS = Unknown("a list of machines has no prices")
_PER_HOUR = Unknown("a price per hour: dollars need the hours that samples show")
_NO_HOURS = Unknown("the file does not show its hours")
_NO_ROWS = Unknown("no row is for a machine with GPUs")


@dataclass(frozen=True)
class Machine:
    """One machine, or GPU, that a file names. `usd`: of all its rows; `hours`: of the machine, in these rows."""

    name: str
    instance: str
    region: str
    gpus: int | Unknown
    rows: int
    hours: Decimal | Unknown
    usd: Decimal | Unknown
    usd_per_h: Decimal | Unknown


@dataclass(frozen=True)
class BillSummary:
    """A file of an inventory by itself.

    `rows_read`: those for machines with GPUs; the others are `skipped`, by reason, with what they cost where they say
    it in dollars (`skipped_unread`: how many do not). `gpus`: of the machines whose number of GPUs is known.
    `by_machine`: those with the most dollars.
    """

    file: str
    kind: str
    format: str
    rows: int
    rows_read: int
    machines: int
    gpus: int | Unknown
    usd: Decimal | Unknown
    start_ms: int | None
    end_ms: int | None
    next_step: str
    by_machine: tuple[Machine, ...] = ()
    skipped: Mapping[Skipped, int] = field(default_factory=dict)
    skipped_usd: Mapping[Skipped, Decimal] = field(default_factory=dict)
    skipped_unread: Mapping[Skipped, int] = field(default_factory=dict)

    @property
    def passed_over(self) -> str:
        """The rows that are not counted, in words."""
        file = FileUse(
            self.file, self.kind, self.rows, self.skipped, self.rows_read, self.skipped_usd, self.skipped_unread
        )
        return not_used(file, InventoryUse((file,)))


def bill_summary(path: Path) -> BillSummary:
    """The summary of a file; a fault where it is not of a known kind."""
    (found,) = read_stock([path]).found
    machines = sorted(_machines(found), key=_most)
    starts = [*(one.start_ms for one in found.spent), *(row.from_ms for row in found.paid)]
    ends = [*(one.end_ms for one in found.spent), *(row.to_ms for row in found.paid)]
    known = [one.gpus for one in machines if not isinstance(one.gpus, Unknown)]
    return BillSummary(
        file=str(path),
        kind=found.kind,
        format=BILLS[found.kind][0] if found.kind in BILLS else found.kind,
        rows=found.rows,
        rows_read=len(found.spent) + len(found.nodes) + len(found.paid),
        machines=len(machines),
        gpus=sum(known) if known else _NO_COUNT if machines else _NO_ROWS,
        usd=_dollars(found),
        start_ms=_end_of(starts, min),
        end_ms=_end_of(ends, max),
        next_step=f"give it next to samples: gpuledger audit SAMPLES --inventory {path}",
        by_machine=tuple(machines[:MOST_MACHINES]),
        skipped=found.skipped,
        skipped_usd=found.skipped_usd,
        skipped_unread=found.skipped_unread,
    )


def _end_of(times: Sequence[int | None], which: Callable[[list[int]], int]) -> int | None:
    """The first or the last of some times; None where one of them is open."""
    known = [at for at in times if at is not None]
    return which(known) if known and len(known) == len(times) else None


def _dollars(found: Found) -> Decimal | Unknown:
    if found.spent:
        return sum((one.usd for one in found.spent), Decimal(0))
    if found.kind in NODES:
        return _NO_DOLLARS
    return _PER_HOUR if found.kind == OWN else _NO_ROWS


def _most(one: Machine) -> tuple[Decimal, Decimal, str]:
    """The most dollars first, then the highest price."""
    usd, rate = (Decimal(0) if isinstance(value, Unknown) else value for value in (one.usd, one.usd_per_h))
    return -usd, -rate, one.name


def _machines(found: Found) -> Iterable[Machine]:
    by_name = defaultdict[str, list[Spent]](list)
    for spent in found.spent:
        by_name[spent.names[0]].append(spent)
    yield from (_billed(name, rows) for name, rows in by_name.items())
    yield from map(_listed, found.nodes)
    prices = defaultdict[str, list[Paid]](list)
    for row in found.paid:
        prices[row.device].append(row)
    yield from (_priced(name, rows) for name, rows in prices.items())


def _billed(name: str, rows: Sequence[Spent]) -> Machine:
    """A machine with what it cost."""
    first, usd = rows[0], sum((row.usd for row in rows), Decimal(0))
    shown = [row.hours for row in rows if row.hours is not None]
    hours = sum(shown, Decimal(0)) if len(shown) == len(rows) else _NO_HOURS
    rate = usd / hours if hours and not isinstance(hours, Unknown) else _NO_HOURS
    gpus = first.gpus or _NO_COUNT
    return Machine(name, first.instance, first.region, gpus, len(rows), hours, usd, rate)


def _listed(node: Node) -> Machine:
    """A node, which has no price."""
    gpus = node.gpus or _NO_COUNT
    return Machine(node.name, node.instance, node.region, gpus, 1, _NO_HOURS, _NO_DOLLARS, _NO_DOLLARS)


def _priced(name: str, rows: Sequence[Paid]) -> Machine:
    """A device of a table of prices, by its newest row; without a price it is that of its instance in the catalog."""
    last = max(rows, key=lambda row: row.from_ms or 0)
    rate = last.usd_per_h if last.usd_per_h is not None else Unknown("the row has no price; its instance may have one")
    return Machine(name, last.instance, last.region, _NO_COUNT, len(rows), _NO_HOURS, _PER_HOUR, rate)
