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
        self.ready_spot = self._spot_of(ready)
        self.ready_on_demand = ready - self.ready_spot
        self._starting: deque[tuple[float, int, int]] = deque()  # ready at, on demand, spot
        self.starting_on_demand = self.starting_spot = 0

    def _spot_of(self, total: int) -> int:
        return math.floor(self._spot.share_ratio * total + 0.5)

    @property
    def ready(self) -> int:
        """Those at work."""
        return self.ready_on_demand + self.ready_spot

    @property
    def starting(self) -> int:
        """Those on their way."""
        return self.starting_on_demand + self.starting_spot

    @property
    def spot(self) -> int:
        """Those on spot, ready or not."""
        return self.ready_spot + self.starting_spot

    @property
    def total(self) -> int:
        """All that are paid for."""
        return self.ready + self.starting

    def get_ready(self, until_s: float) -> list[tuple[float, int]]:
        """Those that get ready before an instant: when, and how many."""
        made = []
        while self._starting and self._starting[0][0] < until_s:
            at, on_demand, spot = self._starting.popleft()
            self.starting_on_demand -= on_demand
            self.starting_spot -= spot
            self.ready_on_demand += on_demand
            self.ready_spot += spot
            made.append((at, on_demand + spot))
        return made

    def taken_back(self, interval_s: float, now_s: float) -> int:
        """Ready spot replicas that are lost in an interval; others start in their place."""
        if not self.ready_spot or not self._spot.reclaims_per_day:
            return 0
        chance = -math.expm1(-self._spot.reclaims_per_day * interval_s / 86_400)
        lost = int(self._random.binomial(self.ready_spot, chance))
        self.ready_spot -= lost
        if lost:
            self._start(now_s, 0, lost)
        return lost

    def scale_to(self, desired: int, now_s: float) -> int:
        """Start or stop replicas; returns how many ready ones stop."""
        more = desired - self.total
        if more > 0:
            spot = min(more, max(0, self._spot_of(desired) - self.spot))
            self._start(now_s, more - spot, spot)
            return 0
        less = -more
        while less and self._starting:
            at, on_demand, spot = self._starting.pop()
            gone_spot = min(spot, less, max(0, self.spot - self._spot_of(desired)))
            gone = min(on_demand, less - gone_spot)
            gone_spot = min(spot, less - gone)
            self.starting_spot -= gone_spot
            self.starting_on_demand -= gone
            less -= gone + gone_spot
            if on_demand + spot > gone + gone_spot:
                self._starting.append((at, on_demand - gone, spot - gone_spot))
        if less:
            spot = min(self.ready_spot, less, max(0, self.ready_spot - self._spot_of(desired)))
            on_demand = min(self.ready_on_demand, less - spot)
            self.ready_on_demand -= on_demand
            self.ready_spot -= less - on_demand
        return less

    def _start(self, now_s: float, on_demand: int, spot: int) -> None:
        self._starting.append((now_s + self._cold_s, on_demand, spot))
        self.starting_on_demand += on_demand
        self.starting_spot += spot
