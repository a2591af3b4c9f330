"""Which differences are too large and too lasting to be chance?

Three tests: a GPU's distance to its peers changes (a step or a drift); it is further from its peers than they are from
each other, all the time; without peers, its own reading changes from one day on. The tests of all GPUs are believed
together so that of those believed at most a set share is chance, changes and lasting differences each by themselves,
and only those large enough to matter are kept. Readings that only explain are tested where a GPU is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpuledger.anomalies.peers import Compared
from gpuledger.anomalies.signals import Rules, Signal, SignalName
from gpuledger.anomalies.statement import Basis, Shape
from gpuledger.anomalies.statistics import (
    MEDIAN_TO_MEAN,
    biggest_change,
    chosen,
    may_change,
    spread_without_each,
    student_size,
    student_tail,
)
from gpuledger.units import MS_PER_DAY

_SURE = 1.96  # deviations of a range that holds 19 times of 20


@dataclass(frozen=True)
class Deviation:
    """One reading of one GPU that got worse; sizes are in logarithms where the reading is a ratio."""

    gpu: int
    signal: Signal
    basis: Basis
    shape: Shape
    since_ms: int
    size: float
    low: float
    high: float
    chance: float
    lasts: bool = True


def deviations(compared: Compared, limits: Rules) -> tuple[list[Deviation], int]:
    """The differences to believe, and how many were tested."""
    tried = [t for signal in limits.signals for t in _tests(signal, compared, limits)]
    levels = [t for t in tried if t.shape == "level"]
    found = _believed([t for t in tried if t.shape != "level"], limits.false_findings_ratio)
    found += _believed([t for t in levels if t.signal.names], limits.false_levels_ratio)
    named = {t.gpu for t in found}
    found += _believed([t for t in levels if not t.signal.names and t.gpu in named], limits.false_levels_ratio)
    best: dict[tuple[int, SignalName], Deviation] = {}
    for one in sorted(found, key=_order):
        best.setdefault((one.gpu, one.signal.name), one)
    return sorted(best.values(), key=lambda d: (d.gpu, d.signal.name)), len(tried)


def _believed(tried: list[Deviation], ratio: float) -> list[Deviation]:
    """Those of one family that are not chance, last, and are large enough to matter."""
    kept = chosen([t.chance for t in tried], ratio)
    return [t for t, good in zip(tried, kept.tolist(), strict=True) if good and _matters(t) and t.lasts]


def _matters(one: Deviation) -> bool:
    return abs(one.size) >= _least(one.signal)


def _order(one: Deviation) -> tuple[bool, float]:
    """A change is reported before a level: it says since when."""
    return one.shape == "level", one.chance


def _least(signal: Signal) -> float:
    """The smallest size worth naming, as sizes are written."""
    if signal.form != "ratio":
        return signal.least
    return math.log1p(signal.least) if signal.worse == "high" else -math.log1p(-signal.least)


def _tests(signal: Signal, compared: Compared, limits: Rules) -> Iterator[Deviation]:
    series = compared.tested(signal)[signal.name]
    enough = (~np.isnan(series)).sum(axis=1) >= limits.blocks_from
    yield from _changes(signal, series, enough, "own distance to peers", compared.start_ms, compared.block_ms, limits)
    yield from _levels(signal, compared, limits)
    if signal.hardware:
        own = compared.own[signal.name]
        alone = ~enough & ((~np.isnan(own)).sum(axis=1) >= limits.own_days_from)
        first_ms = compared.start_ms // MS_PER_DAY * MS_PER_DAY
        yield from _changes(signal, own, alone, "own past", first_ms, MS_PER_DAY, limits)


def _changes(
    signal: Signal, series: np.ndarray, judged: np.ndarray, basis: Basis, start_ms: int, block_ms: int, limits: Rules
) -> Iterator[Deviation]:
    """The largest change for the worse of each GPU that can be judged."""
    members = np.flatnonzero(judged)
    if not len(members):
        return
    likely = may_change(series[members], signal.noise, signal.sign)
    for gpu in members[~likely].tolist():  # they count as tests
        yield Deviation(gpu, signal, basis, "step", start_ms, 0.0, 0.0, 0.0, 1.0, lasts=False)
    for gpu in members[likely].tolist():
        found = _changed(gpu, signal, series[gpu], basis, limits)
        if found is not None:
            yield replace(found, since_ms=start_ms + found.since_ms * block_ms)


def _changed(gpu: int, signal: Signal, values: np.ndarray, basis: Basis, limits: Rules) -> Deviation | None:
    """The largest change for the worse; `since_ms` is still the number of its period."""
    change = biggest_change(values, signal.noise, signal.sign)
    if change is None:
        return None
    known = np.flatnonzero(~np.isnan(values))
    since = known >= change.at
    late = known[-max(3, int(since.sum()) // 4) :]
    size = change.after - change.before
    lasts = signal.sign * (float(np.median(values[late])) - change.before) >= limits.still_ratio * abs(size)
    per_side = 1 / max(int((~since).sum()), 1) + 1 / max(int(since.sum()), 1)
    wide = _SURE * MEDIAN_TO_MEAN * change.sigma * math.sqrt(per_side)
    shape: Shape = "drift" if change.drift else "step"
    return Deviation(gpu, signal, basis, shape, change.at, size, size - wide, size + wide, change.chance, bool(lasts))


@dataclass(frozen=True)
class _Group:
    """GPUs on the same work: how far each is from the others over the window, and how far those differ by nature."""

    members: np.ndarray
    apart: np.ndarray
    sigma: np.ndarray
    freedom: float

    def worse(self, signal: Signal) -> np.ndarray:
        """Which of them are tested: those on the side that is worse."""
        return self.apart * signal.sign > 0


def _groups(signal: Signal, compared: Compared, limits: Rules) -> list[_Group]:
    """The groups of peers that are large enough.

    How far GPUs differ by nature is judged by the others alone, so that a GPU that stands apart does not hide itself.
    Few GPUs say little of that. Their deviation is therefore taken to be at least that of all groups together and twice
    the noise of the reading, and counts as known from that many GPUs more (`level_freedom`).
    """
    values = compared.named[signal.name]
    enough = np.flatnonzero((~np.isnan(values)).sum(axis=1) >= limits.blocks_from)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for group in np.unique(compared.group[enough]).tolist():
        members = enough[compared.group[enough] == group]
        if len(members) > limits.peers_from:
            middle = np.nanmedian(values[members], axis=1)
            found.append((members, middle - np.median(middle)))
    if not found:
        return []
    pooled = spread_without_each(np.concatenate([apart for _, apart in found]))
    ends = np.cumsum([len(members) for members, _ in found])[:-1]
    return [
        _Group(
            members, apart, np.maximum(np.maximum(spread_without_each(apart), together), 2 * signal.noise),
            len(members) - 1 + limits.level_freedom,
        )
        for (members, apart), together in zip(found, np.split(pooled, ends), strict=True)
    ]  # fmt: skip


def _levels(signal: Signal, compared: Compared, limits: Rules) -> Iterator[Deviation]:
    """GPUs that stand apart from their peers over all of the window, by how far apart these are from each other."""
    for group in _groups(signal, compared, limits):
        tested = group.worse(signal)
        rows = zip(
            group.members[tested].tolist(), group.apart[tested].tolist(), group.sigma[tested].tolist(), strict=True
        )
        for gpu, size, sigma in rows:
            # What is too small to be named counts as a test, and no more.
            small = abs(size) < _least(signal)
            chance = 1.0 if small else min(1.0, 2 * student_tail(abs(size) / sigma, group.freedom))
            wide = _SURE * sigma
            yield Deviation(gpu, signal, "peers", "level", compared.start_ms, size, size - wide, size + wide, chance)


def smallest_levels(compared: Compared, limits: Rules) -> dict[SignalName, float]:
    """By reading the smallest lasting difference to peers that one GPU alone would be named for, in its usual group.

    Sizes are as those of deviations; readings without a group that is large enough have none.
    """
    groups = {s.name: _groups(s, compared, limits) for s in limits.signals if s.names}
    tests = sum(int(g.worse(limits.signal(name)).sum()) for name, found in groups.items() for g in found)
    chance = limits.false_levels_ratio / max(tests, 1) / 2
    out: dict[SignalName, float] = {}
    for name, found in groups.items():
        if found:
            usual = np.concatenate([student_size(chance, g.freedom) * g.sigma for g in found])
            out[name] = max(_least(limits.signal(name)), float(np.median(usual)))
    return out
