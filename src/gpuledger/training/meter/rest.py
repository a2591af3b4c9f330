"""When may a loop be left alone for a while, so that watching it stays cheap?

A loop is in one of two states. `Watching`: every step is looked at and some are timed. `Resting`: steps are only
counted. Where watching every step would show, a few steps in a row are watched, one of them timed, and then many are
left alone. How many follows from the meter's own time and from the length of a step, both as measured.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gpuledger.units import MS_PER_HOUR

# A loop is watched without a break while that costs less than the first ratio; with rests, at most the second.
FROM_RATIO = 0.0025
RESTS_RATIO = 0.001
ROW_STEPS = 4
TIMED_IN_ROW = 1  # not the first: that is where the hooks come back and the loss is looked at
FIRST_STEPS = 32
LEAST_TIMED = 10
# A wait or a longer batch that appears later must be seen soon.
MOST_STEPS = 256
MOST_MS = 2000
NS_PER_MS = 1_000_000
_RECENT = 15
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(slots=True)
class Watching:
    """Every step is looked at. `row_at`: the first step of a row between two rests; None without a break."""

    decide_at: int
    row_at: int | None = None

    def times(self, index: int, first: int, every: int) -> bool:
        """Whether this step is timed: one of each row, else every `every`-th from the first on."""
        if self.row_at is not None:
            return index == self.row_at + TIMED_IN_ROW
        return index >= first and (index - first) % every == 0


@dataclass(slots=True)
class Resting:
    """Steps are only counted, until `left` are done or the clock shows `until_ns`."""

    left: int
    begin_ms: int
    until_ns: int
    end_ns: int = 0  # of the last step; 0 before the first
    alike: int = 0  # steps of the same size that are not in the totals yet

    @classmethod
    def begin(cls, steps: int, now_ns: int, most_ms: int) -> Resting:
        """Not into the next hour: then all steps belong to this one."""
        now_ms = now_ns // NS_PER_MS
        hour_ms = (now_ms // MS_PER_HOUR + 1) * MS_PER_HOUR
        return cls(steps, now_ms, min(now_ms + most_ms, hour_ms) * NS_PER_MS)

    def goes_on(self, now_ns: int) -> bool:
        """Whether the next step is left alone too."""
        return self.left > 0 and now_ns < self.until_ns

    def count(self, now_ns: int) -> None:
        """A step is over."""
        self.left, self.alike, self.end_ns = self.left - 1, self.alike + 1, now_ns


class Own:
    """The host's time that goes to the meter: each entry point adds what it took.

    Time that torch itself takes longer because hooks are present is not included.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds = 0.0


class Rests:
    """Decides how many steps are left alone, by what watching them took."""

    def __init__(self) -> None:
        self._own_s: dict[bool, deque[float]] = {timed: deque(maxlen=_RECENT) for timed in (False, True)}
        self.most_ms, self._taken = MOST_MS, 0
        self._alone_ns = self._alone_steps = 0

    def took(self, own_s: float, *, timed: bool) -> None:
        """The meter's own time in a step that was watched."""
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
        """These steps went by unwatched in this time."""
        self._alone_ns += ns
        self._alone_steps += steps

    def unslowed_ratio(self, timed_s: float) -> float:
        """The loop's own share of a timed step: as long as a step that is left alone, but at most the meter's own time
        is taken off. 1 until enough steps were left alone.
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
        # The middle of a half and three halves of it, so that the most is never exceeded.
        middle = min(row_s / (RESTS_RATIO * step_s) - ROW_STEPS if step_s > 0 else math.inf, MOST_STEPS / 1.5)
        # Never the same length twice: else what a loop does every hundredth step is always met, or never.
        self._taken += 1
        return max(1, int(middle * (0.5 + self._taken * _GOLDEN % 1)))
