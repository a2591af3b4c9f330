"""How often should a job save its state, and how long does it take with interruptions?

Reclaims come at a constant rate r per hour of running. A segment of t hours of work and a checkpoint of c hours is
lost whole when a reclaim falls into it; then the job waits d hours for capacity and restarts in s hours, which may be
interrupted too. The expected time of a segment is (1/r + d) e^(r s) (e^(r (t + c)) - 1). The interval that makes it
shortest per hour of work solves r t = 1 + W(-e^(-r c - 1)), W being Lambert's function. Young's sqrt(2 c / r) and
Daly's series come close to it while c is small against 1/r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TINY = 1e-8
MOST_EXPONENT = 600.0  # e^600 hours is longer than anything that can be planned


@dataclass(frozen=True)
class Intervals:
    """Hours of work between checkpoints by three formulas."""

    young_h: float
    daly_h: float
    exact_h: float


def young_h(checkpoint_h: float, per_h: float) -> float:
    """Young's first-order interval, sqrt(2 c / r)."""
    return math.sqrt(2 * checkpoint_h / per_h) if per_h > 0 else math.inf


def daly_h(checkpoint_h: float, per_h: float) -> float:
    """Daly's higher-order interval; the mean time between reclaims where a checkpoint takes twice as long as that."""
    if per_h <= 0:
        return math.inf
    mean = 1 / per_h
    if checkpoint_h >= 2 * mean:
        return mean
    small = math.sqrt(checkpoint_h / (2 * mean))
    return math.sqrt(2 * checkpoint_h * mean) * (1 + small / 3 + small * small / 9) - checkpoint_h


def exact_h(checkpoint_h: float, per_h: float) -> float:
    """The interval with the least expected time: (1 + W(-e^(-r c - 1))) / r."""
    return one_plus_lambert(per_h * checkpoint_h) / per_h if per_h > 0 else math.inf


def one_plus_lambert(x: float) -> float:
    """1 + W(-e^(-x - 1)) on the main branch: the y in [0, 1) with -y - ln(1 - y) = x."""
    if x <= 0:
        return 0.0
    root = math.sqrt(2 * x)
    if x < TINY:
        return root - root * root / 3
    low, high = 0.0, 1.0
    y = min(root, 0.5 + root / (2 + 2 * root))
    for _ in range(80):
        off = -y - math.log1p(-y) - x
        low, high = (y, high) if off < 0 else (low, y)
        step = y - off * (1 - y) / y
        new = step if low < step < high else (low + high) / 2
        if abs(new - y) <= 1e-15:
            break
        y = new
    return y


def intervals(checkpoint_h: float, per_h: float) -> Intervals:
    """The interval by all three formulas."""
    return Intervals(young_h(checkpoint_h, per_h), daly_h(checkpoint_h, per_h), exact_h(checkpoint_h, per_h))


def segment_h(work_h: float, checkpoint_h: float, per_h: float, restart_h: float = 0.0, wait_h: float = 0.0) -> float:
    """Expected hours of one segment with its checkpoint, waits and restarts included."""
    if per_h <= 0:
        return work_h + checkpoint_h
    power = per_h * (work_h + checkpoint_h)
    if power + per_h * restart_h > MOST_EXPONENT:
        return math.inf
    return (1 / per_h + wait_h) * math.exp(per_h * restart_h) * math.expm1(power)


def job_h(
    work_h: float,
    interval_h: float,
    checkpoint_h: float,
    per_h: float,
    restart_h: float = 0.0,
    wait_h: float = 0.0,
) -> float:
    """Expected hours of a whole job with a checkpoint after every interval but the last, and its first start."""
    if work_h <= 0:
        return 0.0
    first = restart_h
    if per_h > 0:
        first = (1 / per_h + wait_h) * math.expm1(per_h * restart_h) if per_h * restart_h < MOST_EXPONENT else math.inf
    whole = max(math.ceil(work_h / interval_h - 1e-9) - 1, 0) if math.isfinite(interval_h) else 0
    rest = work_h - whole * interval_h if whole else work_h
    saved = whole * segment_h(interval_h, checkpoint_h, per_h, restart_h, wait_h) if whole else 0.0
    return first + saved + segment_h(rest, 0.0, per_h, restart_h, wait_h)


def without_checkpoints_h(work_h: float, per_h: float, restart_h: float = 0.0, wait_h: float = 0.0) -> float:
    """Expected hours of a job that starts over after every reclaim: (e^(r T) - 1) / r without waits."""
    return job_h(work_h, math.inf, 0.0, per_h, restart_h, wait_h)


def billed_per_work_h(interval_h: float, checkpoint_h: float, per_h: float, restart_h: float) -> float:
    """Hours of instance time paid per hour of work; waiting for capacity is not paid."""
    if not math.isfinite(interval_h):
        return 1.0
    return segment_h(interval_h, checkpoint_h, per_h, restart_h) / interval_h
