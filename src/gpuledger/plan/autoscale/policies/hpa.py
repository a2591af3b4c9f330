"""How does Kubernetes turn a metric into replicas? The HorizontalPodAutoscaler's rules, which KEDA uses too.

desired = ceil(metric / target); nothing changes within the tolerance; the number falls only to the largest one wanted
during the stabilization window, and rises at most by the larger of a percentage and a number of pods per sync.
"""

from __future__ import annotations

import math
from collections import deque

from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import View
from gpuledger.plan.autoscale.setting import Setting


class Hpa:
    """The controller's memory: what was wanted during the stabilization window."""

    def __init__(self, setting: Setting) -> None:
        rules = facts().kubernetes
        self._tolerance = rules.tolerance_ratio
        self._window_s = setting.scale_down_delay_s
        self._wanted: deque[tuple[float, int]] = deque()  # falling numbers, oldest first
        syncs = max(1, int(setting.interval_s // rules.sync_s))
        self._growth = (1 + rules.scale_up_percent / 100) ** min(syncs, 16)
        self._pods = rules.scale_up_pods * syncs

    def replicas(self, view: View, wanted: float) -> int:
        """Replicas for a metric that would be on target with `wanted` of them."""
        current = view.replicas
        desired = math.ceil(wanted - 1e-9)
        if current and abs(wanted / current - 1) <= self._tolerance:
            desired = current
        while self._wanted and self._wanted[-1][1] <= desired:
            self._wanted.pop()
        self._wanted.append((view.now_s, desired))
        while self._wanted[0][0] <= view.now_s - self._window_s and len(self._wanted) > 1:
            self._wanted.popleft()
        if desired > current:
            return min(desired, max(math.ceil(current * self._growth), current + self._pods))
        return min(current, self._wanted[0][1])


class ScaleToZero:
    """KEDA's part: the last replica goes after the cooldown without a request, and comes back with the first one."""

    def __init__(self, setting: Setting) -> None:
        self._allowed = setting.min_replicas == 0
        self._cooldown_s = setting.cooldown_s
        self._active_s = 0.0

    def replicas(self, view: View, desired: int) -> int:
        """The desired replicas, at least one while there are requests or the cooldown runs."""
        if not self._allowed:
            return max(1, desired)
        if view.in_system > 0:
            self._active_s = view.now_s
        return max(1, desired) if view.now_s - self._active_s < self._cooldown_s or view.in_system > 0 else 0
