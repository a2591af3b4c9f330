"""How much of its idle time was a GPU left alone, rather than waiting for the next batch?"""

from __future__ import annotations

from typing import Literal

from gpuledger.advice.case import Case
from gpuledger.advice.gains import Range, gain_of


def parked_ratio(case: Case, bucket: Literal["idle", "idle_held"]) -> float:
    """Idle time over all observed time, without the waits of a starved loop: they end before any timeout does."""
    if bucket == "idle":
        return max(0.0, case.idle_ratio - case.idle_waits_ratio)
    return max(0.0, case.idle_held_ratio - case.idle_held_waits_ratio)


def parked_gain(case: Case, bucket: Literal["idle", "idle_held"], rule: str) -> Range | None:
    """The rule's own range over the parked part of the bucket; None where that is all of it."""
    resting = case.idle_ratio if bucket == "idle" else case.idle_held_ratio
    parked, whole = parked_ratio(case, bucket), gain_of(rule).fraction(case.bucket_shares)
    if parked == resting or whole is None:
        return None
    return Range.of(*(float(part) * parked / resting for part in (whole.low, whole.middle, whole.high)))
