"""Where does a piece of advice begin to apply?"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from gpuledger.catalog.files import convert, data_dir, load_toml
from gpuledger.errors import FactError

VERSION = 1
Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]
Above = Annotated[float, msgspec.Meta(ge=0)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: str


class Idle(_Section, frozen=True, kw_only=True):
    """When idling is the matter."""

    idle_heavy_from_ratio: Ratio
    active_from_ratio: Ratio


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


class Commit(_Section, frozen=True, kw_only=True):
    """When a load is known well enough to commit to it."""

    days_from: Above
    productive_from_ratio: Ratio


class Power(_Section, frozen=True, kw_only=True):
    """When a power limit matters."""

    near_limit_from_ratio: Ratio
    capped_from_ratio: Ratio


class Unrated(_Section, frozen=True, kw_only=True):
    """When time that the evidence cannot rate matters."""

    sizable_from_ratio: Ratio


class Names(_Section, frozen=True, kw_only=True):
    """Words in names of namespaces and workloads."""

    production: tuple[str, ...]
    batch: tuple[str, ...]
    research: tuple[str, ...]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All limits of the rules."""

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
    power: Power
    unrated: Unrated
    names: Names
    rules: dict[str, dict[str, float]] = {}  # by rule, the limits that it brings itself


@cache
def _shipped() -> dict[str, Any]:
    return load_toml(data_dir("gpuledger.advice", "data", "limits.toml"), dict[str, Any])


def load_limits(path: Path | None = None) -> Limits:
    """The shipped limits, with those of the user's file in place of them where it gives any."""
    sections = {name: dict(part) if isinstance(part, dict) else part for name, part in _shipped().items()}
    if path:
        for name, own in load_toml(path, dict[str, Any]).items():
            shipped = sections.get(name, {})
            if isinstance(own, dict) and isinstance(shipped, dict):
                # A changed limit is no longer the published one, so the file itself is the source.
                sections[name] = shipped | ({"source": path.name} if "source" in shipped else {}) | own
            else:
                sections[name] = own
    where = str(path or "limits.toml")
    limits = convert(sections, Limits, where)
    _check(limits, where)
    return limits


def _check(limits: Limits, path: str) -> None:
    if limits.version > VERSION:
        problem = f"{limits.version} is newer than this gpuledger reads"
        raise FactError(path, "version", problem, hint="upgrade gpuledger")
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
