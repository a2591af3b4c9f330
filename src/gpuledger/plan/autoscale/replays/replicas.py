"""Which replicas are there: starting, ready, on demand or on spot?"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from gpuledger.plan.autoscale.setting import Setting


class Replicas:
    """Replicas that take a cold start to get ready; those on spot may be taken back, and are replaced at once.

    Replicas that are starting go first when there are too many, the newest of them before the others.
    """

    def __init__(self, setting: Setting, ready: int, random: np.random.Generator) -> None:
        self._cold_s, self._spot = setting.cold_start_s, setting.spot
        self._random = random
        self.total = self.ready = ready  # all that are paid for, those at work
        self.spot = self.ready_spot = self._spot_of(ready)
        self._starting: deque[tuple[float, int, int]] = deque()  # ready at, all, those on spot

    def _spot_of(self, total: int) -> int:
        return math.floor(self._spot.share_ratio * total + 0.5)

    @property
    def starting(self) -> int:
        """Those on their way."""
        return self.total - self.ready

    def get_ready(self, until_s: float) -> list[tuple[float, int]]:
        """Those that get ready before an instant: when, and how many."""
        made: list[tuple[float, int]] = []
        while self._starting and self._starting[0][0] < until_s:
            at, number, spot = self._starting.popleft()
            self.ready += number
            self.ready_spot += spot
            made.append((at, number))
        return made

    def taken_back(self, interval_s: float, now_s: float) -> int:
        """Ready spot replicas that are lost in an interval; others start in their place."""
        if not self.ready_spot or not self._spot.reclaims_per_day:
            return 0
        chance = -math.expm1(-self._spot.reclaims_per_day * interval_s / 86_400)
        lost = int(self._random.binomial(self.ready_spot, chance))
        if lost:
            self.ready -= lost
            self.ready_spot -= lost
            self._starting.append((now_s + self._cold_s, lost, lost))
        return lost

    def scale_to(self, desired: int, now_s: float) -> int:
        """Start or stop replicas; returns how many ready ones stop."""
        more = desired - self.total
        if not more:
            return 0
        if more > 0:
            spot = min(more, max(0, self._spot_of(desired) - self.spot))
            self._starting.append((now_s + self._cold_s, more, spot))
            self.total += more
            self.spot += spot
            return 0
        less = -more
        while less and self._starting:
            at, number, spot = self._starting.pop()
            gone = min(number, less)
            gone_spot = self._spot_to_go(gone, number, spot, desired)
            less -= gone
            self.total -= gone
            self.spot -= gone_spot
            if number > gone:
                self._starting.append((at, number - gone, spot - gone_spot))
        if less:
            gone_spot = self._spot_to_go(less, self.ready, self.ready_spot, desired)
            self.ready -= less
            self.total -= less
            self.ready_spot -= gone_spot
            self.spot -= gone_spot
        return less

    def _spot_to_go(self, gone: int, number: int, spot: int, desired: int) -> int:
        """How many of those that stop are on spot: what is beyond the share, and what the others cannot make up."""
        beyond = min(spot, gone, max(0, self.spot - self._spot_of(desired)))
        return max(beyond, gone - (number - spot))
