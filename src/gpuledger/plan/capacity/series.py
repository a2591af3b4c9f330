"""What is a series of demand: GPUs by hour, with gaps where it was not observed?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.units import MS_PER_HOUR, Unknown, count, utc

DAY, WEEK = 24, 168


@dataclass(frozen=True, eq=False)
class Series:
    """GPUs by hour from `start_ms` on; NaN is an hour without observation, never zero."""

    name: str
    start_ms: int
    values: np.ndarray

    @property
    def end_ms(self) -> int:
        """The end of its last hour."""
        return self.start_ms + len(self.values) * MS_PER_HOUR

    @property
    def observed_h(self) -> int:
        """Hours with an observation."""
        return int(np.sum(~np.isnan(self.values)))

    def recent(self, days: int) -> Series:
        """At most the last days."""
        cut = max(0, len(self.values) - days * DAY)
        return replace(self, start_ms=self.start_ms + cut * MS_PER_HOUR, values=self.values[cut:])

    def trimmed(self) -> Series:
        """Without hours before the first and after the last observation."""
        seen = np.flatnonzero(~np.isnan(self.values))
        if not len(seen):
            return replace(self, values=self.values[:0])
        first, last = int(seen[0]), int(seen[-1]) + 1
        return replace(self, start_ms=self.start_ms + first * MS_PER_HOUR, values=self.values[first:last])


def usable(series: Series) -> Series | Unknown:
    """The part of a series that can be forecast from, or why it cannot."""
    facts = capacity_facts()
    found = series.trimmed().recent(facts.longest_days).trimmed()
    hours, seen = len(found.values), found.observed_h
    if seen < facts.shortest_days * DAY:
        have = count(seen, "observed hour")
        return Unknown(f"{have}: a forecast needs {facts.shortest_days} days or more")
    if seen < facts.observed_from_ratio * hours:
        where = f"{utc(found.start_ms):%Y-%m-%d} to {utc(found.end_ms):%Y-%m-%d}"
        return Unknown(f"only {seen:,} of {hours:,} hours from {where} were observed")
    return found


def season_of(hours: int) -> int:
    """The season a history is long enough for: the week, else the day."""
    return WEEK if hours >= capacity_facts().week_from_days * DAY else DAY


def filled(values: np.ndarray) -> np.ndarray:
    """Hours without observation as the same hour of the other weeks, else days, else as their neighbors.

    Only for fitting: an hour that was not observed is never scored and never shown.
    """
    missing = np.isnan(values)
    if not missing.any():
        return values
    out = values.copy()
    place = np.arange(len(values))
    for season in (WEEK, DAY):
        for phase in np.unique(place[np.isnan(out)] % season).tolist():
            same = values[phase::season]
            if not np.isnan(same).all() and len(same) > 1:
                hole = np.isnan(out) & (place % season == phase)
                out[hole] = np.nanmean(same)
    if (left := np.isnan(out)).any():
        out[left] = np.interp(place[left], place[~left], out[~left])
    return out


def quantile(values: np.ndarray, share: float) -> float:
    """A quantile of what was observed."""
    return float(np.nanquantile(values, share))
