"""What does a GPU read since it got worse, and what do its peers read then?"""

from __future__ import annotations

import math

import numpy as np

from gpuledger.anomalies.judging import Deviation
from gpuledger.anomalies.peers import Compared
from gpuledger.anomalies.reading import Hours
from gpuledger.anomalies.signals import Signal
from gpuledger.anomalies.statement import Evidence, Point
from gpuledger.units import Unknown

_NO_READING = Unknown("it has no reading since then")
# Readings are compared in other units than people read them in.
_SHOWN = {"power": 1e-3, "limit": 1e-3, "memory": 100.0}


def now_and_expected(hours: Hours, compared: Compared, one: Deviation) -> tuple[float | Unknown, float | Unknown]:
    """The mean of the GPU's readings since then, and that of its peers at the time, or of its own before.

    Of a drift, of the last quarter of the time since.
    """
    values = hours.values[one.signal.name]
    mine = (hours.gpu == one.gpu) & ~np.isnan(values)
    from_ms = one.since_ms
    if one.shape == "drift":
        from_ms += (hours.end_ms - one.since_ms) * 3 // 4
    since = mine & (hours.at_ms >= from_ms)
    if one.basis == "own past":
        before = mine & (hours.at_ms < one.since_ms)
        return _mean(values[since], one.signal), _mean(values[before], one.signal)
    with_peers = since & ~np.isnan(compared.rows[one.signal.name])
    theirs = values[with_peers] - compared.rows[one.signal.name][with_peers]
    return _mean(values[with_peers], one.signal), _mean(theirs, one.signal)


def _mean(values: np.ndarray, signal: Signal) -> float | Unknown:
    return shown(float(np.mean(values)), signal) if len(values) else _NO_READING


def shown(value: float, signal: Signal) -> float:
    """A reading as people read it."""
    return (math.exp(value) if signal.form == "ratio" else value) * _SHOWN.get(signal.name, 1.0)


def evidence_of(one: Deviation, now: float | Unknown, expected: float | Unknown) -> Evidence:
    """A deviation with the readings that show it."""
    signal = one.signal
    ratio = signal.form == "ratio"
    sizes = [100 * math.expm1(x) if ratio else x for x in (one.size, one.low, one.high)]
    unit = "%" if ratio else "points" if signal.form == "points" else signal.unit
    return Evidence(
        signal.name, signal.title, signal.unit, one.basis, one.shape, one.since_ms, sizes[0], sizes[1], sizes[2], unit,
        now, expected, one.chance,
    )  # fmt: skip


def series_of(hours: Hours, compared: Compared, gpu: int, signal: Signal) -> tuple[Point, ...]:
    """The GPU's reading and the median of its peers, period by period."""
    values, apart = hours.values[signal.name], compared.rows[signal.name]
    mine = np.flatnonzero((hours.gpu == gpu) & ~np.isnan(values))
    block = (hours.at_ms[mine] - compared.start_ms) // compared.block_ms
    out = []
    for b in np.unique(block).tolist():
        rows = mine[block == b]
        peered = rows[~np.isnan(apart[rows])]
        peers = shown(float(np.mean(values[peered] - apart[peered])), signal) if len(peered) else None
        own = shown(float(np.mean(values[peered if len(peered) else rows])), signal)
        out.append(Point(compared.start_of(b), own, peers))
    return tuple(out)
