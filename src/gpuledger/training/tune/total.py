"""How much faster is the winner than the start, both measured once more in turns?

Gains of single steps are not simply multiplied. The pairs are looked at after a few numbers of them, and no more are
measured once the interval is narrow: that depends on their spread, not on how large the gain looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuledger.training.tune.duel import Window, gain_of

PAIRS = (5, 8, 12, 16)
# Fewer give no interval worth telling.
LEAST_PAIRS = 3
# Both ends of the interval this near to the middle.
NARROW_RATIO = 0.05


def in_turns(
    old: Window, new: Window, p: float, late: Callable[[], bool], broken: type[Exception]
) -> tuple[list[float], list[float], Exception | None]:
    """Speeds of both, as many of the one as of the other; and what broke it off, if anything did."""
    olds, news = list[float](), list[float]()
    failed: Exception | None = None
    while not _enough(olds, news, p) and not (len(olds) >= LEAST_PAIRS and late()):
        pair = [(old, olds), (new, news)]
        try:
            for window, into in pair if len(olds) % 2 == 0 else reversed(pair):
                into.append(window())
        except broken as error:
            failed = error
            break
    both = min(len(olds), len(news))
    return olds[:both], news[:both], failed


def _enough(olds: list[float], news: list[float], p: float) -> bool:
    if len(olds) not in PAIRS:
        return False
    gain = gain_of(olds, news, p)
    narrow = gain.low is not None and math.log(gain.ratio / gain.low) <= math.log1p(NARROW_RATIO)
    return narrow or len(olds) == PAIRS[-1]
