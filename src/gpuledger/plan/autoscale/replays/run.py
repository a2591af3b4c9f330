"""What did a replay show, interval by interval, and in sum?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HOUR_S = 3600.0


@dataclass(frozen=True)
class Run:
    """One replay, by interval: requests that arrived, those of them that missed the goal, their waits added up.

    Replicas are means of the interval: `paid` from the start of a replica to its end (`spot` of them), `ready` at work.
    """

    interval_s: float
    arrived: np.ndarray
    missed: np.ndarray
    wait_s: np.ndarray
    paid: np.ndarray
    spot: np.ndarray
    ready: np.ndarray

    def totals(self, since_s: float = 0.0, until_s: float = np.inf) -> Totals:
        """The sums between two instants, to whole intervals."""
        first, last = round(since_s / self.interval_s), len(self.paid)
        last = last if np.isinf(until_s) else min(last, round(until_s / self.interval_s))
        here, hours = slice(first, last), self.interval_s / HOUR_S
        requests = float(self.arrived[here].sum())
        return Totals(
            hours=(last - first) * hours,
            requests=requests,
            missed=float(self.missed[here].sum()),
            mean_wait_s=float(self.wait_s[here].sum()) / requests if requests else 0.0,
            replica_h=float(self.paid[here].sum()) * hours,
            spot_replica_h=float(self.spot[here].sum()) * hours,
            most_replicas=int(np.ceil(self.paid[here].max(initial=0.0) - 1e-9)),
        )


@dataclass(frozen=True)
class Totals:
    """A replay in sum."""

    hours: float
    requests: float
    missed: float
    mean_wait_s: float
    replica_h: float
    spot_replica_h: float
    most_replicas: int

    @property
    def missed_ratio(self) -> float:
        """The share of requests that waited longer than the goal."""
        return self.missed / self.requests if self.requests else 0.0
