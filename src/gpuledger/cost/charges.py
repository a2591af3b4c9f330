"""What does each device and each owner owe, bucket by bucket?

Paid time and dollars of a stay are split over its owners and buckets by largest remainder: they add up exactly, so does
every group of them. Time whose state is unknown (unstated) and time without any line count as unobserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

import numpy as np

from gpuledger.cost.dies import shared_by_dies
from gpuledger.cost.money import ZERO, apportion, apportion_usd, cost_usd, usd
from gpuledger.cost.pieces import Device, Piece, Segment
from gpuledger.cost.pricing import Price
from gpuledger.cost.statement import BUCKETS, Bucket, Dollars, Times
from gpuledger.ledger.read.columns import exact_share, slice_scale
from gpuledger.ledger.read.owners import Labels
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
from gpuledger.units import PPM, Unknown

K = TypeVar("K")
T = TypeVar("T")
_STATED: tuple[Bucket, ...] = tuple(b for b in BUCKETS if b != "unobserved")
# What of a piece is weighed, in the order of BUCKETS.
_WEIGHED = (*(f"{b}_ms" for b in _STATED), "unstated_ms")
NOTHING_PAID = Unknown("nothing was paid")
# Shares of a board are weighed in sevenths of a ppm: MIG cuts boards into sevenths, which whole ppm cannot hold.
_SEVENTHS = 7
_BOARD = _SEVENTHS * PPM
_ENERGY = ("energy_mj", "energy_ms")


@dataclass(frozen=True, slots=True)
class Stay:
    """One stretch of a board, or of a MIG slice with a price of its own; `device` is which of them.

    `price` is None where the time is not paid for here. `usd_per_h` is for the whole board; with `own_rate`, of the
    slice itself.
    """

    device: Device
    segment: Segment
    price: Price | Unknown | None
    length_ms: int
    usd_per_h: Fraction | None = None
    own_rate: bool = False
    seen: bool = True


@dataclass(frozen=True, slots=True)
class Charge:
    """One owner's part of one stay. `dollars` is None where the price is unknown; `price` has the reason.

    `share_ppm`: the share of the board the device holds. `owned`: whether some label but a namespace names the owner;
    `more`: the team, and further labels that were asked for.
    """

    stay: Stay
    device: Device
    cluster: str | None
    namespace: str | None
    workload: str | None
    times: Times
    dollars: Dollars | None
    low_usd: Decimal
    high_usd: Decimal
    sums: Mapping[str, int]
    price: Price | Unknown
    share_ppm: int = PPM
    owned: bool = False
    more: Labels = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str | None]:
        """The labels of its owner, as far as they were asked for."""
        own = {"cluster": self.cluster, "namespace": self.namespace, "workload": self.workload}
        return {**self.more, **own}


def make_charges(stays: Sequence[Stay], pieces: Sequence[Piece], scope: Scope) -> tuple[list[Charge], int]:
    """The charges of the owners asked for, and the milliseconds that were seen but not paid for."""
    by_number = {stay.segment.number: stay.device for stay in stays}
    pieces = shared_by_dies(pieces, [by_number[p.segment] for p in pieces])
    found = grouped(pieces, lambda p: p.segment)
    charges: list[Charge] = []
    unpaid_ms, scale = 0, _energy_scale(pieces)
    for stay in stays:
        own = found.get(stay.segment.number, []) if stay.seen else []
        if stay.price is None:
            unpaid_ms += sum(p.sums["observed_ms"] for p in own)
        else:
            charges += _of_stay(stay, own, scope, scale)
    return charges, unpaid_ms


def _of_stay(stay: Stay, pieces: Sequence[Piece], scope: Scope, scale: Mapping[str, float]) -> Iterable[Charge]:
    """A stretch's time and dollars over owners and buckets; weights are milliseconds x share of the board."""
    length = stay.length_ms
    shares = [_share(stay, piece) for piece in pieces]
    whole, board = _whole(stay, shares), _BOARD
    if whole == _BOARD and all(share == _BOARD for share in shares):  # most often: small numbers are quicker
        shares, whole, board = [1] * len(shares), 1, 1
    # A piece after the other, each by bucket; then what no piece is seen in.
    parts = [(p.sums, share) for p, share in zip(pieces, shares, strict=True) if share is not None]
    weights = [sums[name] * share for sums, share in parts for name in _WEIGHED]
    seen = sum(weights)
    # Lines cut by proportion, or slices next to their board, can hold more than the stretch; then all shrink alike.
    rest = 0 if None in shares else max(length * whole - seen, 0)
    weights.append(rest)
    known = min(length * whole, seen + rest)
    times = apportion(known if board == 1 else round(Fraction(known, board)), weights)
    paid = None
    if stay.usd_per_h is not None:
        rate = stay.usd_per_h if not stay.own_rate else stay.usd_per_h * Fraction(board, whole)
        paid = apportion_usd(cost_usd(known, rate if board == 1 else rate / board), weights)
    at = 0
    for piece, share in zip(pieces, shares, strict=True):
        if share is None:
            if piece.wanted:
                yield _unpriced(stay, piece)
            continue
        mine = slice(at, at + len(_WEIGHED))
        at = mine.stop
        if piece.wanted:
            owed = None if paid is None else Dollars(*paid[mine])
            sums = _of_board(piece, share, board, scale)
            ppm = PPM if share == board else round(Fraction(share, _SEVENTHS))
            yield _charge(stay, piece, Times(*times[mine]), owed, sums, ppm)
    if rest and _unowned_wanted(stay, scope):
        owed = None if paid is None else Dollars(unobserved_usd=paid[-1])
        yield _charge(stay, None, Times(unobserved_ms=times[-1]), owed, {}, PPM)


def _charge(
    stay: Stay, owner: Piece | None, times: Times, owed: Dollars | None, sums: Mapping[str, int], share_ppm: int
) -> Charge:
    low, high = _range(stay, owed)
    return Charge(
        stay, _device(stay, owner), *_owner(stay, owner), times, owed, low, high, sums,
        NOTHING_PAID if stay.price is None else stay.price, share_ppm, owner is not None and owner.owned,
        {} if owner is None else owner.labels,
    )  # fmt: skip


def _share(stay: Stay, piece: Piece) -> int | None:
    """The share of the board; None where it is unknown. A slice with a rate of its own counts whole."""
    ppm = PPM if stay.own_rate and piece.slice_ppm is None else piece.slice_ppm
    if ppm is None:
        return None
    exact = _SEVENTHS * ppm
    seventh = (exact + PPM // 2) // PPM * PPM
    return seventh if abs(exact - seventh) < _SEVENTHS else exact


def _whole(stay: Stay, shares: Sequence[int | None]) -> int:
    """What the stretch is paid for: a board, or a slice of it."""
    if stay.segment.gpu_instance_id is None:
        return _BOARD
    return max((s for s in shares if s is not None), default=_BOARD)


def _unpriced(stay: Stay, piece: Piece) -> Charge:
    """A slice of unknown share of the board: its time is counted, its dollars cannot be."""
    mine: dict[Bucket, int] = {b: piece.sums[f"{b}_ms"] for b in _STATED}
    mine["unobserved"] = piece.sums["unstated_ms"]
    why = Unknown(f"the share of the board that slice {piece.device[1]} holds is not recorded")
    sums = _without_energy(piece.sums)
    return Charge(
        stay, _device(stay, piece), *_owner(stay, piece), Times.of(mine), None, ZERO, ZERO, sums, why,
        owned=piece.owned, more=piece.labels,
    )  # fmt: skip


def _without_energy(sums: Mapping[str, int]) -> Mapping[str, int]:
    """The sums of a slice of unknown share: its board's energy cannot be divided. `unshared_ms`: for how long."""
    return {**sums, **dict.fromkeys(_ENERGY, 0), "unshared_ms": sums.get("energy_ms", 0)}


def _device(stay: Stay, piece: Piece | None) -> Device:
    """The device of a piece; paid time without an owner is the board's."""
    if piece is None or piece.device == (stay.device.gpu_uuid, stay.device.gpu_instance_id):
        return stay.device
    return replace(stay.device, gpu_uuid=piece.device[0], gpu_instance_id=piece.device[1])


def _range(stay: Stay, owed: Dollars | None) -> tuple[Decimal, Decimal]:
    """What is owed at the low and at the high end of the price's range."""
    if owed is None or not isinstance(stay.price, Price):
        return ZERO, ZERO
    price, paid = stay.price, owed.paid_usd
    if price.low_usd == price.high_usd or not price.usd_per_h:
        return paid, paid
    return usd(paid * price.low_usd / price.usd_per_h), usd(paid * price.high_usd / price.usd_per_h)


def _energy_scale(pieces: Sequence[Piece]) -> dict[str, float]:
    """By board that has slices the factor that makes its energy, repeated for each of them, count once."""
    sliced = [p for p in pieces if p.device[1] is not None and p.slice_ppm is not None]
    board = {uuid: i for i, uuid in enumerate(dict.fromkeys(p.device[0] for p in sliced))}
    device = {name: i for i, name in enumerate(dict.fromkeys(p.device for p in sliced))}
    found = slice_scale(
        np.array([board[p.device[0]] for p in sliced], dtype=np.int64),
        np.array([device[p.device] for p in sliced], dtype=np.int64),
        exact_share(np.array([p.slice_ppm for p in sliced], dtype=np.float64)),
        np.array([p.sums["observed_ms"] for p in sliced], dtype=np.int64),
        len(board),
    )
    return dict(zip(board, found.tolist(), strict=True))


def _of_board(piece: Piece, share: int, board: int, scale: Mapping[str, float]) -> Mapping[str, int]:
    """A slice's counters are of the slice: in terms of the board they weigh its share. Energy is the board's."""
    sums = piece.sums
    if share != board:
        sums = {name: value if name == "samples" else value * share // board for name, value in sums.items()}
    if piece.device[1] is None:
        return sums
    if piece.slice_ppm is None:
        return _without_energy(sums)
    part = share / board * scale[piece.device[0]]
    return {**sums, **{name: round(piece.sums.get(name, 0) * part) for name in _ENERGY}}


def _owner(stay: Stay, piece: Piece | None) -> tuple[str | None, str | None, str | None]:
    """Paid time without an owner stays with the cluster the device was last seen in."""
    return (stay.device.cluster, None, None) if piece is None else (piece.cluster, piece.namespace, piece.workload)


def _unowned_wanted(stay: Stay, scope: Scope) -> bool:
    """Whether paid time without an owner is asked for."""
    if scope.owners or (scope.namespaces and UNALLOCATED not in scope.namespaces):
        return False
    return not scope.clusters or stay.device.cluster in scope.clusters


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by their key, both in the order they come."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
