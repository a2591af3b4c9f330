"""What is each namespace for, and how does its use go over the day?"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.thresholds import Targets
from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.hour_groups import HourGroups
from gpuledger.efficiency.means import by_label
from gpuledger.efficiency.statement import GroupRow
from gpuledger.ledger.read.scope import UNALLOCATED, namespace_name
from gpuledger.physics.purpose import USE, purpose
from gpuledger.units import MS_PER_HOUR, PPM


class _Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steady_below_pp: float
    day_night_explained_from_ratio: float
    day_night_swing_from_pp: float
    day_night_hours: int
    bursty_from_ratio: float


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    pattern: _Pattern


@cache
def _rules() -> _File:
    return load_toml(data_dir(__package__, "data", "patterns.toml"), _File)


def namespace_rows(accounts: Accounts, by_hour: HourGroups, targets: Targets) -> tuple[GroupRow, ...]:
    """Analysis 8: means, classes, target and pattern of each namespace."""
    names, groups = by_label(accounts, "namespace", namespace_name)
    series = _series(by_hour)
    rows = []
    for i, name in enumerate(names):
        kind, _, how = purpose(name, {n: groups.sum(n, i) for n in USE}, nameless=UNALLOCATED)
        goals = {"training": targets.rfu_training_ratio, "inference": targets.rfu_inference_ratio}
        target = 100 * goals[kind] if kind else None
        words = pattern_of(*series.get(name, (np.zeros(0), np.zeros(0))))
        words += f"; target {target:.0f} % ({kind}, {how})" if target is not None else f"; no target: {how}"
        shares = groups.bottlenecked_pct[i], groups.classes_pct(i)
        rows.append(GroupRow(name, groups.means[i], *shares, target, words))
    return tuple(rows)


def _series(by_hour: HourGroups) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Hours (since 1970) and mean utilization in percent, by namespace; folded days tell no time of day."""
    sums: dict[str, dict[int, tuple[float, float]]] = {}
    columns = (by_hour.sums[c].tolist() for c in ("util_ppm_ms", "util_ms") if by_hour.sums)
    for name, (hour_ms, grain_ms), part, known_ms in zip(by_hour.namespace, by_hour.period, *columns, strict=True):
        if known_ms and grain_ms == MS_PER_HOUR:
            hours = sums.setdefault(namespace_name(name), {})
            before = hours.get(hour_ms, (0.0, 0.0))
            hours[hour_ms] = (before[0] + part, before[1] + known_ms)
    out = {}
    for name, hours in sums.items():
        means = [100 * part / PPM / known_ms for part, known_ms in hours.values()]
        out[name] = (np.array(list(hours)) // MS_PER_HOUR, np.array(means))
    return out


def pattern_of(hours: np.ndarray, util_pct: np.ndarray) -> str:
    """Steady, day/night, bursty or uneven, with the figures that say so. Hours of the day are UTC."""
    rule = _rules().pattern
    if len(hours) < 2:
        return "pattern not known: fewer than two hours of utilization"
    mean, spread = float(util_pct.mean()), float(util_pct.std())
    span = f"hourly utilization {util_pct.min():.0f} to {util_pct.max():.0f} %"
    if spread < rule.steady_below_pp:
        return f"steady: {span}"
    if len(hours) >= rule.day_night_hours:
        of_day = (hours % 24).astype(np.int64)
        count = np.bincount(of_day, minlength=24)
        by_hour = np.bincount(of_day, util_pct, minlength=24) / np.maximum(count, 1)
        seen = np.flatnonzero(count)
        # Two dozen means explain a good part of any noise; the adjustment takes that part off.
        left = 1 - float(count @ (by_hour - mean) ** 2) / (len(hours) * spread**2)
        explained = 1 - left * (len(hours) - 1) / (len(hours) - len(seen))
        top, bottom = seen[np.argmax(by_hour[seen])], seen[np.argmin(by_hour[seen])]
        swing = float(by_hour[top] - by_hour[bottom])
        if explained >= rule.day_night_explained_from_ratio and swing >= rule.day_night_swing_from_pp:
            ends = f"{by_hour[top]:.0f} % around {top:02d}:00, {by_hour[bottom]:.0f} % around {bottom:02d}:00 UTC"
            return f"day/night: {ends}"
    word = "bursty" if spread >= rule.bursty_from_ratio * mean else "uneven"
    return f"{word}: {span}"
