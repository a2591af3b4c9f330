"""What happens to each request? A replay in order of arrival through replicas that come and go.

One queue for all; a request takes the slot that is free first. The replicas decide nothing between intervals, so
within one the requests are served from a heap of the instants at which slots get free. A replica that stops takes the
slots that are free first, and is paid until the last of their requests is done.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from gpuledger.plan.autoscale.demand.trace import Arrivals
from gpuledger.plan.autoscale.policies import Policy, View
from gpuledger.plan.autoscale.replays.replicas import Replicas
from gpuledger.plan.autoscale.replays.run import Run
from gpuledger.plan.autoscale.setting import Setting


def replay_requests(
    arrivals: Arrivals, setting: Setting, policy: Policy, length_s: float, *, first_replicas: int, seed: int = 0
) -> tuple[Run, np.ndarray]:
    """The run, and the wait of every request; infinite for one that no replica ever serves."""
    queue = _Queue(arrivals, setting.service.slots, first_replicas)
    replicas = Replicas(setting, first_replicas, np.random.default_rng(seed))
    step, steps = setting.interval_s, max(1, round(length_s / setting.interval_s))
    arrived_by = np.searchsorted(arrivals.at_s, step * np.arange(1, steps + 1)).tolist()
    paid, spot, ready = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        start, end = k * step, (k + 1) * step
        paid[k] += replicas.total
        spot[k] = replicas.spot
        busy = queue.busy_s(start, end)
        for at, number in replicas.get_ready(end):
            queue.open(max(at, start), number)
        busy += queue.serve(end)
        ready[k] = replicas.ready
        if lost := replicas.taken_back(step, end):
            queue.close(lost, end)
        view = View(end, replicas.ready, replicas.starting, busy / step, arrived_by[k] - queue.head)
        stopped = replicas.scale_to(setting.within(policy.desired(view)), end)
        if stopped:
            paid[k] += queue.close(stopped, end) / step
    queue.serve(np.inf)
    waits = queue.waits()
    return _run(arrivals, waits, setting, steps, paid, spot, ready), waits


class _Queue:
    """The requests in order, and when each slot gets free."""

    def __init__(self, arrivals: Arrivals, slots: int, replicas: int) -> None:
        self._at, self._takes = arrivals.at_s.tolist(), arrivals.service_s.tolist()
        self._arrivals, self._slots = arrivals, slots
        self._free = [0.0] * (slots * replicas)
        heapify(self._free)
        self._starts: list[float] = []
        self.head = 0

    def busy_s(self, start: float, end: float) -> float:
        """Slot-seconds in an interval of requests that started before it."""
        return sum(min(f, end) - start for f in self._free if f > start)

    def open(self, at: float, replicas: int) -> None:
        """Slots of replicas that get ready."""
        for _ in range(self._slots * replicas):
            heappush(self._free, at)

    def close(self, replicas: int, now: float) -> float:
        """Slots of replicas that stop; the seconds they are paid for until their requests are done."""
        until = 0.0
        for _ in range(replicas):
            last = now
            for _ in range(self._slots):
                last = max(last, heappop(self._free))
            until += last - now
        return until

    def serve(self, end: float) -> float:
        """Start requests up to an instant; slot-seconds they take before it."""
        at, takes, free, starts, head, busy = self._at, self._takes, self._free, self._starts, self.head, 0.0
        if free:
            for head in range(self.head, len(at)):
                start, first = at[head], free[0]
                if first > start:  # noqa: PLR1730  (a call for each request takes longer)
                    start = first
                if start >= end:
                    break
                done = start + takes[head]
                heapreplace(free, done)
                starts.append(start)
                busy += (done if done < end else end) - start  # noqa: FURB136
            else:
                head = len(at)
        self.head = head
        return busy

    def waits(self) -> np.ndarray:
        """The wait of every request."""
        waits = np.full(len(self._at), np.inf)
        waits[: len(self._starts)] = np.array(self._starts) - self._arrivals.at_s[: len(self._starts)]
        return waits


def _run(
    arrivals: Arrivals, waits: np.ndarray, setting: Setting, steps: int, paid: np.ndarray, spot: np.ndarray,
    ready: np.ndarray,
) -> Run:  # fmt: skip
    """Waits added up by the interval a request arrived in; one that is never served waits to the end of the trace."""
    step = setting.interval_s
    place = np.minimum((arrivals.at_s / step).astype(np.int64), steps - 1)
    lasting = np.where(np.isfinite(waits), waits, steps * step - arrivals.at_s)
    missed = waits > setting.slo.wait_s + 1e-9
    return Run(
        interval_s=step,
        arrived=np.bincount(place, minlength=steps).astype(float),
        missed=np.bincount(place, missed, minlength=steps),
        wait_s=np.bincount(place, lasting, minlength=steps),
        paid=paid,
        spot=spot,
        ready=ready,
    )
