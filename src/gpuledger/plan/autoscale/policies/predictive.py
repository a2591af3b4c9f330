"""Predictive: replicas for the load expected when a replica started now would be ready.

With two days or more to learn from, the load now is scaled by what the same time of the day before went on to do; on
shorter traces a line through the last ten minutes is continued. Only the past is used, at every moment.
"""

from __future__ import annotations

import math

from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import PolicyKind, View
from gpuledger.plan.autoscale.policies.hpa import Hpa, ScaleToZero
from gpuledger.plan.autoscale.setting import Setting

DAY_S = 86_400.0
MEAN_S, TREND_S = 300.0, 600.0
LEAST_CHANGE, MOST_CHANGE = 0.5, 2.0


def daily(setting: Setting) -> bool:
    """Whether the day before is used."""
    return setting.learned.length_s >= 2 * DAY_S


class Predictive:
    """The larger of the load now and the load to come, at a target utilization, through the autoscaler's rules."""

    def __init__(self, setting: Setting, target_ratio: float) -> None:
        step = setting.interval_s
        self._per_replica = setting.service.slots * target_ratio
        self._mean = max(1, round(MEAN_S / step))
        self._day = max(1, round(DAY_S / step)) if daily(setting) else 0
        self._ahead = max(1, math.ceil((setting.cold_start_s + step) / step))
        self._trend = max(2, round(TREND_S / step))
        self._loads: list[float] = []
        self._sums = [0.0]
        self._hpa, self._zero = Hpa(setting), ScaleToZero(setting)

    def _mean_at(self, end: int) -> float:
        """The mean load of the intervals before `end`."""
        first = max(0, end - self._mean)
        return (self._sums[end] - self._sums[first]) / max(1, end - first)

    def expected(self) -> float:
        """The load when a replica started now would be ready."""
        now = len(self._loads)
        load, before = self._mean_at(now), now - self._day
        if not self._day:
            return self._line()
        if before < self._mean or (past := self._mean_at(before)) <= 0:
            return load
        change = self._mean_at(min(before + self._ahead, now)) / past
        return load * min(MOST_CHANGE, max(LEAST_CHANGE, change))

    def _line(self) -> float:
        """The last ten minutes, continued by least squares."""
        last = self._loads[-self._trend :]
        middle, mean = (len(last) - 1) / 2, sum(last) / len(last)
        spread = sum((i - middle) ** 2 for i in range(len(last)))
        slope = sum((i - middle) * y for i, y in enumerate(last)) / spread if spread else 0.0
        return max(0.0, mean + slope * (middle + self._ahead))

    def desired(self, view: View) -> int:
        """Replicas for what is here or comes."""
        self._loads.append(view.in_system)
        self._sums.append(self._sums[-1] + view.in_system)
        load = max(self._mean_at(len(self._loads)), self.expected())
        return self._zero.replicas(view, self._hpa.replicas(view, load / self._per_replica))


KIND = PolicyKind(
    name="predictive",
    title="Predictive",
    tried=lambda _setting: facts().tried.target_ratios,
    build=Predictive,
    says=lambda setting, value: (
        f"{100 * value:g} % of slots busy at the load expected from "
        f"{'the day before' if daily(setting) else 'the last 10 minutes'}"
    ),
)
