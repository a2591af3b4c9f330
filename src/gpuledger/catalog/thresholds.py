"""Where does one kind of GPU time end and the next begin?"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec

from gpuledger.arguments import takes
from gpuledger.errors import FactError
from gpuledger.settings import Layer

Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str


class Activity(_Section, frozen=True):
    """When a sample counts as active."""

    active_util_above_ratio: Ratio


class Classes(_Section, frozen=True):
    """Efficiency classes; the first match of idle, efficient, bottlenecked, moderate, else inefficient."""

    idle_util_below_ratio: Ratio
    efficient_util_from_ratio: Ratio
    efficient_pif_from_ratio: Ratio
    bottlenecked_util_from_ratio: Ratio
    bottlenecked_pif_below_ratio: Ratio
    moderate_util_from_ratio: Ratio
    moderate_pif_from_ratio: Ratio


class Bottleneck(_Section, frozen=True):
    """When an active sample counts as bottlenecked: busy, and drawing little power."""

    util_above_ratio: Ratio
    pif_below_ratio: Ratio


class Phases(_Section, frozen=True):
    """Four phases by utilization; at and above the last limit is compute_bound."""

    idle_util_below_ratio: Ratio
    underutilized_util_below_ratio: Ratio
    productive_util_below_ratio: Ratio


class Idle(_Section, frozen=True):
    """The truly-idle rule, and how much memory makes idle time idle_held."""

    activity_below_ratio: Ratio
    util_below_ratio: Ratio
    held_above_bytes: Annotated[int, msgspec.Meta(ge=0)]
    held_above_card_ratio: Ratio
    waits_below_s: Annotated[int, msgspec.Meta(ge=0)]


class Targets(_Section, frozen=True):
    """What statements compare with; posting does not read these."""

    rfu_training_ratio: Ratio
    rfu_inference_ratio: Ratio
    gap_alert_above_ratio: Ratio
    roi_rfu_ratios: tuple[Ratio, ...]


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All limits; every share is a ratio, 0 to 1. `origin`: the file of the user's own, if any."""

    activity: Activity
    classes: Classes
    bottleneck: Bottleneck
    phases: Phases
    idle: Idle
    targets: Targets
    origin: str = ""

    def fingerprint(self) -> str:
        """16 hex digits that change when a limit used in posting changes.

        Targets and the words of a source are left out: they are read after posting, so lines stay good.
        """
        content = msgspec.to_builtins(self)
        del content["targets"], content["origin"]
        for section in content.values():
            del section["source"]
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]


LAYER = Layer("classes", Thresholds, "gpuledger.catalog", "thresholds.toml", home="classes")


@takes()
def load_thresholds(path: Path | None = None) -> Thresholds:
    """The limits in force: the shipped ones with the user's own where there are any, of `path` where it is given."""
    limits = LAYER.load(path)
    _check(limits, limits.origin or LAYER.file)
    return limits


def _check(limits: Thresholds, path: str) -> None:
    """Limits that overlap or leave no room for a class are a mistake."""
    c, p, roi = limits.classes, limits.phases, limits.targets.roi_rfu_ratios
    rules = (
        ("activity.active_util_above_ratio", (limits.activity.active_util_above_ratio, c.idle_util_below_ratio)),
        (
            "classes.moderate_util_from_ratio",
            (c.idle_util_below_ratio, c.moderate_util_from_ratio, c.efficient_util_from_ratio),
        ),
        ("classes.bottlenecked_pif_below_ratio", (c.bottlenecked_pif_below_ratio, c.efficient_pif_from_ratio)),
        ("classes.moderate_pif_from_ratio", (c.moderate_pif_from_ratio, c.efficient_pif_from_ratio)),
        (
            "phases.underutilized_util_below_ratio",
            (p.idle_util_below_ratio, p.underutilized_util_below_ratio, p.productive_util_below_ratio),
        ),
        ("targets.roi_rfu_ratios", roi),
    )
    for field, rising in rules:
        if list(rising) != sorted(rising):
            problem = f"{', '.join(map(str, rising))} should not fall"
            raise FactError(path, field, problem, hint="put these limits in rising order")
    if not roi or min(roi) <= 0:
        raise FactError(
            path, "targets.roi_rfu_ratios", f"found {list(roi)}", hint="give one or more targets above zero"
        )
