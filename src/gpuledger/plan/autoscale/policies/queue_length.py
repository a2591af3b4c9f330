"""Queue length: as KEDA does, one replica for a number of requests that are served or wait."""

from __future__ import annotations

from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import PolicyKind, View
from gpuledger.plan.autoscale.policies.hpa import Hpa, ScaleToZero
from gpuledger.plan.autoscale.setting import Setting


class QueueLength:
    """ceil(requests / threshold), through the autoscaler's rules; to zero and back where that is allowed."""

    def __init__(self, setting: Setting, threshold: float) -> None:
        self._threshold = threshold
        self._hpa, self._zero = Hpa(setting), ScaleToZero(setting)

    def desired(self, view: View) -> int:
        """Replicas that bring the requests per replica to the threshold."""
        return self._zero.replicas(view, self._hpa.replicas(view, view.in_system / self._threshold))


KIND = PolicyKind(
    name="queue-length",
    title="Queue length",
    tried=lambda setting: [ratio * setting.service.slots for ratio in facts().tried.fill_ratios],
    build=QueueLength,
    says=lambda _setting, value: f"{value:,.3g} running or waiting requests per replica",
)
