"""What would reaching a target be worth, in GPUs and GPU-hours?"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.efficiency.statement import Figure, RoiRow
from gpuledger.units import Unknown

HOURS_PER_DAY = 24
DAYS_PER_MONTH = 30


def roi(gpus: int, rfu_pct: Figure, target_ratios: Sequence[float]) -> tuple[RoiRow, ...]:
    """Each target above the current RFU: N x (target / current - 1) more GPUs' worth of the same work.

    Empty where the current RFU is not known or zero: nothing can be scaled from it.
    """
    if isinstance(rfu_pct, Unknown) or rfu_pct <= 0:
        return ()
    rows = []
    for target_pct in sorted({round(100 * t, 9) for t in target_ratios}):
        if target_pct > rfu_pct:
            more = gpus * (target_pct / rfu_pct - 1)
            per_day = more * HOURS_PER_DAY
            rows.append(RoiRow(target_pct, more, per_day, per_day * DAYS_PER_MONTH))
    return tuple(rows)
