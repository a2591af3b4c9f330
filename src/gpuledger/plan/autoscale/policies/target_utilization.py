"""Target utilization: as the HorizontalPodAutoscaler does, keep the share of busy slots near a target.

The metric cannot show more than all slots busy, so a queue alone does not make it scale faster.
"""

from __future__ import annotations

from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import PolicyKind, View
from gpuledger.plan.autoscale.policies.hpa import Hpa
from gpuledger.plan.autoscale.setting import Setting


class TargetUtilization:
    """ceil(replicas x utilization / target), with tolerance and stabilization; at least one replica."""

    def __init__(self, setting: Setting, target_ratio: float) -> None:
        self._busy_per_replica = setting.service.slots * target_ratio
        self._hpa = Hpa(setting)

    def desired(self, view: View) -> int:
        """Replicas that bring the utilization to the target."""
        return max(1, self._hpa.replicas(view, view.busy_slots / self._busy_per_replica))


KIND = PolicyKind(
    name="target-utilization",
    title="Target utilization",
    tried=lambda _setting: facts().tried.target_ratios,
    build=TargetUtilization,
    says=lambda setting, value: f"{100 * value:g} % of slots busy, {value * setting.service.slots:,.3g} per replica",
)
