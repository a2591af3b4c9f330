"""How is a timetable of replicas written as cron triggers of KEDA?"""

from __future__ import annotations

import math
from typing import Any

from gpuledger.plan.autoscale.policies.scheduled import Timetable

_DAY_MIN = 1440


def cron_triggers(table: Timetable, cold_start_s: float, min_replicas: int) -> list[dict[str, Any]]:
    """A trigger for each stretch of hours with the same replicas, which starts earlier by the cold start.

    KEDA takes the largest of the triggers in force, so that an early start never lowers the number. Cron counts
    Sunday as 0; a stretch with no more than the minimum needs no trigger.
    """
    weekly = len(table.replicas) == 168
    early = math.ceil(cold_start_s / 60)
    return [
        {
            "type": "cron",
            "metadata": {
                "timezone": "Etc/UTC",
                "start": _cron(first * 60 - early, weekly),
                "end": _cron(last * 60, weekly),
                "desiredReplicas": str(replicas),
            },
        }
        for first, last, replicas in stretches(table.replicas)
        if replicas > min_replicas
    ]


def stretches(replicas: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """First hour, hour after the last, and replicas of each stretch of equal hours."""
    out: list[tuple[int, int, int]] = []
    for hour, number in enumerate(replicas):
        if out and out[-1][2] == number and hour % 24:  # a trigger lasts a day at most
            out[-1] = (out[-1][0], hour + 1, number)
        else:
            out.append((hour, hour + 1, number))
    return out


def _cron(minute: int, weekly: bool) -> str:
    days = minute // _DAY_MIN
    within = minute % _DAY_MIN
    day = str((days % 7 + 1) % 7) if weekly else "*"
    return f"{within % 60} {within // 60} * * {day}"
