"""When may a loop be left alone for a while, so that watching it stays cheap?

Where watching every step would show, a few steps in a row are watched, one of them timed, and then many are only
counted. How many follows from what the meter's own work took and from how long a step is, both as measured here.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable

# A loop is watched without a break while that costs less than this of it; then, in turns, no more than the second.
FROM_RATIO = 0.0025
TURNS_RATIO = 0.001
ROW_STEPS = 4
TIMED_IN_ROW = 1  # not the first: it is where the hooks come back and the loss is looked at
FIRST_STEPS = 32
LEAST_TIMED = 10
# What appears later, a wait or a longer batch, is to be seen soon.
MOST_STEPS = 256
MOST_MS = 2000
_RECENT = 15
_GOLDEN = (math.sqrt(5) - 1) / 2


class Own:
    """The host's time that goes to the meter: whoever is called from outside adds what it took.

    What torch itself takes longer because hooks are there is not in it: nothing of ours runs then.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds = 0.0


class Turns:
    """Decides how many steps are left alone, by what watching them took."""

    def __init__(self) -> None:
        self._own_s: dict[bool, deque[float]] = {timed: deque(maxlen=_RECENT) for timed in (False, True)}
        self._taken = 0
        self._alone_ns = self._alone_steps = 0

    def took(self, own_s: float, *, timed: bool) -> None:
        """What the meter itself took in a step that was watched."""
        self._own_s[timed].append(own_s)

    @property
    def known(self) -> bool:
        """Whether steps of both kinds were seen."""
        return all(self._own_s.values())

    @property
    def timing_s(self) -> float:
        """What timing a step takes more than watching it; 0 until both are known."""
        return self._middle(timed=True) - self._middle(timed=False) if self.known else 0.0

    def _middle(self, *, timed: bool) -> float:
        return statistics.median(self._own_s[timed])

    def left_alone(self, ns: int, steps: int) -> None:
        """So many steps went by unwatched in this time."""
        self._alone_ns += ns
        self._alone_steps += steps

    def unslowed_ratio(self, timed_s: float) -> float:
        """What of a timed step is the loop's own: as long as a step that is left alone, but never so short that more
        than the meter's own time is taken off. 1 until enough were left alone to tell.
        """
        if self._alone_steps < FIRST_STEPS or not self.known or timed_s <= 0:
            return 1.0
        alone_s = self._alone_ns / self._alone_steps / 1e9
        return min(1.0, max(alone_s, timed_s - self._middle(timed=True)) / timed_s)

    def rest_steps(self, step_s: float) -> int:
        """How many steps may go by unwatched after a row of watched ones; none while watching all is cheap."""
        if not self.known:
            return 0
        plain_s, timed_s = self._middle(timed=False), self._middle(timed=True)
        if plain_s <= FROM_RATIO * step_s:
            return 0
        row_s = (ROW_STEPS - 1) * plain_s + timed_s
        # The middle of a half and three halves of it, so that the most is never passed.
        middle = min(row_s / (TURNS_RATIO * step_s) - ROW_STEPS if step_s > 0 else math.inf, MOST_STEPS / 1.5)
        # Never the same length twice: what a loop does each hundredth step is else always met, or never.
        self._taken += 1
        return max(1, int(middle * (0.5 + self._taken * _GOLDEN % 1)))
