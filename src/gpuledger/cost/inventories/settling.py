"""Which GPUs does an inventory pay for, when and at which rate, and where do its files contradict each other?

Of two prices for a GPU at the same time the first of these is used: a row of your own for that GPU, a row of your own
for its host, a cloud's own bill, a FOCUS file, allocations. A list of nodes has no prices; it says what is paid for
where nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from gpuledger.cost.inventories.findings import FileUse, InventoryUse, PartlySeen, PriceConflict, Source, Unmatched, Why
from gpuledger.cost.inventories.kinds import OWN, Found, Node, Stock, read_stock
from gpuledger.cost.inventories.matching import Directory, Presence, read_presences
from gpuledger.cost.inventories.spreading import Piece, Spread, spread, why_not
from gpuledger.cost.inventory import Inventory, Paid, check_overlaps
from gpuledger.cost.money import usd
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_HOUR

Given = Inventory | Stock | str | Path | Sequence[str | Path]
# Kinds from the one to be used first; another package's come after the clouds' own bills.
ORDER = ("aws", "azure", "gcp", "", "focus", "opencost")
# As NVIDIA writes it; a host may be called gpu-01.
_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/.+)?", re.IGNORECASE)


def inventory_of(lake: Lake, given: Given | None) -> Inventory | None:
    """What is paid for in a lake, from files or from rows that were read; the ledger must be posted."""
    if given is None or (isinstance(given, Inventory) and given.use is not None):
        return given
    if isinstance(given, Inventory):
        stock = Stock((Found(given.path, OWN, len(given.rows), paid=given.rows),))
    else:
        stock = stock_of(given)
    return settle(stock, read_presences(lake))


def stock_of(given: Stock | str | Path | Sequence[str | Path]) -> Stock:
    """The files, read."""
    if isinstance(given, Stock):
        return given
    return read_stock([given] if isinstance(given, str | Path) else given)


def settle(stock: Stock, presences: Sequence[Presence]) -> Inventory:
    """The rows of every GPU of the lake, and what became of all others."""
    directory = Directory(presences, (node for one in stock.found for node in one.nodes))
    unmatched: list[Unmatched] = []
    own = list(_own(stock, directory, unmatched))
    made = spread(stock.found, directory)
    layers = [*_by_rank(own), *_bills(made)]
    rows, clashes = layered(layers, presences)
    nodes, unseen = _nodes(stock, directory, {row.device.partition("/")[0] for row in rows})
    missed = _together([*unmatched, *made.unmatched, *unseen])
    use = InventoryUse(
        files=tuple(_use(one, missed) for one in stock.found),
        matched_usd=made.matched_usd,
        unmatched=missed,
        conflicts=tuple(clashes),
        partly_seen=tuple(_partly(stock, directory, made)),
        repeated_rows=made.repeated_rows,
        idle_priced_h=float(made.idle_priced_ms / MS_PER_HOUR),
        outside_h=made.outside_ms / MS_PER_HOUR,
    )
    return Inventory(stock.path, (*rows, *nodes), use)


def _use(found: Found, missed: Iterable[Unmatched]) -> FileUse:
    """What became of one file. Credits above a charge are of rows that were matched."""
    kept = len(found.paid) + len(found.spent) + len(found.nodes)
    lost = sum(u.rows for u in missed if u.file == found.path and u.why is not Why.NEGATIVE)
    dollars, unread = dict(found.skipped_usd), dict(found.skipped_unread)
    return FileUse(found.path, found.kind, found.rows, dict(found.skipped), max(kept - lost, 0), dollars, unread)


def _own(stock: Stock, directory: Directory, unmatched: list[Unmatched]) -> Iterator[Paid]:
    """Rows of the user's own: by UUID as they are, by host shared by the GPUs of that host."""
    for row in (row for one in stock.found for row in one.paid):
        if gpu := directory.gpu(row.device):
            yield replace(row, device=gpu)
            continue
        low, high = ends_of(row)
        hosted = directory.meant((row.device,))
        gpus = sorted({p.gpu_uuid for p in hosted if p.first_ms < high and p.last_ms >= low})
        for uuid in gpus:
            share = None if row.usd_per_h is None else usd(Fraction(row.usd_per_h) / len(gpus))
            yield replace(row, device=uuid, usd_per_h=share, source=Source.HOST_ROW)
        if not gpus and _UUID.fullmatch(row.device):
            yield row  # a GPU that is paid for and was never seen
        elif not gpus:
            why, cost = why_not(directory, (row.device,)), _cost(row)
            unmatched.append(Unmatched(row.device, why, row.file, row.instance, 1, cost, row.from_ms, row.to_ms))


def _cost(row: Paid) -> Decimal | None:
    """What a row of the user's own comes to; None where it has no price or an open end."""
    if row.usd_per_h is None or row.from_ms is None or row.to_ms is None:
        return None
    return usd(Fraction(row.usd_per_h) * (row.to_ms - row.from_ms) / MS_PER_HOUR)


def _by_rank(own: Sequence[Paid]) -> Iterator[list[Paid]]:
    for source in (Source.GPU_ROW, Source.HOST_ROW):
        rows = [row for row in own if row.source is source]
        check_overlaps(Inventory("the inventory", tuple(rows)))
        yield rows


def _bills(made: Spread) -> Iterator[list[Paid]]:
    """The rows of each kind of bill, the kind to be used first in front."""
    kinds = sorted({p.bought.kind for p in made.pieces}, key=lambda k: (ORDER.index(k if k in ORDER else ""), k))
    for kind in kinds:
        by_gpu: dict[str, list[Piece]] = {}
        for piece in made.pieces:
            if piece.bought.kind == kind:
                for uuid in piece.gpus:
                    by_gpu.setdefault(uuid, []).append(piece)
        yield [row for uuid in sorted(by_gpu) for row in _added(uuid, by_gpu[uuid], made)]


def _added(uuid: str, pieces: Sequence[Piece], made: Spread) -> Iterator[Paid]:
    """Charges of one GPU that overlap (an hour's usage, a month's discount) added up, stretch by stretch."""
    edges = sorted({t for p in pieces for t in (p.start_ms, p.end_ms)})
    ordered = sorted(pieces, key=lambda p: p.start_ms)
    alive: list[Piece] = []
    at = 0
    for start, end in pairwise(edges):
        alive = [p for p in alive if p.end_ms > start]
        while at < len(ordered) and ordered[at].start_ms <= start:
            alive.append(ordered[at])
            at += 1
        if not alive:
            continue
        rate, main = sum((p.usd_per_h for p in alive), Fraction(0)), max(alive, key=lambda p: p.usd_per_h)
        b = main.bought
        if rate < 0:
            cost = usd(rate * (end - start) / MS_PER_HOUR)
            made.unmatched.append(Unmatched(uuid, Why.NEGATIVE, b.file, b.instance, 1, cost, start, end))
            made.matched_usd -= cost
            continue
        where = (b.instance, b.region, b.purchase_option)
        yield Paid(b.row, uuid, start, end, *where, usd(rate), Source.BILL, b.file)


def _nodes(stock: Stock, directory: Directory, priced: set[str]) -> tuple[list[Paid], list[Unmatched]]:
    """The GPUs of nodes that nothing else pays for, and nodes without a GPU in the lake."""
    rows: dict[str, Paid] = {}
    unseen: list[Unmatched] = []
    for node in (node for one in stock.found for node in one.nodes):
        seen = directory.meant(_names(node))
        gpus = sorted({p.gpu_uuid for p in seen})
        # A node that was made anew under its name was there before.
        start = min((p.first_ms for p in seen), default=OPEN_MS)
        start = start if node.from_ms is None else min(start, node.from_ms)
        for uuid in gpus:
            if uuid not in priced:
                where = (node.instance, node.region, node.purchase_option)
                rows.setdefault(uuid, Paid(node.row, uuid, start, None, *where, None, Source.LIST, node.file))
        if not gpus:
            what = (node.name, why_not(directory, _names(node)), node.file, node.instance)
            unseen.append(Unmatched(*what, 1, None, node.from_ms, None))
    return [rows[uuid] for uuid in sorted(rows)], unseen


def _names(node: Node) -> tuple[str, ...]:
    return (node.name, *sorted(node.aliases))


def _partly(stock: Stock, directory: Directory, made: Spread) -> Iterator[PartlySeen]:
    """Machines with fewer GPUs seen than they have, by their type or by the node list."""
    found = dict(made.partly)
    for node in (node for one in stock.found for node in one.nodes):
        seen = directory.meant(_names(node))
        hosts = {p.host for p in seen}
        if node.gpus and len(hosts) == 1 and len(seen) < node.gpus:
            found.setdefault(next(iter(hosts)), PartlySeen(next(iter(hosts)), len(seen), node.gpus))
    yield from (found[host] for host in sorted(found))


def _together(rows: Iterable[Unmatched]) -> tuple[Unmatched, ...]:
    """Rows of one machine for one reason added up, the most dollars first."""
    found: dict[tuple[str, Why, str], Unmatched] = {}
    for row in rows:
        key = (row.name, row.why, row.file)
        found[key] = _both(found[key], row) if key in found else row
    return tuple(sorted(found.values(), key=lambda u: (-(u.usd or Decimal(0)), u.why, u.name, u.file)))


def _both(one: Unmatched, other: Unmatched) -> Unmatched:
    dollars = [u.usd for u in (one, other) if u.usd is not None]
    starts = [u.start_ms for u in (one, other) if u.start_ms is not None]
    ends = [u.end_ms for u in (one, other) if u.end_ms is not None]
    return replace(
        one, rows=one.rows + other.rows, usd=sum(dollars, Decimal(0)) if dollars else None,
        start_ms=min(starts, default=None), end_ms=max(ends, default=None), instance=one.instance or other.instance,
    )  # fmt: skip


OPEN_MS = 1 << 62
# Prices that agree to this many dollars per hour do not contradict each other.
SAME_USD = Decimal("0.0005")


@dataclass
class _Clash:
    """Time of one model at two prices."""

    gpus: set[str]
    ms: int = 0
    used: Fraction = Fraction(0)
    other: Fraction = Fraction(0)


def layered(layers: Iterable[Sequence[Paid]], presences: Sequence[Presence]) -> tuple[list[Paid], list[PriceConflict]]:
    """Rows of earlier layers first, of later ones what is left of their time; differing prices are conflicts."""
    models = {p.gpu_uuid: p.gpu_model for p in sorted(presences, key=lambda p: p.last_ms)}
    kept: dict[str, list[Paid]] = {}
    clashes: dict[tuple[str | None, Source, str, Source, str], _Clash] = {}
    for layer in layers:
        new: dict[str, list[Paid]] = {}
        for row in layer:
            left = [row]
            for first in kept.get(row.device, ()):
                if common := _common(first, row):
                    _note(first, row, common, clashes, models)
                    left = [part for one in left for part in _without(one, common)]
            new.setdefault(row.device, []).extend(left)
        for device, rows in new.items():
            kept.setdefault(device, []).extend(rows)
    rows = [row for device in sorted(kept) for row in kept[device]]
    return rows, [_conflict(key, clashes[key]) for key in sorted(clashes, key=str)]


def ends_of(row: Paid) -> tuple[int, int]:
    """From when to when a row counts; an open end is far away."""
    return -OPEN_MS if row.from_ms is None else row.from_ms, OPEN_MS if row.to_ms is None else row.to_ms


def _common(one: Paid, other: Paid) -> tuple[int, int] | None:
    (a, b), (c, d) = ends_of(one), ends_of(other)
    low, high = max(a, c), min(b, d)
    return (low, high) if low < high else None


def _without(row: Paid, cut: tuple[int, int]) -> list[Paid]:
    low, high = ends_of(row)
    before = replace(row, to_ms=cut[0]) if low < cut[0] else None
    after = replace(row, from_ms=cut[1]) if cut[1] < high else None
    if min(high, cut[1]) <= max(low, cut[0]):
        return [row]
    return [part for part in (before, after) if part]


def _note(
    used: Paid,
    other: Paid,
    common: tuple[int, int],
    clashes: dict[tuple[str | None, Source, str, Source, str], _Clash],
    models: dict[str, str | None],
) -> None:
    if used.usd_per_h is None or other.usd_per_h is None or abs(used.usd_per_h - other.usd_per_h) < SAME_USD:
        return
    ms = common[1] - common[0]
    key = (models.get(used.device), used.source, used.file, other.source, other.file)
    clash = clashes.setdefault(key, _Clash(set()))
    clash.gpus.add(used.device)
    clash.ms += ms
    clash.used += Fraction(used.usd_per_h) * ms
    clash.other += Fraction(other.usd_per_h) * ms


def _conflict(key: tuple[str | None, Source, str, Source, str], clash: _Clash) -> PriceConflict:
    model, used, used_from, other, other_from = key
    rates = [usd(total / clash.ms) for total in (clash.used, clash.other)]
    sizes = (model, len(clash.gpus), clash.ms / MS_PER_HOUR)
    return PriceConflict(*sizes, used, used_from, rates[0], other, other_from, rates[1])
