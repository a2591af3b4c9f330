"""Where does a piece of advice begin to apply?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from gpuledger.errors import FactError
from gpuledger.settings import Layer

Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]
Above = Annotated[float, msgspec.Meta(ge=0)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: str


class Idle(_Section, frozen=True, kw_only=True):
    """When idling is the matter."""

    idle_heavy_from_ratio: Ratio
    active_from_ratio: Ratio
    release_from_h: Above
    cull_timeout_h: Above


class Memory(_Section, frozen=True, kw_only=True):
    """How much of the card is in use."""

    low_below_ratio: Ratio
    two_fit_below_ratio: Ratio
    batch_room_from_ratio: Ratio


class Phases(_Section, frozen=True, kw_only=True):
    """When one phase of utilization speaks for a case."""

    dominant_from_ratio: Ratio


class Pipes(_Section, frozen=True, kw_only=True):
    """When a pipe counts as used."""

    tensor_unused_below_ratio: Ratio
    fp32_used_from_ratio: Ratio
    tensor_used_from_ratio: Ratio
    tensor_full_from_ratio: Ratio
    gaps_below_ratio: Ratio


class Traffic(_Section, frozen=True, kw_only=True):
    """When copies and links matter."""

    pinned_from_bytes_per_s: Above
    copies_from_bytes_per_s: Above
    links_from_bytes_per_s: Above
    links_from_ratio: Ratio


class Fill(_Section, frozen=True, kw_only=True):
    """How full a GPU may be planned."""

    cautious_ratio: Ratio
    middle_ratio: Ratio
    bold_ratio: Ratio


class Schedule(_Section, frozen=True, kw_only=True):
    """When hours of the day count as quiet."""

    quiet_from_ratio: Ratio
    at_least_hours: int
    at_most_hours: int
    days_from: Above


class Smaller(_Section, frozen=True, kw_only=True):
    """When a smaller GPU is worth a move."""

    cheaper_from_ratio: Ratio
    memory_margin_ratio: Ratio
    at_most_ratio: Ratio
    clouds_from: int
    sm_below_ratio: Ratio


class Commit(_Section, frozen=True, kw_only=True):
    """When a load is known well enough to commit to it."""

    days_from: Above
    productive_from_ratio: Ratio


class Faults(_Section, frozen=True, kw_only=True):
    """When failing or hot GPUs come before any other change."""

    failing_from_ratio: Ratio
    hot_from_ratio: Ratio


class Power(_Section, frozen=True, kw_only=True):
    """When a power limit matters."""

    near_limit_from_ratio: Ratio
    capped_from_ratio: Ratio
    spinning_from_ratio: Ratio


class Unrated(_Section, frozen=True, kw_only=True):
    """When time that the evidence cannot rate matters."""

    sizable_from_ratio: Ratio


class Names(_Section, frozen=True, kw_only=True):
    """Words in names of namespaces, workloads, pods and containers."""

    production: tuple[str, ...]
    batch: tuple[str, ...]
    research: tuple[str, ...]
    service: tuple[str, ...]
    interactive: tuple[str, ...]
    training: tuple[str, ...]
    other: tuple[str, ...]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All limits of the rules. `origin`: the file of the user's own, if any.

    `rules` holds, by rule, the limits that a rule brings itself (`gpuledger.advice.rule.with_rule_limits` fills it).
    """

    version: int
    idle: Idle
    memory: Memory
    phases: Phases
    pipes: Pipes
    traffic: Traffic
    fill: Fill
    schedule: Schedule
    smaller: Smaller
    commit: Commit
    faults: Faults
    power: Power
    unrated: Unrated
    names: Names
    origin: str = ""
    rules: dict[str, dict[str, float]] = {}


LAYER = Layer("advice", Limits, "gpuledger.advice", "limits.toml")


def load_limits(path: Path | None = None) -> Limits:
    """The limits in force: the shipped ones with the user's own where there are any, of `path` where it is given."""
    limits = LAYER.load(path)
    _check(limits, limits.origin or LAYER.file)
    return limits


def _check(limits: Limits, path: str) -> None:
    pipes, fill, hours = limits.pipes, limits.fill, limits.schedule
    rising: dict[str, tuple[float, ...]] = {
        "pipes.tensor_used_from_ratio": (
            pipes.tensor_unused_below_ratio, pipes.tensor_used_from_ratio, pipes.tensor_full_from_ratio,
        ),
        "fill.middle_ratio": (fill.cautious_ratio, fill.middle_ratio, fill.bold_ratio),
        "schedule.at_least_hours": (1, hours.at_least_hours, hours.at_most_hours, 23),
    }  # fmt: skip
    for field, values in rising.items():
        if list(values) != sorted(values):
            problem = f"{', '.join(map(str, values))} should not fall"
            raise FactError(path, field, problem, hint="put these limits in rising order")
    if fill.cautious_ratio <= 0:
        raise FactError(path, "fill.cautious_ratio", "is 0", hint="give the share of a GPU that may be planned")
