"""Which stretches of which device are paid for in a window, at which price, and who is charged for them?

The board is what is paid for: by the inventory, else from the first to the last sample on it in the lake, so that
adjoining windows add up. A MIG slice pays its share of the board while it is seen, by the share it holds at the time;
what no slice pays for stays with the board, unobserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.prices import find_offers
from gpuledger.cost.charges import Charge, Stay, grouped, make_charges
from gpuledger.cost.inventory import Inventory, Paid
from gpuledger.cost.pieces import Device, Segment, read_devices, read_pieces
from gpuledger.cost.pricing import Price, PriceChoice, price_for
from gpuledger.cost.rating import Along
from gpuledger.errors import InputError, NothingFound
from gpuledger.lake.layout import Lake
from gpuledger.ledger.jobs.counts import JoinCounts, added
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.owners import By
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.calibration import Calibration
from gpuledger.telemetry import schema
from gpuledger.units import Unknown

Stretch = tuple[int, int]


class SingleSamples(NothingFound):
    """Each GPU in scope was seen at one instant only: no time is known to be paid."""


@dataclass(frozen=True)
class Window:
    """From when to when a statement counts."""

    start_ms: int
    end_ms: int

    def clip(self, start_ms: int, end_ms: int) -> Stretch | None:
        """The part of a stretch within the window."""
        low, high = max(start_ms, self.start_ms), min(end_ms, self.end_ms)
        return (low, high) if low < high else None


class Plan:
    """The stays of a window, numbered."""

    def __init__(self, window: Window, inventory: Inventory | None, choice: PriceChoice) -> None:
        self.window, self.choice = window, choice
        self.rows = inventory.by_device if inventory else {}
        self.stays: list[Stay] = []
        self._prices: dict[tuple[str | None, Paid | None], Price | Unknown] = {}

    def _price(self, model: str | None, row: Paid | None) -> Price | Unknown:
        """The price of a model, or of a row of the inventory; looked up once each."""
        if (model, row) not in self._prices:
            self._prices[model, row] = price_for(model, self.choice, row)
        return self._prices[model, row]

    def make(self, devices: Sequence[Device]) -> list[Stay]:
        """Stays of every device seen, and of every device that is paid for but was not seen."""
        boards = grouped(devices, lambda d: d.gpu_uuid)
        for found in boards.values():
            self._board(found)
        seen = {d.name for d in devices} | set(boards)
        for name, rows in self.rows.items():
            if name not in seen:
                self._unseen(name, rows)
        return self.stays

    def _board(self, found: Sequence[Device]) -> None:
        """The stays of one board: slices with a row of their own apart, all others with the board."""
        own = [d for d in found if d.gpu_instance_id and d.name in self.rows]
        rest = [d for d in found if d not in own]
        for device in own:
            self._rest_unpaid(device, [self._own_priced(device, row) for row in self.rows[device.name]])
        if not rest:
            return
        first, last = min(d.first_ms for d in rest), max(d.last_ms for d in rest)
        newest = max(rest, key=lambda d: (d.last_ms, d.gpu_instance_id is None))
        board = replace(newest, gpu_instance_id=None, first_ms=first, last_ms=last)
        paid = self._paid(board.gpu_uuid, first, last)
        for stretch, row in paid:
            self._add(board, stretch, self._price(board.gpu_model, row))
        self._rest_unpaid(board, [stretch for stretch, _ in paid])

    def _paid(self, uuid: str, first: int, last: int) -> list[tuple[Stretch, Paid | None]]:
        """When a board is paid for within the window."""
        if uuid not in self.rows:
            clipped = self.window.clip(first, last)
            return [(clipped, None)] if clipped else []
        found = ((row.within(self.window.start_ms, self.window.end_ms), row) for row in self.rows[uuid])
        return [(stretch, row) for stretch, row in found if stretch]

    def _own_priced(self, device: Device, row: Paid) -> Stretch:
        """A slice with a row of its own: a price given there is the slice's, a price looked up is the board's."""
        stretch = row.within(self.window.start_ms, self.window.end_ms) or (0, 0)
        if stretch[0] < stretch[1]:
            price = self._price(device.gpu_model, row)
            self._add(device, stretch, price, given=row.usd_per_h is not None)
        return stretch

    def _rest_unpaid(self, device: Device, paid: Iterable[Stretch]) -> None:
        """What was seen of a device while it was not paid for."""
        seen = self.window.clip(device.first_ms, device.last_ms)
        left = [seen] if seen else []
        for stretch in paid:
            left = [piece for one in left for piece in _without(one, stretch)]
        for stretch in left:
            self._add(device, stretch, None)

    def _unseen(self, name: str, rows: Sequence[Paid]) -> None:
        uuid, _, instance = name.partition("/")
        for row in rows:
            stretch = row.within(self.window.start_ms, self.window.end_ms)
            if stretch:
                model = _model_of(row.instance)
                device = Device(uuid, instance or None, model, None, row.region or None, *stretch)
                self._add(device, stretch, self._price(model, row), seen=False)

    def _add(
        self, device: Device, stretch: Stretch, price: Price | Unknown | None, *, given: bool = False, seen: bool = True
    ) -> None:
        segment = Segment(len(self.stays), device.gpu_uuid, device.gpu_instance_id, *stretch)
        rate = Fraction(price.usd_per_h) if isinstance(price, Price) else None
        self.stays.append(Stay(device, segment, price, stretch[1] - stretch[0], rate, given, seen))


def _without(one: Stretch, other: Stretch) -> list[Stretch]:
    """What is left of a stretch without another."""
    common = Window(*one).clip(*other)
    if not common:
        return [one]
    return [piece for piece in ((one[0], common[0]), (common[1], one[1])) if piece[0] < piece[1]]


def _model_of(instance: str) -> str | None:
    """The GPU an instance has, where it has one kind only."""
    try:
        sold = {o.gpu for o in find_offers(instance=instance)} if instance else set()
    except InputError:
        return None
    key = sold.pop() if len(sold) == 1 else None
    return load_gpus()[key].name if isinstance(key, str) else None


@dataclass(frozen=True)
class Asked:
    """What a bill is made from, apart from the lines."""

    scope: Scope
    inventory: Inventory | None = None
    choice: PriceChoice = PriceChoice()  # noqa: RUF009  (frozen, so one for all is safe)
    calibration: Calibration | None = None
    by: By | None = None


@dataclass(frozen=True)
class Charged:
    """The charges of one window.

    `unpaid_ms` was seen while not paid for, `worked` are the models whose tensor pipe worked, with each known
    precision; `samples` are those of the owners in scope.
    """

    window: Window
    devices: tuple[Device, ...]
    stays: tuple[Stay, ...]
    charges: tuple[Charge, ...]
    unpaid_ms: int
    worked: tuple[tuple[str | None, str | None], ...] = ()
    samples: int = 0
    cut_by_share: bool = False
    joined: JoinCounts = JoinCounts()  # noqa: RUF009  (frozen, so one for all is safe)


def charge_window(lake: Lake, asked: Asked, along: Along | None = None) -> Charged:
    """The charges of everyone in scope; an error where there is not one. `along`: another reader of the same lines."""
    books = Books(lake, asked.scope)
    devices = read_devices(books)
    window = _window(asked, devices)
    seen = [d for d in devices if window.clip(d.first_ms, max(d.last_ms, d.first_ms + 1))]
    stays = Plan(window, asked.inventory, asked.choice).make(seen)
    pieces, worked = read_pieces(books, [s.segment for s in stays if s.seen], asked.calibration, asked.by, along)
    if not any(p.wanted for p in pieces):
        raise _nothing_paid(books, devices)
    charges, unpaid_ms = make_charges(stays, pieces, asked.scope)
    samples = sum(p.sums["samples"] for p in pieces if p.wanted)
    return Charged(
        window, tuple(seen), tuple(stays), tuple(charges), unpaid_ms, worked, samples, books.cut_by_share,
        added(d.joined for d in books.days),
    )  # fmt: skip


def _nothing_paid(books: Books, devices: Sequence[Device]) -> NothingFound:
    """The error for a window without a charge: no line matches, or the lines that do stand for no time."""
    found = set[tuple[str | None, ...]]()
    for _, rows in books.blocks((), ()):
        found.update(zip(*(books.names[c].text(rows[c]) for c in schema.DEVICE), strict=True))
    single = {(d.gpu_uuid, d.gpu_instance_id) for d in devices if d.first_ms == d.last_ms}
    if found and found <= single:
        return SingleSamples(
            "each GPU has a single sample, so its paid time is unknown",
            hint="import more samples, or give an inventory and a window: they set the time GPUs are paid for",
        )
    return books.nothing_found()


def _window(asked: Asked, devices: Sequence[Device]) -> Window:
    """As asked for. Without an inventory nothing is known to be paid before the first or after the last sample."""
    if not devices:
        raise NothingFound("no sample stands for any time", hint="import samples of GPUs, or choose another window")
    first, last = min(d.first_ms for d in devices), max(d.last_ms for d in devices)
    start = first if asked.scope.since_ms is None else asked.scope.since_ms
    end = last if asked.scope.until_ms is None else asked.scope.until_ms
    return Window(start, end) if asked.inventory else Window(max(start, first), min(end, last))
