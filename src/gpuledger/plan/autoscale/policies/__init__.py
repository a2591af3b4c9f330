"""When should replicas be added or removed? One policy per file, all with one interface.

A policy sees what a metrics server would show at the end of each interval, and answers with a number of replicas. It
knows nothing of the demand to come, beyond what it learned from the first part of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuledger.plan.autoscale.setting import Setting


@dataclass(slots=True)
class View:
    """What is known at the end of an interval: replicas, busy slots (mean of the interval), waiting requests (now)."""

    now_s: float
    ready: int
    starting: int
    busy_slots: float
    waiting: float

    @property
    def replicas(self) -> int:
        """All replicas that were asked for."""
        return self.ready + self.starting

    @property
    def in_system(self) -> float:
        """Requests that are served or wait."""
        return self.busy_slots + self.waiting


class Policy(Protocol):
    """Decides once per interval; keeps its own memory."""

    def desired(self, view: View) -> int:
        """How many replicas there should be."""
        ...


def never(_setting: Setting) -> str:
    """Nothing speaks against the policy."""
    return ""


@dataclass(frozen=True)
class PolicyKind:
    """A policy: its name, the one value it is tuned by, the values to try, and how it is made from one.

    `cannot`: why it cannot be used on this trace, or nothing. `says`: a value in words. `first`: replicas at the start
    of a replay with a value; as many as the first step needs where it has none. `learns`: it must be judged on other
    time than it learned from.
    """

    name: str
    title: str
    tried: Callable[[Setting], Sequence[float]]
    build: Callable[[Setting, float], Policy]
    says: Callable[[Setting, float], str]
    cannot: Callable[[Setting], str] = never
    first: Callable[[float], int] | None = None
    learns: bool = False


def kinds() -> dict[str, PolicyKind]:
    """All policies by name, the simplest first."""
    from gpuledger.plan.autoscale.policies import predictive, queue_length, scheduled, static_peak, target_utilization

    modules = (static_peak, target_utilization, queue_length, scheduled, predictive)
    return {module.KIND.name: module.KIND for module in modules}
