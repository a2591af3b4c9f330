"""Which boards are a day's samples of, on which hosts, and which of these does a job mean?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from gpuledger.lake.batch import Batch, board_of
from gpuledger.lake.jobs.claims import LABELS, Owner
from gpuledger.lake.steady_labels import read_group, steady_groups
from gpuledger.telemetry import schema

FOREVER = 1 << 62
# By board from when to when (not including) its samples carry which labels.
Labelled = Mapping[str, Sequence[tuple[int, int, Owner]]]
_COLUMNS = ("gpu_uuid", "host", "gpu_index")


class Place(NamedTuple):
    """A board, the host it is in and its index there."""

    board: str
    host: str | None
    gpu_index: str | None


def places_of(file: pq.ParquetFile) -> list[Place]:
    """All places of a part of the lake, in order."""
    noted, there = steady_groups(file), file.schema_arrow.names
    columns = [c for c in _COLUMNS if c in there]
    found: set[tuple[str | None, ...]] = set()
    for group in range(file.num_row_groups):
        table, fixed = read_group(file, group, columns, noted[group] if noted else None)
        # Only the board makes a device here.
        batch = Batch(table, fixed=fixed - {"gpu_uuid"})
        heads = batch.changes(_COLUMNS).nonzero()[0]
        found.update(zip(*(batch.text(c, heads).to_pylist() for c in _COLUMNS), strict=True))
    return sorted((Place(b or "", h, i) for b, h, i in found), key=lambda p: tuple(t or "" for t in p))


def labels_of(file: pq.ParquetFile) -> Labelled:
    """By board the stretches over which its samples carry the same labels; none of a board cut into MIG slices."""
    noted, there = steady_groups(file), file.schema_arrow.names
    columns = [c for c in (schema.TIME, *schema.DEVICE, *LABELS) if c in there]
    out: dict[str, list[tuple[int, int, Owner]]] = {}
    sliced = set[str]()
    for group in range(file.num_row_groups):
        table, fixed = read_group(file, group, columns, noted[group] if noted else None)
        batch = Batch(table, fixed=fixed)
        change = batch.changes(LABELS)
        change[batch.device_starts] = True
        heads = np.flatnonzero(change)
        device = batch.devices_at(heads)
        ends = [*np.where(device[1:] == device[:-1], batch.at_ms[heads[1:]], FOREVER).tolist(), FOREVER]
        owners = zip(*(batch.text(name, heads).to_pylist() for name in LABELS), strict=True)
        for place, start, end, own in zip(device.tolist(), batch.at_ms[heads].tolist(), ends, owners, strict=True):
            board = board_of(batch.devices[place])
            if board != batch.devices[place]:
                sliced.add(board)
            elif any(own):
                out.setdefault(board, []).append((start, end, own))
    return {board: runs for board, runs in out.items() if board not in sliced}


class Hosts:
    """The hosts of samples, found by the names jobs give them: with or without domain, where that is clear."""

    def __init__(self, known: Iterable[str], asked: Iterable[str]) -> None:
        self._exact = {host.casefold(): host for host in known}
        self._short: dict[str, list[str]] = defaultdict(list)
        for full in sorted(self._exact):
            self._short[_short(full)].append(full)
        domains: dict[str, set[str]] = defaultdict(set)
        for name in {a.casefold() for a in asked}:
            if name != _short(name):
                domains[_short(name)].add(name)
        self._several = {short for short, names in domains.items() if len(names) > 1}
        self.unclear: set[str] = set()

    def find(self, asked: str) -> str | None:
        """The host of the samples; None where there is none, or where it could be one of several."""
        name = asked.casefold()
        if name in self._exact:
            return self._exact[name]
        short = _short(name)
        # Two names with different domains are two hosts.
        fit = [full for full in self._short.get(short, ()) if short in (full, name)]
        if len(fit) > 1 or (fit and name != short and short in self._several):
            self.unclear.add(asked)
            return None
        return self._exact[fit[0]] if fit else None


def _short(host: str) -> str:
    """A host without its domain; an address stays whole."""
    return host if host.replace(".", "").replace(":", "").isdecimal() else host.partition(".")[0]
