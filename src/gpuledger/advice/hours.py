"""At which hours of the day does a case idle, and for how long at a stretch?

Days that were folded no longer have hour lines, so hours come from what folding leaves alone: the exact spells of idle
and unobserved time, and each owner's sums by day. Advice is the same before and after folding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuledger.advice.case import LongIdle
from gpuledger.advice.stretches import Key
from gpuledger.cost.buckets import IDLE
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import distinct, runs
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows, joined, kept
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.spells import GAP
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR

HOURS_PER_DAY = 24
_LABELS = (*schema.DEVICE, "namespace", "workload")
# Devices follow each other on one time line, each with room for all milliseconds since 1970 until the year 2248.
_ROOM_MS = 1 << 43
_BLOCKS = 64


# Of a window, stretches without work are looked for from this long before it: one may start there.
_BEFORE_MS = 2 * MS_PER_DAY
# Shorter stretches are pauses. What ends less than this before the end lasts to the end.
_LONG_MS = _END_MS = MS_PER_HOUR
_FREE, _HELD, _GAP = 0, 1, 2


class IdleTimes(NamedTuple):
    """By case: its idle and observed milliseconds by hour of the day (UTC), and its long stretches without work."""

    by_hour: dict[int, dict[int, tuple[int, int]]]
    long: dict[int, LongIdle]


def idle_times(lake: Lake, scope: Scope, case_of: Mapping[Key, int], end_ms: int) -> IdleTimes:
    """The idle times of some cases in a window that ends at `end_ms`."""
    if not case_of:
        return IdleTimes({}, {})
    by_hour, pieces = _read(lake, scope, case_of)
    if scope.since_ms is not None:
        _, pieces = _read(lake, replace(scope, since_ms=scope.since_ms - _BEFORE_MS), case_of)
    return IdleTimes(by_hour, _long(pieces, scope.since_ms or 0, end_ms))


def _read(
    lake: Lake, scope: Scope, case_of: Mapping[Key, int]
) -> tuple[dict[int, dict[int, tuple[int, int]]], dict[str, np.ndarray]]:
    """Per case and hour of the day idle and observed milliseconds; and the pieces of idle time of each device."""
    books, pieces = Books(lake, scope), list[Rows]()
    sums = np.zeros((max(case_of.values()) + 1, HOURS_PER_DAY, 2), dtype=np.int64)
    day, spells, known = None, Rows(), dict[bytes, np.ndarray]()
    for day_ms, rows in books.blocks(_LABELS, ("first_ms", "last_ms", "observed_ms", *IDLE)):
        if day_ms != day:
            day, spells = day_ms, books.spells_of(day_ms)
        owned = _by_owner(rows, books, case_of, known)
        if len(owned["case"]):
            gap = books.names["kind"].among((GAP,))[spells["kind"]]
            _add(owned, spells, gap, sums)
            held = books.names["kind"].among(("idle_held",))[spells["kind"]]
            pieces.append(_of_owners(owned, spells, np.where(gap, _GAP, np.where(held, _HELD, _FREE))))
    by_hour = {
        number: {hour: (idle, seen) for hour, (idle, seen) in enumerate(by_hour.tolist()) if seen}
        for number, by_hour in enumerate(sums)
        if by_hour.any()
    }
    return by_hour, joined(pieces)


def _of_owners(owned: Rows, spells: Rows, kind: np.ndarray) -> Rows:
    """The spells of each device as each of its owners had them on one day; gaps belong to all of them."""
    device = _device(spells)
    order = np.argsort(device, kind="stable")
    low, high = (np.searchsorted(device[order], owned["device"], side=side) for side in ("left", "right"))
    count = high - low
    row = np.repeat(np.arange(len(count)), count)
    spell = order[np.repeat(low - (np.cumsum(count) - count), count) + np.arange(count.sum())]
    start, end, kinds = spells["start_ms"][spell], spells["end_ms"][spell], kind[spell]
    inner = kinds != _GAP
    start = np.where(inner, np.maximum(start, owned["first_ms"][row]), start)
    end = np.where(inner, np.minimum(end, owned["last_ms"][row]), end)
    labels = {name: owned[name][row] for name in ("case", "device")}
    return kept({**labels, "start_ms": start, "end_ms": end, "kind": kinds}, end > start)


def _long(pieces: Rows, since_ms: int, end_ms: int) -> dict[int, LongIdle]:
    """The long stretches of each case: pieces that touch, with gaps between them, whose time is not counted."""
    if not pieces or not len(pieces["case"]):
        return {}
    found = {kind: _stretches(pieces, (kind,), since_ms) for kind in (_FREE, _HELD)}
    any_kind = _stretches(pieces, (_FREE, _HELD), since_ms)
    out = {}
    devices = _pairs(pieces["case"], pieces["device"])
    for case in np.unique(pieces["case"]).tolist():
        free, held = (kept(rows, rows["case"] == case) for rows in found.values())
        to_end = kept(any_kind, (any_kind["case"] == case) & (any_kind["end_ms"] >= end_ms - _END_MS))
        stopped = len(to_end["case"]) == int((devices == case).sum())
        out[case] = LongIdle(
            held_h=_hours(held),
            free_h=_hours(free),
            held_last_h=_hours(kept(held, held["end_ms"] >= end_ms - _END_MS)),
            last_h=int(to_end["idle_ms"].min(initial=1 << 60)) / MS_PER_HOUR if stopped and devices.size else 0.0,
        )
    return out


def _pairs(case: np.ndarray, device: np.ndarray) -> np.ndarray:
    """The case of each of its devices, once."""
    order = np.lexsort((device, case))
    case, device = case[order], device[order]
    first = np.ones(len(case), dtype=bool)
    first[1:] = (case[1:] != case[:-1]) | (device[1:] != device[:-1])
    return case[first]


def _hours(rows: Rows) -> tuple[float, ...]:
    """The lengths of long stretches."""
    ms = rows["idle_ms"]
    return tuple((ms[ms >= _LONG_MS] / MS_PER_HOUR).tolist())


def _stretches(pieces: Rows, kinds: tuple[int, ...], since_ms: int) -> Rows:
    """Idle time of some kinds that touches made one, over gaps too, of each case and device; none before `since_ms`."""
    rows = kept(pieces, np.isin(pieces["kind"], (*kinds, _GAP)))
    order = np.lexsort((rows["start_ms"], rows["device"], rows["case"]))
    case, device, start, end, kind = (rows[c][order] for c in ("case", "device", "start_ms", "end_ms", "kind"))
    if not len(case):
        return {"case": case, "end_ms": end, "idle_ms": start}
    other = np.ones(len(case), dtype=bool)
    other[1:] = (case[1:] != case[:-1]) | (device[1:] != device[:-1])
    # One time line after the other: what owners of one device share counts once.
    base = np.cumsum(other) * _ROOM_MS
    before = np.append(0, np.maximum.accumulate(base + end)[:-1])
    at, gap = np.flatnonzero(base + start > before), kind == _GAP
    own = np.maximum(base + end - np.maximum(base + start, before), 0)
    last = np.maximum.reduceat(np.where(gap, np.int64(-1), end), at)
    idle = np.add.reduceat(np.where(gap, 0, own), at)
    return kept({"case": case[at], "end_ms": last, "idle_ms": idle}, (idle > 0) & (last > since_ms))


def quiet_hours(by_hour: Mapping[int, tuple[int, int]], quiet_from_ratio: float) -> tuple[tuple[int, ...], float]:
    """The hours of the day that are idle nearly always, and the idle time in them over all observed time."""
    total = sum(observed for _, observed in by_hour.values())
    quiet = {h: idle for h, (idle, observed) in by_hour.items() if observed and idle >= quiet_from_ratio * observed}
    return tuple(sorted(quiet)), sum(quiet.values()) / total if total else 0.0


def _by_owner(rows: Rows, books: Books, case_of: Mapping[Key, int], known: dict[bytes, np.ndarray]) -> Rows:
    """One row per device and owner of a day that are in a case: from when to when, and how much was idle or busy.

    `known`: the cases of blocks looked up before; most have the devices and owners of one the day before.
    """
    order, starts = runs([rows[c] + 1 for c in _LABELS])
    rows = rows if order is None else {c: v[order] for c, v in rows.items()}
    labels = [rows[c][starts] for c in _LABELS]
    key = b"".join(numbers.tobytes() for numbers in labels)
    if key not in known:
        if len(known) >= _BLOCKS:
            known.clear()
        texts = zip(*(books.names[c].text(k) for c, k in zip(_LABELS, labels, strict=True)), strict=True)
        known[key] = np.array([case_of.get((u or "", i, n, w), -1) for u, i, n, w in texts], dtype=np.int64)
    case = known[key]
    idle = np.add.reduceat(np.sum([rows[i] for i in IDLE], axis=0), starts)
    found = {
        "case": case,
        "device": _device(rows)[starts],
        "first_ms": np.minimum.reduceat(rows["first_ms"], starts),
        "last_ms": np.maximum.reduceat(rows["last_ms"], starts),
        "idle_ms": idle,
        "busy_ms": np.maximum(np.add.reduceat(rows["observed_ms"], starts) - idle, 0),
    }
    return kept(found, case >= 0)


def _add(owned: Rows, spells: Rows, gap: np.ndarray, sums: np.ndarray) -> None:
    """Add the hours of one day to their cases.

    Spells are of a device. An owner's idle time is spread over the hours as the device's was between the owner's first
    and last instant, and its busy time likewise: exact where owners do not idle, or work, between one another.
    """
    first_hour = owned["first_ms"] // MS_PER_HOUR
    count = np.maximum(-(-owned["last_ms"] // MS_PER_HOUR) - first_hour, 1)
    row = np.repeat(np.arange(len(count)), count)
    hour = first_hour[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    start = np.maximum(hour * MS_PER_HOUR, owned["first_ms"][row])
    end = np.maximum(np.minimum((hour + 1) * MS_PER_HOUR, owned["last_ms"][row]), start)
    # The same devices under the numbers 0, 1, ... on the time line.
    devices = distinct(owned["device"])
    device = np.searchsorted(devices, owned["device"])[row]
    idle = _within(kept(spells, ~gap), devices, device, start, end)
    busy = np.maximum(end - start - idle - _within(kept(spells, gap), devices, device, start, end), 0)
    own_idle, own_busy = _part(idle, owned["idle_ms"], row), _part(busy, owned["busy_ms"], row)
    place = owned["case"][row] * HOURS_PER_DAY + hour % HOURS_PER_DAY
    for kind, ms in enumerate((own_idle, own_idle + own_busy)):
        sums[:, :, kind] += _added(place, ms, len(sums) * HOURS_PER_DAY).reshape(len(sums), HOURS_PER_DAY)


def _added(place: np.ndarray, ms: np.ndarray, places: int) -> np.ndarray:
    """Milliseconds of one day added up by place: far below 2**53, where floats are whole numbers."""
    return np.bincount(place, ms, places).astype(np.int64)


def _within(
    spells: Rows, devices: np.ndarray, device: np.ndarray, start_ms: np.ndarray, end_ms: np.ndarray
) -> np.ndarray:
    """How much of each interval is within spells of its device; spells of one device do not overlap."""
    spells = kept(spells, np.isin(_device(spells), devices))
    if not len(spells["start_ms"]):
        return np.zeros(len(device), dtype=np.int64)
    base = np.searchsorted(devices, _device(spells)) * _ROOM_MS
    start, end = np.sort(base + spells["start_ms"]), np.sort(base + spells["end_ms"])
    before = np.cumsum(end - start) - (end - start)

    def upto(ms: np.ndarray) -> np.ndarray:
        at = device * _ROOM_MS + ms
        last = np.searchsorted(start, at, side="right") - 1
        return np.where(last < 0, 0, before[last] + np.minimum(at, end[last]) - start[last])

    return np.asarray(upto(end_ms) - upto(start_ms))


def _part(hours: np.ndarray, own_ms: np.ndarray, row: np.ndarray) -> np.ndarray:
    """An owner's time spread over the hours of its day in whole milliseconds."""
    total = _added(row, hours, len(own_ms))
    whole = np.maximum(total, 1)[row]
    return np.asarray((hours * own_ms[row] + whole // 2) // whole)


def _device(rows: Rows) -> np.ndarray:
    """One number per device."""
    board, instance = (rows[c].astype(np.int64) + 1 for c in schema.DEVICE)
    return board * (1 << 31) + instance
