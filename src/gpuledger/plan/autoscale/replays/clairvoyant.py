"""What would a planner take that knows the demand in advance and starts replicas at once?"""

from __future__ import annotations

import numpy as np

from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.replays.erlang import least_servers
from gpuledger.plan.autoscale.setting import Setting


def needed_replicas(trace: Trace, setting: Setting) -> np.ndarray:
    """For each step of the trace the fewest replicas that meet the goal there (Erlang C), within the limits."""
    s, slo = setting.service, setting.slo
    rates, place = np.unique(trace.rates_per_s, return_inverse=True)
    least = least_servers(rates * s.service_s, s.service_s, slo.wait_s, slo.missed_ratio, s.slots)
    most = np.inf if setting.max_replicas is None else setting.max_replicas
    return np.clip(least, setting.min_replicas, most)[place.reshape(-1)]


def by_interval(needed: np.ndarray, trace: Trace, interval_s: float) -> np.ndarray:
    """The same for each interval of a replay."""
    steps = max(1, round(trace.length_s / interval_s))
    place = (np.arange(steps) * interval_s / trace.step_s + 1e-9).astype(np.int64)
    return needed[np.minimum(place, len(needed) - 1)]


def busy_replica_h(trace: Trace, setting: Setting, since_s: float) -> float:
    """Replica-hours of work alone: all slots busy at all times. Nothing that serves every request can take fewer."""
    first = round(since_s / trace.step_s)
    work_s = trace.rates_per_s[first:].sum() * trace.step_s * setting.service.service_s
    return float(work_s / setting.service.slots / 3600)
