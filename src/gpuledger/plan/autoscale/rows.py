"""What does each policy come to: hours, dollars, misses, and how far from what was needed?"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from gpuledger.plan.autoscale.prices import GpuPrice, ReplicaPrices
from gpuledger.plan.autoscale.replays.replay import Replays
from gpuledger.plan.autoscale.replays.run import Totals
from gpuledger.plan.autoscale.setting import Setting
from gpuledger.plan.autoscale.statement import Hindsight, PolicyRow
from gpuledger.plan.autoscale.tuning import Cost, Tuned
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import Unknown

MONTH_H = 720.0


def cost_of(prices: ReplicaPrices, setting: Setting) -> Cost:
    """What policies are compared by: dollars where prices are known, else GPU-hours."""
    on_demand, spot = (_middle(p) for p in (prices.on_demand, prices.spot))
    if on_demand is None or (spot is None and setting.spot.share_ratio):
        return lambda totals: totals.replica_h
    return lambda t: (t.replica_h - t.spot_replica_h) * on_demand + t.spot_replica_h * (spot or 0.0)


def _middle(price: GpuPrice | Unknown) -> float | None:
    return None if isinstance(price, Unknown) else float(price.usd_per_gpu_h.middle_usd)


def dollars(totals: Sequence[Totals], gpus: int, prices: ReplicaPrices) -> UsdRange | Unknown:
    """Dollars per month: the mean over seeds at the middle price; the ends by price and by seed."""
    if isinstance(prices.on_demand, Unknown):
        return prices.on_demand
    with_spot = any(t.spot_replica_h for t in totals)
    if with_spot and isinstance(prices.spot, Unknown):
        return prices.spot
    zero = UsdRange(Decimal(0), Decimal(0), Decimal(0))
    on_demand = prices.on_demand.usd_per_gpu_h
    spot = zero if isinstance(prices.spot, Unknown) else prices.spot.usd_per_gpu_h

    def usd(end: str) -> list[Decimal]:
        return [
            Decimal(repr(gpus * MONTH_H / t.hours))
            * (
                Decimal(repr(t.replica_h - t.spot_replica_h)) * getattr(on_demand, end)
                + Decimal(repr(t.spot_replica_h)) * getattr(spot, end)
            )
            for t in totals
        ]

    middle = usd("middle_usd")
    return UsdRange(min(usd("low_usd")), sum(middle, Decimal(0)) / len(middle), max(usd("high_usd")))


def rows_of(tuned: Sequence[Tuned], replays: Replays, needed: np.ndarray, prices: ReplicaPrices) -> list[PolicyRow]:
    """A row for each policy, in their order."""
    return [_row(t, replays, needed, prices) for t in tuned]


def _row(tuned: Tuned, replays: Replays, needed: np.ndarray, prices: ReplicaPrices) -> PolicyRow:
    setting, gpus = replays.setting, replays.setting.service.gpus
    first = round(replays.split_s / setting.interval_s)
    month = [gpus * MONTH_H / t.hours for t in tuned.totals]
    ratios = [t.missed_ratio for t in tuned.totals]
    step_h = setting.interval_s / 3600
    over = [np.maximum(r.paid[first:] - needed[first:], 0).sum() * step_h for r in tuned.runs]
    short = [np.maximum(needed[first:] - r.ready[first:], 0).sum() * step_h for r in tuned.runs]
    learned = tuned.chosen.totals

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    return PolicyRow(
        policy=tuned.kind.name,
        title=tuned.kind.title,
        value=tuned.chosen.value,
        says=tuned.kind.says(setting, tuned.chosen.value),
        meets=tuned.missed_ratio <= setting.slo.missed_ratio,
        missed_pct=100 * tuned.missed_ratio,
        missed_low_pct=100 * min(ratios),
        missed_high_pct=100 * max(ratios),
        mean_wait_s=mean([t.mean_wait_s for t in tuned.totals]),
        most_replicas=max(t.most_replicas for t in tuned.totals),
        gpu_h_per_month=mean([t.replica_h * m for t, m in zip(tuned.totals, month, strict=True)]),
        spot_gpu_h_per_month=mean([t.spot_replica_h * m for t, m in zip(tuned.totals, month, strict=True)]),
        over_gpu_h_per_month=mean([h * m for h, m in zip(over, month, strict=True)]),
        short_gpu_h_per_month=mean([h * m for h, m in zip(short, month, strict=True)]),
        usd_per_month=dollars(tuned.totals, gpus, prices),
        learned_missed_pct=100 * learned.missed_ratio,
        learned_gpu_h_per_month=learned.replica_h * gpus * MONTH_H / learned.hours,
        hindsight=_hindsight(tuned, setting),
    )


def _hindsight(tuned: Tuned, setting: Setting) -> Hindsight | None:
    found = tuned.hindsight
    if found is None:
        return None
    month = found.totals.replica_h * setting.service.gpus * MONTH_H / found.totals.hours
    return Hindsight(found.value, tuned.kind.says(setting, found.value), 100 * found.totals.missed_ratio, month)
