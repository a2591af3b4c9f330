"""Which figures are graded?"""

from __future__ import annotations

from gpuledger.scaling.analysis.settings import SWEPT
from gpuledger.scaling.coldstart import ColdStart
from gpuledger.scaling.figures import Facts, Figure
from gpuledger.scaling.grades import Thresholds, grade_of
from gpuledger.scaling.statement import Grade
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown


def scorecard(facts: Facts, limits: Thresholds) -> tuple[Grade, ...]:
    """One grade an area of the thresholds file, in its order; the cautious end where a figure has an interval."""
    values: dict[str, Figure] = {
        "success": _value(facts.counts.success_pct),
        "scaling": _low(facts.scaling.efficiency_pct),
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


def _value(found: Interval | Unknown) -> Figure:
    return found if isinstance(found, Unknown) else found.value


def _low(found: Interval | Unknown) -> Figure:
    return found if isinstance(found, Unknown) else found.low


def _symmetry(facts: Facts) -> Figure:
    known = [n.slower_pct.value for n in facts.nodes if not isinstance(n.slower_pct, Unknown)]
    if known:
        return max(0.0, *known)
    return next((n.slower_pct for n in facts.nodes if isinstance(n.slower_pct, Unknown)), Unknown("there is no node"))


def _tail(facts: Facts) -> Figure:
    high, middle = facts.latency.warm.p95_s, facts.latency.warm.p50_s
    if isinstance(high, Unknown) or isinstance(middle, Unknown):
        return high if isinstance(high, Unknown) else Unknown("the median is not known")
    return high.value / middle.value if middle.value else Unknown("the median is 0")


def _cold(facts: Facts) -> Figure:
    colds = [n.cold_start for n in facts.nodes]
    known = [c.over_warm_pct for c in colds if isinstance(c, ColdStart)]
    if known:
        return max(known)
    # No cold start found is a figure, 0; too few samples to look for one is none.
    return next((c for c in colds if isinstance(c, Unknown)), 0.0 if colds else Unknown("there is no node"))


def _occupancy(facts: Facts) -> Figure:
    busy = [n.busy_s for n in facts.nodes if not isinstance(n.busy_s, Unknown)]
    if isinstance(facts.wall_s, Unknown) or not busy:
        return Unknown("the results do not say when requests started and ended")
    return min(100.0, 100 * max(busy) / facts.wall_s)
