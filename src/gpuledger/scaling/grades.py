"""Which grade does a figure get, and what stands behind it? The limits are data (data/thresholds.toml)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gpuledger.catalog.files import convert, data_dir, load_toml
from gpuledger.errors import FactError
from gpuledger.scaling.figures import Figure
from gpuledger.scaling.statement import Grade
from gpuledger.units import Unknown

LETTERS = "ABCDF"
VERSION = 1


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
    """All limits of the report."""

    version: int
    grades: dict[str, Scale]
    readiness: Ready
    nodes: Nodes
    claims: Claims
    batches: Batches
    mix: Mix


@cache
def _shipped() -> dict[str, Any]:
    return load_toml(data_dir("gpuledger.scaling", "data", "thresholds.toml"), dict[str, Any])


def load_scaling_thresholds(path: Path | None = None) -> Thresholds:
    """The shipped limits, with those of the user's file in place of them where it gives any."""
    merged: dict[str, Any] = {k: _copy(v) for k, v in _shipped().items()}
    if path:
        for name, own in load_toml(path, dict[str, Any]).items():
            merged[name] = _over(merged.get(name), own, path.name)
    where = str(path or "thresholds.toml")
    limits = convert(merged, Thresholds, where)
    if limits.version > VERSION:
        raise FactError(where, "version", f"{limits.version} is newer than this gpuledger reads", hint="upgrade it")
    for name, scale in limits.grades.items():
        if list(scale.limits) != sorted(scale.limits, reverse=scale.better == "higher"):
            hint = "put them from A to D: falling where higher is better, rising where lower is"
            raise FactError(where, f"grades.{name}.limits", f"{list(scale.limits)} is out of order", hint=hint)
    return limits


def _copy(value: Any) -> Any:
    return {k: _copy(v) for k, v in value.items()} if isinstance(value, dict) else value


def _over(shipped: Any, own: Any, source: str) -> Any:
    """The user's values over the shipped ones; a changed section names the user's file as its source."""
    if not isinstance(shipped, dict) or not isinstance(own, dict):
        return own
    merged = {k: _over(shipped.get(k), v, source) for k, v in own.items()}
    marked = {"source": source} if "source" in shipped and "source" not in own else {}
    return {**shipped, **marked, **merged}


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
