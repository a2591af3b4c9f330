"""How far is each GPU from its peers, period by period?

Peers are GPUs of the same model on the same work in the same hour: what moves all of them (another batch, a slow
disk, the time of day) is not the GPU. A difference is a GPU's reading less the median of all of them. Differences carry
over from one work to the next, so a GPU has one series over all it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuledger.anomalies.reading import NO_WORK, Hours
from gpuledger.anomalies.signals import Rules, Signal, SignalName
from gpuledger.ledger.read.adding import runs
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR

_BLOCKS_H = (1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168)


@dataclass(frozen=True)
class Compared:
    """Differences by GPU and period; NaN where a GPU had no peers or the reading is not known.

    `named`: the same of works with a name of their own. `own`: by GPU and day its reading of the hardware less its own
    median on that work. `rows`: the differences by row of the hours. `group`: by GPU the model and work it did most.
    `peers`: by GPU how many others there mostly were.
    """

    block_ms: int
    start_ms: int
    differences: dict[SignalName, np.ndarray]
    named: dict[SignalName, np.ndarray]
    own: dict[SignalName, np.ndarray]
    rows: dict[SignalName, np.ndarray]
    group: np.ndarray
    peers: np.ndarray

    def tested(self, signal: Signal) -> dict[SignalName, np.ndarray]:
        """The differences a signal is tested in: readings that depend on the job need work with a name of its own."""
        return self.differences if signal.hardware else self.named

    def start_of(self, block: int) -> int:
        """The start of a period."""
        return self.start_ms + block * self.block_ms


def compare(hours: Hours, limits: Rules) -> Compared:
    """The differences of all GPUs."""
    span_h = max(1, (hours.end_ms - hours.start_ms) // MS_PER_HOUR)
    wide = next((h for h in _BLOCKS_H if span_h <= h * limits.blocks_most), _BLOCKS_H[-1])
    start = hours.start_ms // (wide * MS_PER_HOUR) * (wide * MS_PER_HOUR)
    block = (hours.at_ms - start) // (wide * MS_PER_HOUR)
    kind = hours.model * len(hours.works) + hours.work
    nameless = hours.works.index(NO_WORK) if NO_WORK in hours.works else -1
    differences, named, own, rows = {}, {}, {}, {}
    others = np.zeros(len(kind))
    for name, values in hours.values.items():
        apart, peers = peer_differences(kind, hours.at_ms // MS_PER_HOUR, values, limits.peers_from + 1)
        apart = np.where(hours.work == nameless, np.nan, apart)  # time without an owner is not one work
        others = np.maximum(others, np.where(np.isnan(apart), 0, peers - 1))
        rows[name], differences[name] = apart, by_block(hours, block, apart)
        named[name] = by_block(hours, block, np.where(hours.same_work, apart, np.nan))
        if limits.signal(name).hardware:
            own[name] = _own_days(hours, values)
    peers = np.array(_median_by(hours.gpu, others, len(hours.gpus)))
    return Compared(wide * MS_PER_HOUR, start, differences, named, own, rows, _mostly(hours, kind), peers)


def peer_differences(
    kind: np.ndarray, hour: np.ndarray, values: np.ndarray, fewest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each value less the median of its kind in its hour, and how many GPUs that is of; NaN where they are few."""
    out, counts = np.full(len(values), np.nan), np.zeros(len(values))
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return out, counts
    first = int(hour.min())
    key = kind * (int(hour.max()) - first + 1) + hour - first
    order = known[np.lexsort([values[known], key[known]])]
    _, starts = runs([key[order]])
    sizes = np.diff(np.append(starts, len(order)))
    low, high = starts + (sizes - 1) // 2, starts + sizes // 2
    middle = (values[order[low]] + values[order[high]]) / 2
    out[order] = values[order] - np.repeat(np.where(sizes >= fewest, middle, np.nan), sizes)
    counts[order] = np.repeat(sizes, sizes)
    return out, counts


def by_block(hours: Hours, block: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Differences by GPU and period, means weighted by the time observed."""
    blocks, known = int(block.max()) + 1, ~np.isnan(apart)
    place = (hours.gpu * blocks + block)[known]
    weight = hours.observed_ms[known]
    size = len(hours.gpus) * blocks
    total, time = np.bincount(place, apart[known] * weight, size), np.bincount(place, weight, size)
    found = np.divide(total, time, out=np.full(size, np.nan), where=time > 0)
    return found.reshape(len(hours.gpus), blocks)


def _own_days(hours: Hours, values: np.ndarray) -> np.ndarray:
    """Readings by GPU and day, each less the GPU's median on that work; for GPUs that have no peers."""
    first = hours.start_ms // MS_PER_DAY
    work = hours.gpu * len(hours.works) + hours.work
    known = ~np.isnan(values)
    order = np.flatnonzero(known)[np.lexsort([values[known], work[known]])]
    apart = np.full(len(values), np.nan)
    if len(order):
        _, starts = runs([work[order]])
        sizes = np.diff(np.append(starts, len(order)))
        middle = (values[order[starts + (sizes - 1) // 2]] + values[order[starts + sizes // 2]]) / 2
        apart[order] = values[order] - np.repeat(middle, sizes)
    return by_block(hours, hours.at_ms // MS_PER_DAY - first, apart)


def _mostly(hours: Hours, kind: np.ndarray) -> np.ndarray:
    """By GPU the kind it was the longest."""
    group, most = np.full(len(hours.gpus), -1, dtype=np.int64), np.zeros(len(hours.gpus))
    pairs, place = np.unique(np.stack([hours.gpu, kind]), axis=1, return_inverse=True)
    time = np.bincount(place.reshape(-1), hours.observed_ms, pairs.shape[1])
    for (gpu, which), ms in zip(pairs.T.tolist(), time.tolist(), strict=True):
        if ms > most[gpu]:
            group[gpu], most[gpu] = which, ms
    return group


def _median_by(gpu: np.ndarray, values: np.ndarray, gpus: int) -> list[float]:
    order = np.lexsort([values, gpu])
    cuts = np.searchsorted(gpu[order], np.arange(gpus + 1))
    return [float(np.median(values[order[a:b]])) if b > a else 0.0 for a, b in pairwise(cuts.tolist())]
