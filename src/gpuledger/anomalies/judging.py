"""Which differences are too large and too lasting to be chance?

Three tests: a GPU's distance to its peers changes (a step or a drift); it is further from its peers than they are from
each other, all the time; without peers, its own reading changes from one day on. All tests of all GPUs are believed
together so that of those believed at most a set share is chance, and only those large enough to matter are kept.
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
    spread,
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
    kept = chosen([t.chance for t in tried], limits.false_findings_ratio)
    found = [
        t for t, good in zip(tried, kept.tolist(), strict=True) if good and abs(t.size) >= _least(t.signal) and t.lasts
    ]
    best: dict[tuple[int, SignalName], Deviation] = {}
    for one in sorted(found, key=_order):
        best.setdefault((one.gpu, one.signal.name), one)
    return sorted(best.values(), key=lambda d: (d.gpu, d.signal.name)), len(tried)


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
    """GPUs on the same work: how far each is from the others over the window, and how far they differ by nature."""

    members: np.ndarray
    apart: np.ndarray
    sigma: float
    freedom: float


def _groups(signal: Signal, compared: Compared, limits: Rules) -> Iterator[_Group]:
    """The groups of peers that are large enough.

    Few GPUs say little of how far they differ by nature. Their deviation is therefore taken to be at least that of all
    groups together and twice the noise of the reading, and counts as known from that many GPUs more (`level_freedom`).
    """
    values = compared.named[signal.name]
    enough = np.flatnonzero((~np.isnan(values)).sum(axis=1) >= limits.blocks_from)
    if len(enough) <= limits.peers_from:
        return
    middle = np.full(len(values), np.nan)
    middle[enough] = np.nanmedian(values[enough], axis=1)
    pooled = float(spread(middle[enough]))
    for group in np.unique(compared.group[enough]).tolist():
        members = enough[compared.group[enough] == group]
        if len(members) <= limits.peers_from:
            continue
        apart = middle[members] - float(np.median(middle[members]))
        sigma = max(float(spread(middle[members])), pooled, 2 * signal.noise)
        yield _Group(members, apart, sigma, len(members) - 1 + limits.level_freedom)


def _levels(signal: Signal, compared: Compared, limits: Rules) -> Iterator[Deviation]:
    """GPUs that stand apart from their peers over all of the window, by how far apart these are from each other."""
    for group in _groups(signal, compared, limits):
        for gpu, size in zip(group.members.tolist(), group.apart.tolist(), strict=True):
            if size * signal.sign <= 0:
                continue
            chance = min(1.0, 2 * student_tail(abs(size) / group.sigma, group.freedom))
            wide = _SURE * group.sigma
            yield Deviation(
                gpu, signal, "peers", "level", compared.start_ms, size, size - wide, size + wide, chance
            )  # fmt: skip


def smallest_levels(compared: Compared, limits: Rules, tests: int) -> dict[SignalName, float]:
    """By reading the smallest lasting difference to peers that one GPU alone would be named for, in its usual group.

    Sizes are as those of deviations; readings without a group that is large enough have none.
    """
    found: dict[SignalName, float] = {}
    for signal in limits.signals:
        groups = list(_groups(signal, compared, limits))
        if groups:
            sizes = [student_size(limits.false_findings_ratio / max(tests, 1) / 2, g.freedom) * g.sigma for g in groups]
            usual = np.repeat(sizes, [len(g.members) for g in groups])
            found[signal.name] = max(_least(signal), float(np.median(usual)))
    return found
