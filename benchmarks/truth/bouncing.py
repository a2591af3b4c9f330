"""What does a device report whose load starts and stops, sampled at some rate?

Levels are recorded rows: of a workload while the load runs, of a GPU that holds memory while it waits. What a reading
averages over was measured on the H200 of the recordings, where a matrix product starts and stops:

    activity counters   the time since the sample before
    utilization         the last whole period of 0.2 s (it then stays until the next one ends)
    power               the last 1.0 s
    clocks, throttle    the instant
    memory              held throughout

A recorded row whose counters missed their window is not a level: slower sampling never shows one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

from recording import COUNTERS, Row

UTIL_PERIOD_S, POWER_MEAN_S = 0.2, 1.0
# The loop of a job is not locked to the clock of the sampler: its period is a little longer than its name says.
UNLOCKED = 1 + 1 / 997
PHASE_S = 0.037
PERIODS_S = (0.2, 0.4, 1.0, 2.0, 6.0, 10.0, 20.0, 40.0, 60.0)
DUTIES = (0.1, 0.2, 0.5, 0.8, 0.9)
RATES_HZ = (10.0, 1.0)
# Counters of amounts: after a missed window they show those of both windows as if they were of one.
AMOUNTS = ("dram_active", "pcie_tx_mib_s", "pcie_rx_mib_s")
SHORTEST_S, FEWEST_PERIODS = 120.0, 6


@dataclass(frozen=True)
class Load:
    """Busy for `duty` of each period, then waiting."""

    period_s: float
    duty: float

    @property
    def wait_s(self) -> float:
        """How long it waits at a time."""
        return self.period_s * (1 - self.duty)

    @property
    def burst_s(self) -> float:
        """How long it works at a time."""
        return self.period_s * self.duty

    @property
    def seconds(self) -> float:
        """How long it is watched."""
        return max(SHORTEST_S, FEWEST_PERIODS * self.period_s)

    def busy(self, at_s: float) -> bool:
        """Whether it works at an instant."""
        return at_s % (self.period_s * UNLOCKED) < self.burst_s * UNLOCKED

    def share(self, from_s: float, to_s: float) -> float:
        """The share of a time in which it works."""
        return min(1.0, max(0.0, (self._worked(to_s) - self._worked(from_s)) / (to_s - from_s)))

    def _worked(self, at_s: float) -> float:
        period = self.period_s * UNLOCKED
        rounds = floor(at_s / period)
        return rounds * self.burst_s * UNLOCKED + min(at_s - rounds * period, self.burst_s * UNLOCKED)


def levels(rows: Sequence[Row]) -> list[Row]:
    """The rows whose counters met their window; what a row covers for missed ones before it is spread over them."""
    out, missed = [], 0
    for row in rows:
        if not any(row.get(name) for name in COUNTERS):
            missed += 1
            continue
        out.append({**row, **{name: row[name] / (1 + missed) for name in AMOUNTS if name in row}})
        missed = 0
    return out


def sampled(load: Load, hz: float, busy: Sequence[Row], waiting: Sequence[Row], start_s: float) -> list[Row]:
    """What the device reports. Each sample takes the next recorded row of either kind."""
    step, out, energy_j = 1 / hz, [], 1000.0
    busy, waiting = levels(busy), levels(waiting)
    for number in range(1, round(load.seconds * hz) + 1):
        at = number * step + PHASE_S
        at_work, at_rest = busy[number % len(busy)], waiting[number % len(waiting)]
        row = _reading(load, at, step, at_work, at_rest)
        mean_w = _mixed(load.share(at - step, at), at_work["power_w"], at_rest["power_w"])
        energy_j += mean_w * step
        out.append({**row, "t": start_s + at, "energy_j": energy_j})
    return out


def _reading(load: Load, at: float, step: float, at_work: Mapping[str, float], at_rest: Mapping[str, float]) -> Row:
    row = dict(at_work if load.busy(at) else at_rest)
    for name in ("fb_used_mib", "fb_free_mib", "power_limit_w"):
        if name in at_work:
            row[name] = at_work[name]
    refreshed = floor(at / UTIL_PERIOD_S) * UTIL_PERIOD_S
    ran = load.share(refreshed - UTIL_PERIOD_S, refreshed)
    for name in ("gpu_util", "mem_copy_util"):
        if name in at_work:
            row[name] = float(round(_mixed(ran, at_work[name], at_rest[name])))
    row["power_w"] = _mixed(load.share(at - POWER_MEAN_S, at), at_work["power_w"], at_rest["power_w"])
    counted = load.share(at - step, at)
    for name in COUNTERS:
        row.pop(name, None)
        if name in at_work and name in at_rest:
            row[name] = _mixed(counted, at_work[name], at_rest[name])
    return row


def _mixed(share: float, at_work: float, at_rest: float) -> float:
    return share * at_work + (1 - share) * at_rest
