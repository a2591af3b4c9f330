"""Which points does no other point beat in every respect, and which one beats each of the others?

Lower is better. A figure that is None is unknown. A point is compared on the figures that are known of it: only a point
that has all of those can beat it, so an unknown figure never beats a known one. The relation is a strict order, so
every beaten point is beaten by one on the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

Figure = Decimal | float | int | None
Point = Sequence[Figure]


def dominates(a: Point, b: Point) -> bool:
    """Whether `a` is at least as good as `b` in all that is known of `b`, and better in something."""
    better = False
    for mine, its in zip(a, b, strict=True):
        if its is None:
            continue
        if mine is None or mine > its:
            return False
        better = better or mine < its
    return better


def beaten_by(points: Sequence[Point]) -> list[int | None]:
    """For each point the first one on the front that beats it; None for those on the front."""
    front = [i for i, b in enumerate(points) if not any(dominates(a, b) for a in points)]
    on_front = set(front)
    return [None if i in on_front else next(f for f in front if dominates(points[f], b)) for i, b in enumerate(points)]
