"""Under which rules are replicas scaled? What every policy and every replay of one plan shares."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuledger.errors import InputError
from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.service import Service


@dataclass(frozen=True)
class Slo:
    """At least `percentile` percent of requests wait at most `wait_s` before they are served."""

    wait_s: float
    percentile: float

    @property
    def missed_ratio(self) -> float:
        """The share of requests that may wait longer."""
        return 1 - self.percentile / 100

    @property
    def words(self) -> str:
        """The goal in one line."""
        return f"{self.percentile:g} % of requests wait at most {self.wait_s:g} s"


@dataclass(frozen=True)
class Spot:
    """The share of replicas on spot, and how often one of them is taken back."""

    share_ratio: float = 0.0
    reclaims_per_day: float = 0.0


@dataclass(frozen=True)
class Setting:
    """What one replica serves, the goal, and the limits of scaling.

    `learned`: the first part of the trace, all that a policy may know in advance; `weekly`: it is long enough to tell
    the days of the week apart.
    """

    service: Service
    slo: Slo
    learned: Trace
    interval_s: float
    cold_start_s: float = 300.0
    min_replicas: int = 1
    max_replicas: int | None = None
    scale_down_delay_s: float = 300.0
    cooldown_s: float = 300.0
    spot: Spot = Spot()
    weekly: bool = False

    def within(self, replicas: int) -> int:
        """A number of replicas within the limits."""
        most = replicas if self.max_replicas is None else min(replicas, self.max_replicas)
        return max(most, self.min_replicas)


def check_limits(
    *, slo_wait_s: float, slo_pct: float, cold_start_s: float, min_replicas: int, max_replicas: int | None,
    scale_down_delay_s: float, cooldown_s: float, spot_share: float, spot_reclaims_per_day: float | None,
) -> None:  # fmt: skip
    """Refuse what cannot be."""
    for name, value in (
        ("slo_wait_s", slo_wait_s), ("cold_start_s", cold_start_s), ("scale_down_delay_s", scale_down_delay_s),
        ("cooldown_s", cooldown_s),
    ):  # fmt: skip
        if not math.isfinite(value) or not 0 <= value <= 86_400:
            hint = f"give {name} as seconds, up to a day"
            raise InputError(f"{name}={value:g} is not between 0 and 86400", hint=hint)
    if not 50 <= slo_pct < 100:
        raise InputError(f"slo_pct={slo_pct:g} is not between 50 and 100", hint="give slo_pct=95 or slo_pct=99")
    if not 0 <= min_replicas <= 100_000:
        raise InputError(f"min_replicas={min_replicas} is not possible", hint="give min_replicas=0 or more")
    if max_replicas is not None and max_replicas < max(1, min_replicas):
        hint = f"give max_replicas={max(1, min_replicas)} or more"
        raise InputError(f"max_replicas={max_replicas} is below min_replicas={min_replicas} or below 1", hint=hint)
    if not 0 <= spot_share <= 1:
        raise InputError(
            f"spot_share={spot_share:g} is not between 0 and 1", hint="give spot_share=0.5 for half of them"
        )
    if spot_share and spot_reclaims_per_day is None:
        hint = "give spot_reclaims_per_day=0.05 for one in twenty days and replica, or what you have seen"
        raise InputError("how often spot is taken back is not given", hint=hint)
    if spot_reclaims_per_day is not None and not 0 <= spot_reclaims_per_day <= 1000:
        hint = "give reclaims of one replica per day, 0 or more"
        raise InputError(f"spot_reclaims_per_day={spot_reclaims_per_day:g} is not possible", hint=hint)
