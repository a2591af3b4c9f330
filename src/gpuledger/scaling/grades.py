"""Which grade does a figure get, and what stands behind it? The limits are data (data/thresholds.toml)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gpuledger.errors import FactError
from gpuledger.scaling.figures import Figure
from gpuledger.scaling.statement import Grade
from gpuledger.settings import Layer
from gpuledger.units import Unknown

LETTERS = "ABCDF"


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one area is graded."""

    title: str
    unit: str
    better: Literal["higher", "lower"]
    limits: tuple[float, float, float, float]
    essential: bool
    source: str

    def grade(self, value: float) -> str:
        """A to F; a value on a limit gets the better grade."""
        good = [value >= limit if self.better == "higher" else value <= limit for limit in self.limits]
        return LETTERS[good.index(True) if True in good else len(good)]

    @property
    def words(self) -> str:
        """Where the grades end."""
        sign = "from" if self.better == "higher" else "up to"
        return ", ".join(
            f"{letter} {sign} {limit:g} {self.unit}" for letter, limit in zip(LETTERS, self.limits, strict=False)
        )


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run must show before it speaks for production."""

    success_from_pct: float
    answers_per_node_from: int
    source: str


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far apart nodes must be to be called apart."""

    apart_from_pct: Annotated[float, msgspec.Meta(ge=0)]
    source: str


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How near a claim must come."""

    tolerance_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)]
    source: str


class Batches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the knee of the batch curve is."""

    knee_below_ratio: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    source: str


class Mix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When two mixes of requests differ."""

    differs_from_ratio: Annotated[float, msgspec.Meta(ge=0)]
    source: str


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All limits of the report. `origin`: the file of the user's own, if any."""

    version: int
    grades: dict[str, Scale]
    readiness: Ready
    nodes: Nodes
    claims: Claims
    batches: Batches
    mix: Mix
    origin: str = ""


LAYER = Layer("grades", Thresholds, "gpuledger.scaling", "thresholds.toml", home="grades")


def load_scaling_thresholds(path: Path | None = None) -> Thresholds:
    """The limits in force: the shipped ones with the user's own where there are any, of `path` where it is given."""
    limits = LAYER.load(path)
    for name, scale in limits.grades.items():
        if list(scale.limits) != sorted(scale.limits, reverse=scale.better == "higher"):
            hint = "put them from A to D: falling where higher is better, rising where lower is"
            where = limits.origin or LAYER.file
            raise FactError(where, f"grades.{name}.limits", f"{list(scale.limits)} is out of order", hint=hint)
    return limits


def grade_of(area: str, value: Figure, limits: Thresholds) -> Grade:
    """One line of the scorecard."""
    scale = limits.grades[area]
    letter = value if isinstance(value, Unknown) else scale.grade(value)
    return Grade(area, scale.title, value, scale.unit, letter, scale.words, scale.essential)


def overall(grades: tuple[Grade, ...]) -> tuple[str | Unknown, str]:
    """The worst of the essential grades, and which they were."""
    essential = [g for g in grades if g.essential]
    known = [(g.grade, g.title) for g in essential if isinstance(g.grade, str)]
    missing = [g.title for g in essential if isinstance(g.grade, Unknown)]
    left = f" Not graded: {'; '.join(missing)}." if missing else ""
    if not known:
        return Unknown("no essential figure is known"), f"No essential figure is known.{left}"
    worst = max(letter for letter, _ in known)
    why = "; ".join(title.lower() for letter, title in known if letter == worst)
    return worst, f"The worst of the essential grades: {why}.{left}"
