"""What would a higher efficiency be worth, in GPU-hours and dollars?"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from gpuledger.advice.statement import RoiPriced
from gpuledger.advice.stretches import Stretch
from gpuledger.catalog.thresholds import Targets
from gpuledger.cost.money import usd
from gpuledger.cost.statement import CostStatement
from gpuledger.efficiency.roi import roi
from gpuledger.units import MS_PER_HOUR, PPM, Unknown


def rfu_power(stretches: Sequence[Stretch]) -> tuple[int, float | Unknown]:
    """The boards whose power is known, and their RFU by power in percent, as the efficiency statement has it."""
    worked = sum(s.sums["rfu_ratio_ms"] for s in stretches) / PPM
    known_ms = sum(s.sums["rfu_ms"] for s in stretches)
    boards = {s.gpu_uuid for s in stretches if s.sums["rfu_ms"]}
    return len(boards), 100 * worked / known_ms if known_ms else Unknown("no power with a known power limit")


def mean_price(cost: CostStatement) -> Decimal | Unknown:
    """Dollars paid for a GPU-hour on average, over what has a price."""
    if isinstance(cost.dollars, Unknown):
        return cost.dollars
    unpriced_ms = sum(round(row.paid_h * MS_PER_HOUR) for row in cost.unpriced)
    paid_ms = cost.times.paid_ms - unpriced_ms
    if paid_ms <= 0:
        return Unknown("nothing was paid")
    return usd(Fraction(cost.dollars.paid_usd) * MS_PER_HOUR / paid_ms)


def roi_priced(stretches: Sequence[Stretch], cost: CostStatement, targets: Targets) -> tuple[RoiPriced, ...]:
    """Each target above the current RFU, with dollars a month: GPU-hours x the mean price."""
    gpus, rfu_pct = rfu_power(stretches)
    price = mean_price(cost)
    rows = []
    for row in roi(gpus, rfu_pct, targets.roi_rfu_ratios):
        worth = price if isinstance(price, Unknown) else round(price * Decimal(str(row.gpu_hours_per_month)), 2)
        rows.append(RoiPriced(row, price, worth))
    return tuple(rows)
