"""Static peak: always as many replicas as the busiest hours of the first part need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.plan.autoscale.policies import PolicyKind, View
from gpuledger.plan.autoscale.replays.erlang import least_servers
from gpuledger.plan.autoscale.setting import Setting
from gpuledger.units import count

_AROUND = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class StaticPeak:
    """The same number at all times."""

    replicas: int

    def desired(self, _view: View) -> int:
        """That number."""
        return self.replicas


def peak_replicas(setting: Setting) -> int:
    """What the busiest step of the first part needs."""
    s = setting.service
    offered = np.array([setting.learned.rates_per_s.max() * s.service_s])
    least = least_servers(offered, s.service_s, setting.slo.wait_s, setting.slo.missed_ratio, s.slots)
    return max(1, int(least[0]))


def tried(setting: Setting) -> Sequence[float]:
    """Around what the busiest step needs."""
    peak = peak_replicas(setting)
    near = {max(1, round(peak * share)) for share in _AROUND} | {peak, peak + 1, max(1, peak - 1)}
    return sorted({setting.within(n) for n in near})


KIND = PolicyKind(
    name="static-peak",
    title="Static peak",
    tried=tried,
    build=lambda _setting, value: StaticPeak(int(value)),
    says=lambda _setting, value: f"{count(int(value), 'replica')} at all times",
    first=int,
)
