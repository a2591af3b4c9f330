"""Which figures are graded, by which limits, and does the run show readiness for production?

The limits are data (data/thresholds.toml).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gpuledger.bench.records import present
from gpuledger.errors import FactError
from gpuledger.scaling.analysis.counting import SWEPT
from gpuledger.scaling.figures import ColdStart, Facts, Figure
from gpuledger.scaling.statement import Grade, Level, Readiness
from gpuledger.settings import Layer
from gpuledger.units import Unknown

LETTERS = "ABCDF"
NO_NODE = Unknown("the run has no node")


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

    def mark(self, value: float) -> str:
        """The grade with a plus or a minus: in the best or the worst third of its span. F has none, A no plus."""
        letter = self.grade(value)
        at = LETTERS.index(letter)
        if at == len(self.limits):
            return letter
        own = self.limits[at]
        span = abs(self.limits[at - 1] - own) if at else abs(own - self.limits[1])
        share = abs(value - own) / span if span else 0.5
        sign = "-" if share < 1 / 3 else "+" if at and share >= 2 / 3 else ""
        return letter + sign

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


class Variance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a difference between nodes is called, in percent of the lower figure."""

    equal_up_to_pct: Annotated[float, msgspec.Meta(ge=0)]
    good_up_to_pct: Annotated[float, msgspec.Meta(ge=0)]
    moderate_up_to_pct: Annotated[float, msgspec.Meta(ge=0)]
    source: str

    def status(self, apart_pct: float) -> Literal["equal", "good", "moderate", "critical"]:
        """The band it lies in."""
        if apart_pct <= self.equal_up_to_pct:
            return "equal"
        if apart_pct <= self.good_up_to_pct:
            return "good"
        return "moderate" if apart_pct <= self.moderate_up_to_pct else "critical"


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
    variance: Variance
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
    if isinstance(value, Unknown):
        return Grade(area, scale.title, value, scale.unit, value, value, scale.words, scale.essential)
    letter, mark = scale.grade(value), scale.mark(value)
    return Grade(area, scale.title, value, scale.unit, letter, mark, scale.words, scale.essential)


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


def scorecard(facts: Facts, limits: Thresholds) -> tuple[Grade, ...]:
    """One grade per area of the thresholds file, in its order; the cautious end where a figure has an interval."""
    success, efficiency = facts.counts.success_pct, facts.scaling.efficiency_pct
    values: dict[str, Figure] = {
        "success": success if isinstance(success, Unknown) else success.value,
        "scaling": efficiency if isinstance(efficiency, Unknown) else efficiency.low,
        "evidence": float(min((n.warm.n for n in facts.nodes), default=0)),
        "symmetry": _symmetry(facts),
        "consistency": facts.latency.warm.consistency_pct,
        "tail": _tail(facts),
        "cold_start": _cold(facts),
        "memory": facts.memory_pct,
        "utilization": facts.telemetry.gpu_util_pct,
        "occupancy": _occupancy(facts),
    }
    if len(facts.batches.points) > 1:
        values |= dict.fromkeys(("consistency", "tail", "cold_start", "occupancy"), Unknown(SWEPT))
    return tuple(grade_of(area, values[area], limits) for area in limits.grades if area in values)


def _symmetry(facts: Facts) -> Figure:
    slower = [n.slower_pct for n in facts.nodes]
    known = [s.value for s in present(slower)]
    return max(0.0, *known) if known else next((s for s in slower if isinstance(s, Unknown)), NO_NODE)


def _tail(facts: Facts) -> Figure:
    high, middle = facts.latency.warm.p95_s, facts.latency.warm.p50_s
    if isinstance(high, Unknown) or isinstance(middle, Unknown):
        return high if isinstance(high, Unknown) else Unknown("the median is not known")
    return high.value / middle.value if middle.value else Unknown("the median is 0")


def _cold(facts: Facts) -> Figure:
    """No cold start found is a figure, 0; too few samples to look for one is not."""
    colds = [n.cold_start for n in facts.nodes]
    known = [c.over_warm_pct for c in colds if isinstance(c, ColdStart)]
    if known:
        return max(known)
    return next((c for c in colds if isinstance(c, Unknown)), 0.0 if colds else NO_NODE)


def _occupancy(facts: Facts) -> Figure:
    busy = present(n.busy_s for n in facts.nodes)
    if isinstance(facts.wall_s, Unknown) or not busy:
        return Unknown("start and end of the requests are not known")
    return min(100.0, 100 * max(busy) / facts.wall_s)


def readiness_of(facts: Facts, limits: Thresholds) -> Readiness:
    """Not ready where something is against it; cannot tell where something is missing."""
    against: list[str] = []
    unknown: list[str] = []
    passed: list[str] = []
    ask = limits.readiness
    _success(facts, ask, against, unknown, passed)
    least = min((n.counts.ok for n in facts.nodes), default=0)
    if least < ask.answers_per_node_from:
        few = "1 answer on a node is" if least == 1 else f"{least} answers on a node are"
        unknown.append(f"{few} too few, {ask.answers_per_node_from} are required")
    else:
        passed.append(f"at least {least} answers on every node")
    if facts.nodes_n > 1 and facts.scaling.refused:
        unknown.append(f"scaling: {facts.scaling.refused}")
    if facts.client_bottleneck:
        unknown.append(f"the client was the bottleneck: {facts.client_bottleneck}")
    if isinstance(facts.wall_s, Unknown):
        unknown.append(facts.wall_s.why)
    verdict: Level = "not ready" if against else "cannot tell" if unknown else "ready as far as measured"
    return Readiness(verdict, tuple(against), tuple(unknown), tuple(passed))


def _success(facts: Facts, ask: Ready, against: list[str], unknown: list[str], passed: list[str]) -> None:
    """Whether enough of the planned requests were answered, in all and on each node."""
    counts, share = facts.counts, facts.counts.success_pct
    if isinstance(share, Unknown):
        unknown.append(f"success: {share.why}")
    elif share.value < ask.success_from_pct:
        words = f"{share.value:.1f} % of planned requests were answered"
        against.append(f"{words}, {ask.success_from_pct:g} % are required")
    elif not counts.planned_known:
        unknown.append("what was planned is not known, so lost requests cannot be counted")
    else:
        passed.append(f"{share.value:.2f} % of planned requests were answered")
    for node in facts.nodes:
        own = node.counts.success_pct
        if not isinstance(own, Unknown) and own.value < ask.success_from_pct:
            against.append(f"{node.node} answered {node.counts.ok} of {node.counts.planned}")
