"""What does each device and each owner owe, bucket by bucket?

Paid time and dollars of a stay are split over its owners and buckets by largest remainder: they add up exactly, so does
every group of them. Time that a line could not tell apart (unstated) and time without any line count as unobserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.buckets import Device, Piece
from gpuledger.cost.money import ZERO, cost_usd, split, split_whole, usd
from gpuledger.cost.pricing import Price
from gpuledger.cost.segments import Stay
from gpuledger.cost.statement import BUCKETS, Bucket, CostRow, Dollars, Times, add_dollars, add_times
from gpuledger.efficiency.scope import UNALLOCATED, Scope
from gpuledger.units import MS_PER_HOUR, Unknown

_STATED: tuple[Bucket, ...] = ("productive", "stalled", "underused", "idle", "idle_held")
_NOBODY = -1


@dataclass(frozen=True)
class Charge:
    """One owner's part of one stay. `dollars` is None where the price is not known."""

    stay: Stay
    cluster: str | None
    namespace: str | None
    workload: str | None
    times: Times
    dollars: Dollars | None
    low_usd: Decimal
    high_usd: Decimal
    sums: dict[str, int] = field(default_factory=dict)

    @property
    def device(self) -> Device:
        """The device of the stay."""
        return self.stay.device


def make_charges(stays: Sequence[Stay], pieces: Iterable[Piece], scope: Scope) -> tuple[list[Charge], int]:
    """The charges of the owners asked for, and the milliseconds that were seen but not paid for."""
    found: dict[int, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(piece.segment, []).append(piece)
    charges: list[Charge] = []
    unpaid_ms = 0
    for stay in stays:
        own = found.get(stay.segment.number, []) if stay.seen else []
        if stay.price is None:
            unpaid_ms += sum(p.sums["observed_ms"] for p in own)
        else:
            charges += _of_stay(stay, own, scope)
    return charges, unpaid_ms


def _of_stay(stay: Stay, pieces: Sequence[Piece], scope: Scope) -> Iterable[Charge]:
    length = stay.segment.end_ms - stay.segment.start_ms
    weights: dict[tuple[int, Bucket], int] = {}
    for i, piece in enumerate(pieces):
        weights |= {(i, b): piece.sums[f"{b}_ms"] for b in _STATED}
        weights[i, "unobserved"] = piece.sums["unstated_ms"]
    # Lines cut by proportion can hold a little more than the stretch; then all of them shrink alike.
    weights[_NOBODY, "unobserved"] = max(length - sum(weights.values()), 0)
    times = split_whole(stay.board_ms, weights)
    paid = split(cost_usd(length, stay.usd_per_device_h), weights) if stay.usd_per_device_h is not None else None
    owners: dict[int, Piece | None] = {**dict(enumerate(pieces)), _NOBODY: None}
    for i, owner in owners.items():
        mine = {b: times.get((i, b), 0) for b in BUCKETS}
        if not _wanted(stay, owner, scope) or (owner is None and not weights[_NOBODY, "unobserved"]):
            continue
        owed = None if paid is None else Dollars.of({b: paid.get((i, b), ZERO) for b in BUCKETS})
        cluster, namespace, workload = _owner(stay, owner)
        low, high = _range(stay, owed)
        yield Charge(stay, cluster, namespace, workload, Times.of(mine), owed, low, high, _of_board(stay, owner))


def _range(stay: Stay, owed: Dollars | None) -> tuple[Decimal, Decimal]:
    """What is owed at the low and at the high end of the price's range."""
    if owed is None or not isinstance(stay.price, Price):
        return ZERO, ZERO
    price, paid = stay.price, owed.paid_usd
    if price.low_usd == price.high_usd or not price.usd_per_h:
        return paid, paid
    return usd(Fraction(paid * price.low_usd / price.usd_per_h)), usd(Fraction(paid * price.high_usd / price.usd_per_h))


def _of_board(stay: Stay, piece: Piece | None) -> dict[str, int]:
    """A slice's counters are of the slice: in terms of the board they weigh its share."""
    if piece is None:
        return {}
    length = stay.segment.end_ms - stay.segment.start_ms
    if stay.board_ms == length:
        return piece.sums
    return {name: value * stay.board_ms // length for name, value in piece.sums.items()}


def _owner(stay: Stay, piece: Piece | None) -> tuple[str | None, str | None, str | None]:
    """Paid time without an owner stays with the cluster the device was last seen in."""
    return (stay.device.cluster, None, None) if piece is None else (piece.cluster, piece.namespace, piece.workload)


def _wanted(stay: Stay, piece: Piece | None, scope: Scope) -> bool:
    if piece is not None:
        return piece.wanted
    if scope.owners or (scope.namespaces and UNALLOCATED not in scope.namespaces):
        return False
    return not scope.clusters or stay.device.cluster in scope.clusters


def group(charges: Iterable[Charge], name: Callable[[Charge], str]) -> tuple[CostRow, ...]:
    """Charges by name, the dearest first."""
    found: dict[str, list[Charge]] = {}
    for charge in charges:
        found.setdefault(name(charge), []).append(charge)
    rows = [row_of(key, members) for key, members in found.items()]
    return tuple(sorted(rows, key=lambda row: (-_paid(row), row.name)))


def row_of(name: str, members: Sequence[Charge]) -> CostRow:
    """Some charges as one row."""
    priced = [c.dollars for c in members if c.dollars is not None]
    missing_ms = sum(c.times.paid_ms for c in members if c.dollars is None)
    dollars = add_dollars(priced) if priced else Unknown(_why(members))
    devices = {(c.device.gpu_uuid, c.device.gpu_instance_id) for c in members}
    return CostRow(name, len(devices), add_times(c.times for c in members), dollars, missing_ms / MS_PER_HOUR)


def _why(members: Sequence[Charge]) -> str:
    return next((c.stay.price.why for c in members if isinstance(c.stay.price, Unknown)), "nothing was paid")


def _paid(row: CostRow) -> Decimal:
    return ZERO if isinstance(row.dollars, Unknown) else row.dollars.paid_usd
