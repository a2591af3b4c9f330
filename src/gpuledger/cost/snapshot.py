"""What does an hour of the GPUs of a snapshot cost, and what of that do idle ones cost at that instant?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.build import Paying, choice_of
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.money import usd
from gpuledger.cost.pricing import Price, PriceChoice, price_for
from gpuledger.efficiency.snapshot import (
    IDLE,
    IDLE_HELD,
    GpuReading,
    Snapshot,
    SnapshotPrice,
    board_state,
    boards_of,
)
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import Unknown

NOT_PAID = Unknown("the inventory does not pay for it at this instant")
BY_SLICE = Unknown("the inventory prices slices of its board by themselves")
NO_SHARE = Unknown("its share of the board is not in the sample")
NO_PRICE = "no GPU has a known price"


def with_prices(found: Snapshot, lake: Lake, scope: Scope, paying: Paying) -> Snapshot:
    """The snapshot with dollars per hour: whole boards, or of some owners the slices they hold."""
    choice, stock = choice_of(paying), inventory_of(lake, paying.get("inventory"))
    rows, used = list[GpuReading](), Counter[tuple[str | None, Price]]()
    total, idle = dict[str, Decimal](), Decimal(0)
    whys = dict[str, None]()
    for uuid, board in boards_of(found.by_gpu).items():
        price = _price(board, stock, choice)
        priced = [replace(row, usd_per_h=_of_row(row, board, price)) for row in board]
        rows += priced
        if isinstance(price, Unknown):
            whys[price.why] = None
            continue
        used[board[0].gpu_model, price] += 1
        total[uuid] = _held(priced) if scope.names_owners else price.usd_per_h
        idle += total[uuid] if board_state(board) in (IDLE, IDLE_HELD) else 0
    why = Unknown("; ".join(whys) or NO_PRICE)
    return replace(
        found,
        by_gpu=tuple(rows),
        usd_per_h=sum(total.values(), Decimal(0)) if total else why,
        idle_usd_per_h=idle if total else why,
        gpus_priced=len(total),
        prices=tuple(
            SnapshotPrice(model, gpus, p.usd_per_h, p.low_usd, p.high_usd, p.basis, p.words)
            for (model, p), gpus in used.items()
        ),
    )


def _price(board: Sequence[GpuReading], stock: Inventory | None, choice: PriceChoice) -> Price | Unknown:
    """The price of one board at its instant."""
    model, at_ms = next((r.gpu_model for r in board if r.gpu_model), None), board[0].at_ms
    paid = stock.by_device if stock else {}
    if any(row.device in paid for row in board if row.gpu_instance_id):
        return BY_SLICE
    if (uuid := board[0].gpu_uuid) not in paid:
        return price_for(model, choice)
    here = next((row for row in paid[uuid] if row.within(at_ms, at_ms + 1)), None)
    return NOT_PAID if here is None else price_for(model, choice, here)


def _of_row(row: GpuReading, board: Sequence[GpuReading], price: Price | Unknown) -> Decimal | Unknown:
    """The price of a board, or of a slice by its share; a board next to its slices has what they leave."""
    if isinstance(price, Unknown):
        return price
    if not row.gpu_instance_id:
        slices = [other.slice_ratio for other in board if other.gpu_instance_id]
        left = 1 - sum((Fraction(share) for share in slices if share is not None), Fraction(0))
        return NO_SHARE if None in slices else _part(price, max(left, Fraction(0)))
    return NO_SHARE if row.slice_ratio is None else _part(price, Fraction(row.slice_ratio))


def _part(price: Price, share: Fraction) -> Decimal:
    """A share of a board's price, in sevenths as MIG cuts boards where it is one."""
    sevenths = round(7 * share)
    exact = Fraction(sevenths, 7) if abs(7 * share - sevenths) < Fraction(1, 10**5) else share
    return usd(exact * Fraction(price.usd_per_h))


def _held(rows: Sequence[GpuReading]) -> Decimal:
    return sum((row.usd_per_h for row in rows if isinstance(row.usd_per_h, Decimal)), Decimal(0))
