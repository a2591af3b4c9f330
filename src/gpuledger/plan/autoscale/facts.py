"""What does the planner take for granted: names of columns, how Kubernetes scales, which values are tried?"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml


class RateNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of columns with rates, by what they count."""

    per_second: tuple[str, ...]
    per_minute: tuple[str, ...]
    per_hour: tuple[str, ...]
    per_step: tuple[str, ...]


class ColumnNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of columns, folded."""

    time: tuple[str, ...]
    series: tuple[str, ...]
    generated: tuple[str, ...]
    context: tuple[str, ...]
    rates: RateNames


class Kubernetes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the HorizontalPodAutoscaler decides where nothing else is configured."""

    tolerance_ratio: float
    sync_s: int
    scale_up_percent: int
    scale_up_pods: int
    source: str
    as_of: str


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values each policy is tried with."""

    target_ratios: tuple[float, ...]
    fill_ratios: tuple[float, ...]
    miss_margin_ratio: float


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is replayed request by request, and in how many steps."""

    requests_at_request_level: int
    requests_to_tune_at_request_level: int
    usual_steps: int


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: int
    columns: ColumnNames
    kubernetes: Kubernetes
    tried: Tried
    limits: Limits


@cache
def facts() -> Facts:
    """The shipped facts."""
    return load_toml(data_dir("gpuledger.plan", "data", "autoscale.toml"), Facts)
