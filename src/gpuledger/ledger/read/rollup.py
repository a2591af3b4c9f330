"""What do the lines in scope add up to, by device, owner and state?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from gpuledger.lake.names import Names
from gpuledger.ledger import lines
from gpuledger.ledger.fleet_hours import SUMS
from gpuledger.ledger.gpu_hours import SUMS as HOUR
from gpuledger.ledger.read.adding import Accumulator, grouped, runs
from gpuledger.ledger.read.books import Books, Rated
from gpuledger.ledger.read.columns import Rows, exact_share, kept, slice_scale
from gpuledger.ledger.read.dies import Dies, Held
from gpuledger.ledger.read.owners import OWNED, labelled
from gpuledger.physics.activity import COLUMNS as ACTIVITY
from gpuledger.physics.activity import CONDITIONS, pipe_sums, recorded
from gpuledger.physics.states import State
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY

# One account for each of these, and of power limit and slice, which may be NULL.
LABELS = (*schema.DEVICE, "cluster", "namespace", "gpu_model", "tensor_precision", "state")
OWN = ("limit_mw", "slice_ppm")
HISTOGRAM = tuple(f"util_h{i:02d}" for i in range(lines.bins()))
HEALTH = (
    "xid_events", "rows_remapped", "row_remap_failures", "pcie_replays", "thermal_ms", "power_capped_ms", "throttle_ms",
)  # fmt: skip
HOTTEST = ("gpu_temp_max_c", "mem_temp_max_c")
_SUMS = (
    "samples", "observed_ms", "unstated_ms", "idle_ms", "idle_held_ms", "idle_unknown_ms", "util_ms", "util_ppm_ms",
    "active_ms", "active_util_ppm_ms", "power_ms", "power_uj", "pif_ms", "pif_uj", "active_pif_ms", "active_pif_uj",
    "energy_ms", "energy_mj", "class_idle_ms", "class_efficient_ms", "class_bottlenecked_ms", "class_moderate_ms",
    "class_inefficient_ms", "bottleneck_ms", "phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms",
    "phase_compute_bound_ms", "pcie_rx_ms", "pcie_rx_bytes", "pcie_tx_ms", "pcie_tx_bytes", "nvlink_ms", "nvlink_bytes",
    *HEALTH, *HISTOGRAM,
)  # fmt: skip
_DAY = ("active_ms", "bottleneck_ms", "active_pif_ms")
PLACE = ("host", "gpu_index")
Piece = tuple[list[np.ndarray], dict[str, np.ndarray]]  # keys, and sums by them


class DeviceDays(msgspec.Struct, frozen=True):
    """By device: its latest host and index, active days, days bottlenecked for over half of their active time.

    An index that is known on another host only is left out.
    """

    host: list[str | None]
    gpu_index: list[str | None]
    active: list[int]
    bottlenecked: list[int]


class AccountSums(msgspec.Struct, frozen=True):
    """Sums by device, owner and state, in order of device. `device` and `board` count up from 0.

    `unobserved_ms`: by device the time between its first and last sample no sample stands for, whoever owned it.
    `recorded`: the columns of pipe activity that hold anything. `slice_scale`: by board the factor that makes readings
    of the board, repeated for its slices, count once, whoever owned them. `owned`: whether some label but a namespace
    names the owner. `dies`: those of boards that have several, whoever owned them, with their sums.
    """

    labels: dict[str, list[str | None]]
    sums: dict[str, np.ndarray]
    limit_mw: np.ndarray
    slice_ppm: np.ndarray
    device: np.ndarray
    board: np.ndarray
    first_ms: np.ndarray
    last_ms: np.ndarray
    days: DeviceDays
    unobserved_ms: list[int]
    recorded: frozenset[str]
    numbers: np.ndarray
    slice_scale: np.ndarray
    owned: np.ndarray
    dies: Sequence[tuple[Held, Mapping[str, int]]] = ()


def state_codes(names: Names, codes: np.ndarray) -> np.ndarray:
    """States as `State` numbers; -1 for lines of version 1, which have none."""
    known = {s.label: int(s) for s in State}
    return np.array([*(known.get(t or "", -1) for t in names.texts), -1], dtype=np.int64)[codes]


def read_accounts(books: Books, more: Sequence[str] = ()) -> AccountSums:
    """The accounts of everyone in scope; an error where there is not one line. `more`: labels to keep apart too."""
    from gpuledger.ledger.read.shares import added_up  # which reads by this module

    kept_apart = (*LABELS, *(name for name in more if name not in LABELS))
    found = added_up(books, kept_apart)
    keys, sums = found.accounts.total()
    if not keys:
        raise books.nothing_found()
    return _made(books, kept_apart, keys, sums, found.devices, found.full)


class Added:
    """Lines added up by account and by device. `full`: the columns of pipe activity that hold anything."""

    def __init__(self) -> None:
        self.accounts = Accumulator(most=("last_ms", *HOTTEST), least=("first_ms",))
        self.devices, self.full = Devices(), frozenset[str]()

    def read(self, books: Books, kept_apart: Sequence[str]) -> Added:
        """Take all lines in scope."""
        numbers = tuple(dict.fromkeys(("first_ms", "last_ms", *_SUMS, *ACTIVITY, *CONDITIONS)))
        labels, used = (*kept_apart, *PLACE, *OWNED), (*_SUMS, *CONDITIONS, "first_ms", "last_ms")
        for _, rows in books.blocks(labels, numbers, (*OWN, *HOTTEST), owners=False):
            mine = {c: v[rows["wanted"]] for c, v in rows.items()} if not rows["wanted"].all() else rows
            self.devices.add(rows, mine)
            self.devices.dies.add(rows, books.names["gpu_model"])
            if not len(mine["hour_ms"]):
                continue
            self.full |= recorded(mine)
            keys = [*(mine[c] for c in kept_apart), labelled(mine) + 0, *(_coded(mine[c]) for c in OWN)]
            hottest = {c: np.nan_to_num(mine[c], nan=-1.0) for c in HOTTEST}
            self.accounts.add(keys, {c: mine[c] for c in used} | hottest | pipe_sums(mine))
        return self


class Devices:
    """What is added up by device, whatever its accounts: when it was seen, its days, and how long each slice held."""

    def __init__(self) -> None:
        self.seen, self.held = Accumulator(most=("last_ms",), least=("first_ms",)), Accumulator()
        self.dies = Dies()
        self.days: list[Piece] = []  # each of days of its own: nothing to merge

    def add(self, rows: Rows, mine: Rows) -> None:
        """Take a block: all of its rows, and those of the owners in scope."""
        device = [rows[c] for c in schema.DEVICE]
        self.seen.add(device, {c: rows[c] for c in ("first_ms", "last_ms", "observed_ms")})
        sliced = rows["gpu_instance_id"] >= 0
        if sliced.any():
            keys = [*device, _coded(rows["slice_ppm"])]
            self.held.add([k[sliced] for k in keys], {"observed_ms": rows["observed_ms"][sliced]})
        if len(mine["hour_ms"]):
            keys = [mine["hour_ms"] // MS_PER_DAY, *(mine[c] for c in (*schema.DEVICE, *PLACE))]
            self.days.append(grouped(keys, {c: mine[c] for c in (*_DAY, "last_ms")}, {"last_ms": np.maximum}))


def _coded(values: np.ndarray) -> np.ndarray:
    """Figures as keys; -1 where there is none."""
    return np.where(np.isnan(values), -1, values).astype(np.int64) if values.dtype.kind == "f" else values


def _made(
    books: Books,
    labels: tuple[str, ...],
    keys: list[np.ndarray],
    sums: dict[str, np.ndarray],
    devices: Devices,
    full: frozenset[str],
) -> AccountSums:
    names = books.names
    places = [names[c].places()[codes] for c, codes in zip(labels, keys, strict=False)]
    order = np.lexsort([*(k for k in reversed(keys[len(labels) :])), *reversed(places)])
    keys, sums = [k[order] for k in keys], {c: v[order] for c, v in sums.items()}
    board, instance = (_changes(k) for k in keys[:2])
    device, boards = np.cumsum(board | instance), np.cumsum(board)
    first = np.flatnonzero(np.diff(device, prepend=-1))
    pairs = [k[first] for k in keys[:2]]
    number = device_numbers(names, pairs)
    owned, *rest = keys[len(labels) :]
    limit, share = (np.where(k < 0, np.nan, k).astype(np.float64) for k in rest)
    sums["state"] = state_codes(names["state"], keys[LABELS.index("state")])
    first_ms, last_ms = sums.pop("first_ms"), sums.pop("last_ms")
    return AccountSums(
        {c: names[c].text(codes) for c, codes in zip(labels, keys, strict=False)},
        sums,
        limit,
        share,
        device,
        boards,
        first_ms,
        last_ms,
        _device_days(devices.days, number, names, len(first)),
        _unobserved(devices.seen, number, len(first)),
        full,
        number,
        _slice_scale(devices.held, keys[0], boards),
        owned > 0,
        devices.dies.found(names),
    )


def _slice_scale(held: Accumulator, codes: np.ndarray, boards: np.ndarray) -> np.ndarray:
    """By board the factor of `slice_scale`; `codes` are the names' numbers of `boards`."""
    keys, sums = held.total()
    count = int(boards[-1]) + 1
    if not keys:
        return np.ones(count)
    number = np.full(max(int(codes.max()), int(keys[0].max())) + 1, -1, dtype=np.int64)
    number[codes] = boards
    inside = number[keys[0]] >= 0
    board, instance, ppm = (k[inside] for k in keys)
    _, device = np.unique(board * (int(instance.max(initial=0)) + 1) + instance, return_inverse=True)
    share = exact_share(np.where(ppm < 0, np.nan, ppm))
    return slice_scale(number[board], device.reshape(-1), share, sums["observed_ms"][inside], count)


def device_numbers(names: dict[str, Names], pairs: list[np.ndarray]) -> np.ndarray:
    """A table from the codes of a device's labels to its number; -1 for a device that is not in scope."""
    boards, instances = (len(names[c]) for c in schema.DEVICE)
    number = np.full((boards + 1, instances + 1), -1, dtype=np.int64)  # the last places are for no name, -1
    number[tuple(pairs)] = np.arange(len(pairs[0]))
    return number


def numbered(rows: Rows, number: np.ndarray) -> np.ndarray:
    """Each row's device as the accounts count it."""
    board, instance = (rows[c] for c in schema.DEVICE)
    inside = (board < number.shape[0] - 1) & (instance < number.shape[1] - 1)
    if inside.all():
        return number[board, instance]
    found = np.full(len(board), -1, dtype=np.int64)
    found[inside] = number[board[inside], instance[inside]]
    return found


def _changes(values: np.ndarray) -> np.ndarray:
    """Where a value differs from the one before; the first does not."""
    found = np.zeros(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found


def _unobserved(seen: Accumulator, number: np.ndarray, devices: int) -> list[int]:
    keys, sums = seen.total()
    device = number[tuple(keys)]
    inside = device >= 0
    left = np.zeros(devices, dtype=np.int64)
    span = sums["last_ms"] - sums["first_ms"] - sums["observed_ms"].astype(np.int64)
    left[device[inside]] = span[inside]
    out: list[int] = np.maximum(left, 0).tolist()
    return out


def _device_days(days: Sequence[Piece], number: np.ndarray, names: dict[str, Names], devices: int) -> DeviceDays:
    keys = [np.concatenate(parts) for parts in zip(*(keys for keys, _ in days), strict=True)]
    sums = {c: np.concatenate([found[c] for _, found in days]) for c in days[0][1]}
    day, board, instance, *where = keys
    device = number[board, instance]
    host, index = (names[c].places()[codes] for c, codes in zip(PLACE, where, strict=True))
    latest_host = _latest(device, host, sums["last_ms"], devices)
    # The index it had on another host would name another GPU.
    there = np.where(host == latest_host[device], index, 0)
    latest_index = _latest(device, there, sums["last_ms"], devices)
    order, starts = runs([device, day - day.min()])
    parts = (sums[c] if order is None else sums[c][order] for c in _DAY)
    active, slow, judged = (np.add.reduceat(values, starts) for values in parts)
    of = (device if order is None else device[order])[starts]
    counts = (np.bincount(of, test, devices).astype(np.int64).tolist() for test in (active > 0, 2 * slow > judged))
    return DeviceDays(names["host"].at(latest_host), names["gpu_index"].at(latest_index), *counts)


def _latest(device: np.ndarray, place: np.ndarray, last_ms: np.ndarray, devices: int) -> np.ndarray:
    """By device the place of its latest text; of several the later in the alphabet, 0 where it has none."""
    seen_ms = np.where(place > 0, last_ms, -1)
    newest = np.full(devices, -1, dtype=np.int64)
    np.maximum.at(newest, device, seen_ms)
    latest = np.zeros(devices, dtype=np.int64)
    np.maximum.at(latest, device, np.where(seen_ms == newest[device], place, 0))
    return latest


def hour_lines(books: Books, accounts: AccountSums) -> Iterator[tuple[int, Rows]]:
    """The hours of devices in scope, a file at a time, each with its device as the accounts count it."""
    for day_ms, rows in books.gpu_hours(HOUR, ("limit_mw",)):
        rows["device"] = numbered(rows, accounts.numbers)
        yield day_ms, rows


def fleet_hours(books: Books, accounts: AccountSums) -> Iterator[Rows]:
    """The lines in scope hour by hour and by kind of work, whatever the device."""
    # Without SM activity nothing decides how fully a pipe works, so nothing else need be read for it.
    more = CONDITIONS if "sm_ms" in accounts.recorded else ()
    numbers = ("samples", *HOUR[1:], *(c for c in (*ACTIVITY, *more) if c in accounts.recorded))
    rated = Rated(numbers, lambda rows: rows | pipe_sums(rows))
    wanted = [c for c in SUMS if c not in CONDITIONS or c in more]
    return books.fleet_hours(("gpu_model", "tensor_precision", "state"), wanted, rated)


def quiet_spells(books: Books, accounts: AccountSums) -> Iterator[Rows]:
    """Idle spells of the devices, a file at a time."""
    for rows in books.quiet_spells():
        device = numbered(rows, accounts.numbers)
        spells = {"device": device, "start_ms": rows["start_ms"], "end_ms": rows["end_ms"]}
        yield kept(spells, device >= 0)
