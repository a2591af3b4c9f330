"""What happens to rates too high to replay request by request? A flow through the replicas, interval by interval.

Requests are a flow: what exceeds the capacity waits, in order of arrival, and is served by the replicas of later
intervals. Where nothing is left over, requests still wait by chance: that share follows the closed form (Erlang C) for
the rate and the replicas of the interval. What a policy sees of the load varies by chance as a real one does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.policies import Policy, View
from gpuledger.plan.autoscale.replays.erlang import mean_wait_s, wait_tail
from gpuledger.plan.autoscale.replays.replicas import Replicas
from gpuledger.plan.autoscale.replays.run import Run
from gpuledger.plan.autoscale.setting import Setting

_NONE = 1e-9
_NEVER_S = 1e9


def replay_rates(trace: Trace, setting: Setting, policy: Policy, *, first_replicas: int, seed: int = 0) -> Run:
    """The run of a policy over the rates of a trace."""
    service, step = setting.service, setting.interval_s
    steps = max(1, round(trace.length_s / step))
    so_far = np.concatenate([[0.0], np.cumsum(trace.rates_per_s * trace.step_s)])
    arrived = np.diff(np.interp(step * np.arange(steps + 1), trace.step_s * np.arange(len(so_far)), so_far))
    random = np.random.default_rng(seed)
    replicas = Replicas(setting, first_replicas, random)
    # Busy slots of a Poisson flow vary by the root of their number, over as many intervals as a request takes.
    chance = (random.standard_normal(steps) * min(1.0, 2 * service.service_s / step) ** 0.5).tolist()
    kept: list[tuple[float, float, int, int, int]] = []
    waiting, per_slot, each = 0.0, step / service.service_s, service.slots
    for k, came in enumerate(arrived.tolist()):
        end, paid, spot = (k + 1) * step, replicas.total, replicas.spot
        open_slots = float(each * replicas.ready)
        for at, number in replicas.get_ready(end):
            open_slots += each * number * min(1.0, (end - at) / step)
        served = min(waiting + came, open_slots * per_slot)
        waiting += came - served
        kept.append((open_slots, waiting, paid, spot, replicas.ready))
        replicas.taken_back(step, end)
        busy = served / per_slot
        seen = max(0.0, busy + chance[k] * busy**0.5)
        over = max(0.0, seen - open_slots)
        view = View(end, replicas.ready, replicas.starting, seen - over, waiting + over)
        replicas.scale_to(setting.within(policy.desired(view)), end)
    slots, queue, *replicas_of = np.array(kept, dtype=float).T
    missed, waited = _waits(arrived, slots, np.append(0.0, queue), setting, trace.step_s)
    return Run(step, arrived, missed, waited, *replicas_of)


def _waits(
    arrived: np.ndarray, slots: np.ndarray, queue: np.ndarray, setting: Setting, step_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Requests of each interval that miss the goal, and the waits of all of them added up."""
    service, interval = setting.service, setting.interval_s
    first, last = _flow_waits(arrived, slots, queue, setting)
    low, high = np.minimum(first, last), np.maximum(first, last)
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(high > low, (high - setting.slo.wait_s) / (high - low), high > setting.slo.wait_s)
    missed = arrived * np.clip(over, 0.0, 1.0)
    waited = arrived * (first + last) / 2
    calm = (queue[:-1] <= _NONE) & (queue[1:] <= _NONE) & (arrived > 0) & (slots >= 1)
    if calm.any():
        pairs = np.stack([np.round(arrived[calm] * service.service_s / interval, 9), np.floor(slots[calm])])
        (offered, servers), place = np.unique(pairs, axis=1, return_inverse=True)
        whole = servers.astype(np.int64)
        tail = wait_tail(offered, whole, service.service_s, setting.slo.wait_s)
        mean = mean_wait_s(offered, whole, service.service_s, max(step_s, interval))
        missed[calm] = arrived[calm] * tail[place.reshape(-1)]
        waited[calm] = arrived[calm] * mean[place.reshape(-1)]
    return missed, waited


def _flow_waits(
    arrived: np.ndarray, slots: np.ndarray, queue: np.ndarray, setting: Setting
) -> tuple[np.ndarray, np.ndarray]:
    """How long the first and the last request of each interval wait: until as many have started as came before.

    What waits at the end is served by the replicas there then, or never.
    """
    edges = setting.interval_s * np.arange(len(queue))
    came = np.concatenate([[0.0], np.cumsum(arrived)])
    started, at = np.maximum.accumulate(came - queue), edges
    if queue[-1] > _NONE:
        rate = slots[-1] / setting.service.service_s
        at = np.append(edges, edges[-1] + (queue[-1] / rate if rate else _NEVER_S))
        started = np.append(started, came[-1])

    def wait_s(side: Literal["left", "right"], numbers: np.ndarray, since: np.ndarray) -> np.ndarray:
        """From an instant to the one at which this number has started: the first such instant, or the last one."""
        found = np.searchsorted(started, numbers + (_NONE if side == "right" else -_NONE), side)
        found = np.clip(found, 1, len(started) - 1)
        rise = np.maximum(started[found] - started[found - 1], _NONE)
        share = np.clip((numbers - started[found - 1]) / rise, 0.0, 1.0)
        return np.maximum(at[found - 1] + share * (at[found] - at[found - 1]) - since, 0.0)

    first, last = wait_s("right", came[:-1], edges[:-1]), wait_s("left", came[1:], edges[1:])
    calm = (queue[:-1] <= _NONE) & (queue[1:] <= _NONE)
    return np.where(calm, 0.0, first), np.where(queue[1:] <= _NONE, 0.0, last)
