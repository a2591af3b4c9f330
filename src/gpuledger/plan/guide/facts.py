"""By which judgments are options weighed, and where do they come from?"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Measure = Literal["dollars", "throughput", "headroom", "interconnect", "availability", "risk", "effort"]
MEASURES: tuple[Measure, ...] = (
    "dollars", "throughput", "headroom", "interconnect", "availability", "risk", "effort",
)  # fmt: skip


class Scores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each of the three scores is a mean of."""

    cost: dict[Measure, Share]
    performance: dict[Measure, Share]
    reliability: dict[Measure, Share]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the planner draws its lines."""

    headroom_full_ratio: Share
    headroom_thin_ratio: Share
    worth_saving_pct: float
    worth_speed_ratio: float
    counts_times: AtLeastOne
    most_gpus: AtLeastOne
    large_from_params: float
    serving_batch: AtLeastOne
    serving_context: AtLeastOne
    assumed_busy_ratio: Share
    enough_speed_ratio: float
    runners_up: AtLeastOne
    zones_wide: AtLeastOne


class RiskPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reason a move may go wrong."""

    points: int
    words: str


class Risks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All reasons, and what their sum means."""

    most_points: AtLeastOne
    low_up_to: int
    medium_up_to: int
    points: dict[str, RiskPoint]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of the work of a move."""

    hours: float
    words: str


class Efforts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All parts of the work, and what their sum means."""

    most_hours: float
    low_up_to: float
    medium_up_to: float
    steps: dict[str, Step]


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: Literal[1]
    as_of: str
    scores: Scores
    limits: Limits
    risks: Risks
    efforts: Efforts
    guidelines: dict[str, str]


@cache
def migrate_facts() -> Facts:
    """The shipped judgments."""
    return load_toml(data_dir("gpuledger.plan", "data", "migrate.toml"), Facts)
