"""When does a measurement become an alert, and when is the alert over?

    quiet --beyond the limit--> pending --for long enough--> firing --recovered for long enough--> quiet

Between `clear` and `fire` nothing changes: a value that moves within that band neither fires nor ends an alert. An
unknown value changes nothing either. All of it follows from measurements and what was held before, so a watcher that is
killed and started again continues as if nothing had happened.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from gpuledger.live.alerts.limits import Limits
from gpuledger.live.alerts.rule import Reading
from gpuledger.units import Unknown

Change = Literal["firing", "resolved"]
# Why an alert is over: its value recovered, what it is about is not seen any more, its rule was turned off.
Ending = Literal["recovered", "gone", "rule off"]


class Phase(StrEnum):
    """Where an alert stands."""

    QUIET = "quiet"
    PENDING = "pending"
    FIRING = "firing"


class Held(msgspec.Struct, frozen=True):
    """What is kept of one key. `incident` counts its alerts; `since_ms`: since when it is bad, `good_ms`: recovered."""

    phase: Phase = Phase.QUIET
    incident: int = 0
    since_ms: int = 0
    seen_ms: int = 0
    good_ms: int | None = None


QUIET = Held()


def step(held: Held, reading: Reading, limits: Limits) -> tuple[Held, Change | None]:
    """What is held after a measurement, and what changed. An older measurement than the last changes nothing."""
    if isinstance(reading.value, Unknown) or reading.at_ms < held.seen_ms:
        return held, None
    at = reading.at_ms
    if held.phase is Phase.FIRING:
        return _while_firing(held, reading.value, at, limits)
    if reading.value < limits.fire:
        return Held(incident=held.incident), None
    began = held.since_ms if held.phase is Phase.PENDING else at
    since = min(began, at if reading.since_ms is None else reading.since_ms)
    if at - since < limits.for_ms:
        return Held(Phase.PENDING, held.incident, since, at), None
    return Held(Phase.FIRING, held.incident + 1, since, at), "firing"


def _while_firing(
    held: Held, value: float, at: int, limits: Limits, *, absent: bool = False
) -> tuple[Held, Change | None]:
    good = absent or (value <= limits.clear and value < limits.fire)
    if not good:
        # Within the band a recovery that has begun starts over: it must hold without a break.
        return msgspec.structs.replace(held, seen_ms=at, good_ms=None), None
    since_good = at if held.good_ms is None else held.good_ms
    if at - since_good < limits.clear_for_ms:
        return msgspec.structs.replace(held, seen_ms=at, good_ms=since_good), None
    return Held(incident=held.incident), "resolved"


def unseen(held: Held, at_ms: int, limits: Limits) -> tuple[Held, Change | None]:
    """What is held of a key that a look did not report: what was pending is dropped, an alert ends as if recovered.

    A job that ended, an owner without GPUs and a GPU that was not seen for long are not reported any more.
    """
    if held.phase is Phase.FIRING:
        return _while_firing(held, limits.clear, max(at_ms, held.seen_ms), limits, absent=True)
    return Held(incident=held.incident), None


def turned_off(held: Held) -> tuple[Held, Change | None]:
    """What is held of a key whose rule was turned off."""
    change: Change | None = "resolved" if held.phase is Phase.FIRING else None
    return Held(incident=held.incident), change
