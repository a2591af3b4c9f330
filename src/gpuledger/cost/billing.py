"""Who is charged for which time of which device, in one window?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.cost.charges import Charge, make_charges
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.pieces import Device, read_devices, read_pieces
from gpuledger.cost.pricing import PriceChoice
from gpuledger.cost.segments import Plan, Stay, Window
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.calibration import Calibration
from gpuledger.telemetry import schema


@dataclass(frozen=True)
class Asked:
    """What a bill is made from, but the lines themselves."""

    scope: Scope
    inventory: Inventory | None = None
    choice: PriceChoice = PriceChoice()  # noqa: RUF009  (frozen, so one for all is safe)
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Charged:
    """The charges of one window; `unpaid_ms` was seen of devices at times nobody pays for them, `worked` are the
    models whose tensor pipe worked, with each known precision; `samples` are those of the owners in scope.
    """

    window: Window
    devices: tuple[Device, ...]
    stays: tuple[Stay, ...]
    charges: tuple[Charge, ...]
    unpaid_ms: int
    worked: tuple[tuple[str | None, str | None], ...] = ()
    samples: int = 0
    cut_by_share: bool = False


def charge_window(lake: Lake, asked: Asked) -> Charged:
    """The charges of everyone in scope; an error where there is not one."""
    books = Books(lake, asked.scope)
    devices = read_devices(books)
    window = _window(asked, devices)
    seen = [d for d in devices if window.clip(d.first_ms, max(d.last_ms, d.first_ms + 1))]
    stays = Plan(window, asked.inventory, asked.choice).make(seen)
    pieces = read_pieces(books, [s.segment for s in stays if s.seen], asked.calibration)
    if not any(p.wanted for p in pieces.found):
        raise _nothing_paid(books, devices)
    charges, unpaid_ms = make_charges(stays, pieces.found, asked.scope)
    samples = sum(p.sums["samples"] for p in pieces.found if p.wanted)
    return Charged(
        window, tuple(seen), tuple(stays), tuple(charges), unpaid_ms, pieces.worked, samples, pieces.cut_by_share
    )


def _nothing_paid(books: Books, devices: Sequence[Device]) -> InputError:
    """The error for a window without a charge: no line matches, or the lines that do stand for no time."""
    found = set[tuple[str | None, ...]]()
    for _, rows in books.blocks((), ()):
        found.update(zip(*(books.names[c].text(rows[c]) for c in schema.DEVICE), strict=True))
    single = {(d.gpu_uuid, d.gpu_instance_id) for d in devices if d.first_ms == d.last_ms}
    if found and found <= single:
        return InputError(
            "each GPU has a single sample, so its paid time is unknown",
            hint="import more samples, or give the time GPUs are paid for: --inventory FILE with --since and --until",
        )
    return books.nothing_found()


def _window(asked: Asked, devices: Sequence[Device]) -> Window:
    """As asked for. Without an inventory nothing is known to be paid before the first or after the last sample."""
    first, last = min(d.first_ms for d in devices), max(d.last_ms for d in devices)
    start = first if asked.scope.since_ms is None else asked.scope.since_ms
    end = last if asked.scope.until_ms is None else asked.scope.until_ms
    return Window(start, end) if asked.inventory else Window(max(start, first), min(end, last))
