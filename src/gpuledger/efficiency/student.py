"""How far may a mean stray by chance? Student's t for whole degrees of freedom."""

from __future__ import annotations

import math
from functools import lru_cache


def two_sided_p(t: float, freedom: int) -> float:
    """Probability of |T| >= |t| (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    if freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom == 1:
        inside = 2 * angle / math.pi
    elif freedom % 2:
        term = total = cosine
        for k in range(2, freedom - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = 2 / math.pi * (angle + sine * total)
    else:
        term = total = 1.0
        for k in range(1, freedom - 2, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = sine * total
    return max(0.0, 1.0 - inside)


@lru_cache(maxsize=256)
def critical(freedom: int, p: float = 0.05) -> float:
    """The |t| that chance exceeds with probability p; accurate for p down to about 1e-9."""
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > p and high < 1e9:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, freedom) > p else (low, middle)
    return (low + high) / 2
