"""What do the lines in scope add up to, by device and owner?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuledger.efficiency.adding import added, runs
from gpuledger.efficiency.columns import Names, Rows
from gpuledger.telemetry import schema

# One account for each of these, and of board power and slice, which may be NULL.
LABELS = (*schema.DEVICE, "cluster", "namespace", "gpu_model", "tensor_precision")
OWN = ("board_mw", "slice_ppm")
# What is known of a line beside its sums.
KNOWN = (*LABELS, *OWN, "host", "day", "first_ms", "last_ms")


@dataclass(frozen=True)
class DeviceDays:
    """By device: its latest host, active days, days bottlenecked for over half of their active time."""

    host: list[str | None]
    active: list[int]
    bottlenecked: list[int]


@dataclass(frozen=True)
class AccountSums:
    """Sums by device and owner, in order of device. `device` and `board` count up from 0."""

    labels: dict[str, list[str | None]]
    sums: dict[str, np.ndarray]
    board_mw: np.ndarray
    slice_ppm: np.ndarray
    device: np.ndarray
    board: np.ndarray
    first_ms: np.ndarray
    last_ms: np.ndarray
    days: DeviceDays


def add_accounts(rows: Rows, names: Mapping[str, Names]) -> AccountSums:
    """Lines, one at least, added up over all days."""
    order, starts = runs([*(names[c].places()[rows[c]] for c in LABELS), *(from_zero(rows[c]) for c in OWN)])
    if order is not None:
        rows = {c: values[order] for c, values in rows.items()}
    board, instance = (_changes(rows[c][starts]) for c in schema.DEVICE)
    device = np.cumsum(board | instance)
    board_mw, slice_ppm = (rows[c][starts].astype(np.float64) for c in OWN)
    return AccountSums(
        {c: names[c].text(rows[c][starts]) for c in LABELS},
        {c: added(values, starts) for c, values in rows.items() if c not in KNOWN},
        board_mw,
        slice_ppm,
        device,
        np.cumsum(board),
        np.minimum.reduceat(rows["first_ms"], starts),
        np.maximum.reduceat(rows["last_ms"], starts),
        _device_days(rows, starts[np.diff(device, prepend=-1) > 0], names["host"]),
    )


def by_day(rows: Rows) -> Rows:
    """Lines alike in all an account and its days tell apart, made one."""
    keys = (*LABELS, *OWN, "host", "day")
    order, starts = runs([from_zero(rows[c]) for c in keys])
    rows = rows if order is None else {c: values[order] for c, values in rows.items()}
    ends = {"first_ms": np.minimum, "last_ms": np.maximum}
    out = {c: ends.get(c, np.add).reduceat(v, starts) for c, v in rows.items() if c not in keys}
    return out | {c: rows[c][starts] for c in keys}


def from_zero(values: np.ndarray) -> np.ndarray:
    """Labels or figures as keys from 0 on: no label comes first, no figure last."""
    if values.dtype.kind == "f":
        known = ~np.isnan(values)
        return np.where(known, values, values.max(initial=0, where=known) + 1).astype(np.int64)
    return values + 1


def _changes(values: np.ndarray) -> np.ndarray:
    """Where a value differs from the one before; the first does not."""
    found = np.zeros(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found


def _device_days(rows: Rows, first: np.ndarray, hosts: Names) -> DeviceDays:
    """`first` is where each device's lines start."""
    device = np.repeat(np.arange(len(first)), np.diff(first, append=len(rows["day"])))
    place = hosts.places()[rows["host"]]
    seen_ms = np.where(place > 0, rows["last_ms"], -1)
    latest = np.where(seen_ms == np.maximum.reduceat(seen_ms, first)[device], place, 0)
    texts = [None, *sorted(map(str, hosts.texts))]
    order, starts = runs([device, rows["day"] - rows["day"].min()])
    sums = (rows[c] if order is None else rows[c][order] for c in ("active_ms", "bottleneck_ms", "active_pif_ms"))
    active, slow, judged = (np.add.reduceat(values, starts) for values in sums)
    counts = (np.bincount(device[starts], test, len(first)) for test in (active > 0, 2 * slow > judged))
    return DeviceDays(
        [texts[i] for i in np.maximum.reduceat(latest, first).tolist()], *(n.astype(np.int64).tolist() for n in counts)
    )
