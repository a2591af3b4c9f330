"""Which class and phase is each pair of utilization and power intensity in?

Every documented rule compares utilization or PIF with a limit. The limits cut the plane into cells; within a cell all
rules agree. So each sample is put into its cell once, time is counted per cell, and the rules are asked per cell.
"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np

from gpuledger.catalog.thresholds import Thresholds

CLASSES = ("idle", "efficient", "bottlenecked", "moderate", "inefficient")
PHASES = ("idle", "underutilized", "productive", "compute_bound")


def classify(util: float, pif: float, limits: Thresholds) -> str:
    """The efficiency class; the first rule that matches."""
    c = limits.classes
    if util < c.idle_util_below_ratio:
        return "idle"
    if util >= c.efficient_util_from_ratio and pif >= c.efficient_pif_from_ratio:
        return "efficient"
    if util >= c.bottlenecked_util_from_ratio and pif < c.bottlenecked_pif_below_ratio:
        return "bottlenecked"
    if util >= c.moderate_util_from_ratio and pif >= c.moderate_pif_from_ratio:
        return "moderate"
    return "inefficient"


def phase_of(util: float, limits: Thresholds) -> str:
    """The utilization phase."""
    p = limits.phases
    edges = (p.idle_util_below_ratio, p.underutilized_util_below_ratio, p.productive_util_below_ratio)
    return PHASES[sum(util >= e for e in edges)]


def is_active(util: float, limits: Thresholds) -> bool:
    """Whether a sample counts as active."""
    return util > limits.activity.active_util_above_ratio


def is_bottleneck(util: float, pif: float, limits: Thresholds) -> bool:
    """Whether a sample counts as bottlenecked: active, busy, and drawing little power."""
    b = limits.bottleneck
    return is_active(util, limits) and util > b.util_above_ratio and pif < b.pif_below_ratio


class Plane(msgspec.Struct, frozen=True):
    """The cells: edges by utilization (last cell: not known) and by PIF (last cell: not known).

    Cells in which all rules agree are of one kind: `kind` by cell, and `holds` by column the kinds it adds up.
    """

    util_edges: tuple[float, ...]
    pif_edges: tuple[float, ...]
    kind: np.ndarray
    holds: dict[str, np.ndarray]

    @property
    def pif_cells(self) -> int:
        """Cells along PIF, the unknown one included."""
        return len(self.pif_edges) + 2

    @property
    def kinds(self) -> int:
        """How many kinds of cells there are."""
        return int(self.kind.max()) + 1


@cache
def plane(limits: Thresholds) -> Plane:
    """The cells of these limits, and which line columns each cell's time belongs to."""
    c, p, b = limits.classes, limits.phases, limits.bottleneck
    # "above x" is the same as "from the next number after x".
    above = tuple(float(np.nextafter(x, np.inf)) for x in (limits.activity.active_util_above_ratio, b.util_above_ratio))
    util_edges = tuple(sorted({
        c.idle_util_below_ratio, c.efficient_util_from_ratio, c.bottlenecked_util_from_ratio,
        c.moderate_util_from_ratio,
        p.idle_util_below_ratio, p.underutilized_util_below_ratio, p.productive_util_below_ratio, *above,
    }))  # fmt: skip
    pif_edges = tuple(sorted({
        c.efficient_pif_from_ratio, c.bottlenecked_pif_below_ratio, c.moderate_pif_from_ratio, b.pif_below_ratio,
    }))  # fmt: skip
    columns = (*(f"class_{k}_ms" for k in CLASSES), *(f"phase_{k}_ms" for k in PHASES), "active_ms", "active_pif_ms",
               "bottleneck_ms")  # fmt: skip
    pairs = [(util, pif) for util in (-1.0, *util_edges, None) for pif in (-1.0, *pif_edges, None)]
    rules = [frozenset(_columns_of(util, pif, limits)) for util, pif in pairs]
    kinds = list(dict.fromkeys(rules))
    kind = np.array([kinds.index(rule) for rule in rules], dtype=np.uint8)
    holds = {c: np.flatnonzero([c in k for k in kinds]) for c in columns}
    return Plane(util_edges, pif_edges, kind, holds)


def _columns_of(util: float | None, pif: float | None, limits: Thresholds) -> list[str]:
    if util is None:
        return []
    out = [f"phase_{phase_of(util, limits)}_ms"]
    if is_active(util, limits):
        out.append("active_ms")
    if pif is not None:
        out.append(f"class_{classify(util, pif, limits)}_ms")
        if is_active(util, limits):
            out.append("active_pif_ms")
        if is_bottleneck(util, pif, limits):
            out.append("bottleneck_ms")
    return out
