"""Which replay is used, and what does it show for a policy? Request by request where there are not too many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpuledger.plan.autoscale.demand.trace import Arrivals, Trace, arrivals_of
from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.policies import PolicyKind
from gpuledger.plan.autoscale.replays.by_request import replay_requests
from gpuledger.plan.autoscale.replays.by_step import replay_rates
from gpuledger.plan.autoscale.replays.clairvoyant import needed_replicas
from gpuledger.plan.autoscale.replays.run import Run, Totals
from gpuledger.plan.autoscale.setting import Setting

MOST_SYNCS = 4


def interval_for(length_s: float) -> float:
    """How often replicas are decided on: each sync of the autoscaler, or up to four times less often on long traces."""
    sync = facts().kubernetes.sync_s
    return float(sync * min(MOST_SYNCS, max(1, int(np.ceil(length_s / facts().limits.usual_steps / sync)))))


@dataclass(frozen=True)
class Replays:
    """The replays of one plan. All policies meet the same requests: differences are not by chance."""

    trace: Trace
    setting: Setting
    split_s: float
    seeds: tuple[int, ...]

    @cached_property
    def _arrivals(self) -> dict[int, Arrivals]:
        return {}

    @cached_property
    def _first_need(self) -> int:
        """What the first step needs."""
        return int(max(1, needed_replicas(self.trace, self.setting)[0]))

    def _start(self, kind: PolicyKind, value: float) -> int:
        """Replicas at the start."""
        return self.setting.within(kind.first(value) if kind.first else self._first_need)

    @property
    def request_level(self) -> bool:
        """Whether the whole trace is replayed request by request."""
        return self.trace.requests <= facts().limits.requests_at_request_level

    @property
    def tunes_at_request_level(self) -> bool:
        """Whether the first part is."""
        return self.request_level and self._first.requests <= facts().limits.requests_to_tune_at_request_level

    @cached_property
    def _first(self) -> Trace:
        return self.trace.first(self.split_s)

    @property
    def warm_up_s(self) -> float:
        """The start of the first part, not counted: replicas there are a guess, until the first ones could be added."""
        setting = self.setting
        return min(setting.cold_start_s + setting.scale_down_delay_s, self.split_s / 4)

    @property
    def by_chance(self) -> bool:
        """Whether another seed gives another result."""
        recorded = self.request_level and self.trace.at_s is not None and self.trace.generated is not None
        return not recorded or self.setting.spot.share_ratio > 0

    def _requests(self, seed: int) -> Arrivals:
        if seed not in self._arrivals:
            self._arrivals[seed] = arrivals_of(self.trace, self.setting.service.service_s, seed)
        return self._arrivals[seed]

    def first_part(self, kind: PolicyKind, value: float) -> Totals:
        """A policy on the first part alone; one that learns does so on its first half, and is judged on the other."""
        setting, since_s = self.setting, self.warm_up_s
        if kind.learns:
            learned = self._first.first(self.split_s / 2)
            setting, since_s = replace(setting, learned=learned), learned.length_s
        policy, start, seed = kind.build(setting, value), self._start(kind, value), self.seeds[0]
        if not self.tunes_at_request_level:
            run = replay_rates(self._first, setting, policy, first_replicas=start, seed=seed)
        else:
            requests = self._requests(seed).before(self.split_s)
            run, _ = replay_requests(requests, setting, policy, self.split_s, first_replicas=start, seed=seed)
        return run.totals(since_s)

    def whole(self, kind: PolicyKind, value: float, seed: int) -> Run:
        """A policy on the whole trace: in the second part it goes on with what it has seen."""
        policy, start = kind.build(self.setting, value), self._start(kind, value)
        if not self.request_level:
            return replay_rates(self.trace, self.setting, policy, first_replicas=start, seed=seed)
        requests = self._requests(seed)
        return replay_requests(
            requests, self.setting, policy, self.trace.length_s, first_replicas=start, seed=seed
        )[0]  # fmt: skip

    @property
    def words(self) -> str:
        """How the trace is replayed."""
        if not self.request_level:
            return (
                f"{self.trace.requests:,.0f} requests are replayed as a flow in intervals of "
                f"{self.setting.interval_s:g} s, with waits by chance from Erlang C"
            )
        drawn = "as recorded" if self.trace.at_s is not None else "drawn from the rates (Poisson)"
        tuned = "" if self.tunes_at_request_level else "; policies are tuned on the flow of the first part"
        return f"{self.trace.requests:,.0f} requests are replayed one by one, {drawn}{tuned}"
