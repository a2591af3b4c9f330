"""Scheduled: replicas by hour of the day, or of the week where the first part has two weeks or more, learned once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import PolicyKind, View
from gpuledger.plan.autoscale.setting import Setting

HOUR_S, DAY_S = 3600.0, 86_400.0
LEAST_S, WEEKLY_S = 2 * DAY_S, 14 * DAY_S
_THURSDAY_S = 3 * DAY_S  # 1970-01-01 was a Thursday: hours count from Monday


@dataclass(frozen=True)
class Timetable:
    """Replicas for each hour of a week (168) or of a day (24), from Monday 00:00 UTC or from the trace's start."""

    replicas: tuple[int, ...]

    def at(self, clock_s: float) -> int:
        """Replicas at an instant."""
        return self.replicas[int((clock_s + _THURSDAY_S) // HOUR_S) % len(self.replicas)]


def timetable(setting: Setting, target_ratio: float) -> Timetable:
    """For each hour what its busiest step needs at the target; an hour that was not seen takes the busiest of all."""
    trace, service = setting.learned, setting.service
    hours = 168 if setting.weekly else 24
    hour = ((trace.clock_s + _THURSDAY_S) // HOUR_S).astype(np.int64) % hours
    most = np.full(hours, -1.0)
    np.maximum.at(most, hour, trace.rates_per_s)
    most = np.where(most < 0, most.max(), most)
    needed = np.ceil(most * service.service_s / (service.slots * target_ratio) - 1e-9).astype(int)
    return Timetable(tuple(setting.within(int(n)) for n in needed))


class Scheduled:
    """The timetable, ahead by the cold start on the way up."""

    def __init__(self, setting: Setting, target_ratio: float) -> None:
        self._table = timetable(setting, target_ratio)
        self._start_s = float(setting.learned.clock_s[0])
        self._ahead_s = setting.cold_start_s + setting.interval_s

    def desired(self, view: View) -> int:
        """The larger of what this moment and the one after a cold start need."""
        now = self._start_s + view.now_s
        return max(self._table.at(now), self._table.at(now + self._ahead_s))


def _cannot(setting: Setting) -> str:
    if setting.learned.length_s < LEAST_S:
        hours = setting.learned.length_s / HOUR_S
        return (
            f"a timetable needs two days, to learn and to be tuned, and the first part of the trace has {hours:.1f} h"
        )
    return ""


KIND = PolicyKind(
    name="scheduled",
    title="Scheduled",
    tried=lambda _setting: facts().tried.target_ratios,
    build=Scheduled,
    says=lambda setting, value: (
        f"by hour of the {'week' if setting.weekly else 'day'}, {100 * value:g} % of slots planned busy"
    ),
    cannot=_cannot,
    learns=True,
)
