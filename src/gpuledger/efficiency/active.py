"""How efficient is the fleet while it is active, and how is its time divided?"""

from __future__ import annotations

from gpuledger.efficiency.means import NO_BOARD, Groups, difference
from gpuledger.efficiency.statement import ActiveAnalysis, Figure
from gpuledger.ledger.cells import CLASSES
from gpuledger.units import MS_PER_HOUR, PPM, Unknown, ratio


def active_analysis(groups: Groups, i: int = 0) -> ActiveAnalysis:
    """Analysis 2, of one group."""
    util = ratio(100 * groups.sum("active_util_ppm_ms", i) / PPM, groups.sum("active_ms", i), "no active time")
    why = NO_BOARD if groups.sum("power_ms", i) and groups.sum("active_ms", i) else "no active time with power known"
    pif = ratio(groups.sum("active_pif_ratio_ms", i), groups.sum("active_pif_ms", i), why)
    rfu: Figure = pif if isinstance(pif, Unknown) else 100 * pif
    classed_ms = sum(groups.sum(f"class_{k}_ms", i) for k in CLASSES)
    return ActiveAnalysis(
        active_h=groups.sum("active_ms", i) / MS_PER_HOUR,
        gpu_util_pct=util,
        pif=pif,
        rfu_power_pct=rfu,
        efficiency_gap_pp=difference(util, rfu),
        bottlenecked_pct_of_active=groups.bottlenecked_pct[i],
        classes_pct=groups.classes_pct(i),
        phases_pct=groups.phases_pct(i),
        class_unknown_h=(groups.sum("observed_ms", i) - classed_ms) / MS_PER_HOUR,
    )
