"""What does a capacity plan assume by default?"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml


class CapacityFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file `data/capacity.toml`."""

    version: int
    source: str
    shortest_days: int
    week_from_days: int
    longest_days: int
    observed_from_ratio: float
    hour_from_ratio: float
    folds: int
    ahead_of_history_ratio: float
    longest_ahead_days: int
    range_ratio: float
    short_history_factor: float
    short_history_days: int
    used_from_ratio: float
    unrated_below_ratio: float
    achievable_quantile: float
    achievable_from_gpus: int
    achievable_from_busy_h: float
    purchase_months: int
    old_from_days: int
    next_to_audit: str


@cache
def capacity_facts() -> CapacityFacts:
    """The shipped assumptions."""
    return load_toml(data_dir("gpuledger.plan", "data", "capacity.toml"), CapacityFacts)
