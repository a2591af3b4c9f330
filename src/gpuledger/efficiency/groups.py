"""How did the fleet do while active, each GPU, each GPU model and each namespace?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.thresholds import Targets, Thresholds
from gpuledger.efficiency.hours import HourGroups
from gpuledger.efficiency.means import NO_BOARD, Accounts, Groups, difference, in_order
from gpuledger.efficiency.statement import ActiveAnalysis, Figure, GpuRow, GroupRow, Means
from gpuledger.ledger.cells import CLASSES, classify
from gpuledger.ledger.read.owners import By, TeamOf, named_by, space_name
from gpuledger.ledger.read.rollup import DeviceDays
from gpuledger.ledger.read.scope import NO_NAMESPACE, UNALLOCATED, namespace_name
from gpuledger.physics.causes import cause_figures, known_figures, likely_cause
from gpuledger.physics.purpose import USE, purpose
from gpuledger.units import MS_PER_HOUR, PPM, Unknown, count, ratio

NOT_KNOWN = "not known"
NO_MODEL = "no model name"
NO_ACTIVITY = Unknown("neither utilization nor counters are recorded: idle time cannot be seen")


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


def gpu_rows(
    accounts: Accounts,
    devices: Groups,
    main: Sequence[int],
    days: DeviceDays,
    unobserved_ms: Sequence[int],
    longest_idle_ms: Sequence[int],
    limits: Thresholds,
) -> tuple[GpuRow, ...]:
    """Analysis 6 and the per-GPU summary: one row per device, in the order of the accounts."""
    links = [accounts.facts(row).link_bytes_per_s for row in main]
    link = np.array([np.nan if isinstance(b, Unknown) else b for b in links])
    figures = cause_figures(devices.all, link)
    slow = [consistent(*counts) for counts in zip(days.bottlenecked, days.active, strict=True)]
    causes = [likely_cause(known_figures(figures, i)) if is_slow else None for i, is_slow in enumerate(slow)]
    texts = ("gpu_uuid", "gpu_instance_id", "gpu_model", "cluster", "namespace")
    uuid, instance, model, cluster, namespace = ([accounts.labels[name][row] for row in main] for name in texts)
    # By position, in the order of the fields: names would take a third of the time.
    columns = zip(
        [text or "" for text in uuid],
        instance,
        model,
        days.host,
        days.gpu_index,
        cluster,
        namespace,
        devices.means,
        [class_of(means, limits) for means in devices.means],
        devices.bottlenecked_pct,
        days.bottlenecked,
        days.active,
        slow,
        causes,
        *_idle_hours(devices.all, np.array(longest_idle_ms)),
        (np.array(unobserved_ms) / MS_PER_HOUR).tolist(),
        strict=True,
    )
    return tuple(GpuRow(*row) for row in columns)


def _idle_hours(sums: Mapping[str, np.ndarray], longest_ms: np.ndarray) -> Iterator[list[Figure]]:
    """Hours idle, idle with memory held, and the longest stretch, by device; unknown where nothing shows activity.

    Where memory is not recorded, idle time counts as idle without memory held, as in the bill.
    """
    blind = np.flatnonzero((sums["observed_ms"] > 0) & (sums["unstated_ms"] >= sums["observed_ms"])).tolist()
    for spent_ms in (sums["idle_ms"] + sums["idle_unknown_ms"], sums["idle_held_ms"], longest_ms):
        hours: list[Figure] = (spent_ms / MS_PER_HOUR).tolist()
        for device in blind:
            hours[device] = NO_ACTIVITY
        yield hours


def consistent(bottlenecked_days: int, active_days: int) -> bool:
    """Whether a GPU was bottlenecked on more than half of its active days."""
    return 2 * bottlenecked_days > active_days > 0


def class_of(means: Means, limits: Thresholds) -> str:
    """The class of a device's means; idle needs utilization only."""
    util, pif = means.gpu_util_pct, means.pif
    if isinstance(util, Unknown):
        return NOT_KNOWN
    if isinstance(pif, Unknown):
        return "idle" if util / 100 < limits.classes.idle_util_below_ratio else NOT_KNOWN
    return classify(util / 100, pif, limits)


def _by_name(accounts: Accounts, texts: Sequence[str]) -> tuple[list[str], Groups]:
    """Accounts by the name each has; names in order."""
    names, code = in_order(texts)
    return names, Groups(accounts, code, len(names))


def model_rows(accounts: Accounts) -> tuple[GroupRow, ...]:
    """Analysis 5: means and classes of each model, by name."""
    names, groups = _by_name(accounts, [model or NO_MODEL for model in accounts.labels["gpu_model"]])
    return tuple(
        GroupRow(name, groups.means[i], groups.bottlenecked_pct[i], groups.classes_pct(i))
        for i, name in enumerate(names)
    )


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
    pairs = zip(accounts.labels["namespace"], accounts.owned.tolist(), strict=True)
    names, groups = _by_name(accounts, [space_name(text, owned=owned) for text, owned in pairs])
    series, days = _series(by_hour), _folded_days(by_hour)
    # Hours do not tell time without a namespace apart by whether something else names its owner.
    if UNALLOCATED not in names and UNALLOCATED in series:
        series[NO_NAMESPACE] = series.pop(UNALLOCATED)
    if UNALLOCATED not in names and UNALLOCATED in days:
        days[NO_NAMESPACE] = days.pop(UNALLOCATED)
    rows = []
    for i, name in enumerate(names):
        kind, _, how = purpose(
            name, {n: groups.sum(n, i) for n in USE}, nameless=name if name == NO_NAMESPACE else UNALLOCATED
        )
        goals = {"training": targets.rfu_training_ratio, "inference": targets.rfu_inference_ratio}
        target = 100 * goals[kind] if kind else None
        words = pattern_of(*series.get(name, (np.zeros(0), np.zeros(0))), len(days.get(name, ())))
        words += f"; target {target:.0f} % ({kind}, {how})" if target is not None else f"; no target: {how}"
        shares = groups.bottlenecked_pct[i], groups.classes_pct(i)
        rows.append(GroupRow(name, groups.means[i], *shares, target, words))
    return tuple(rows)


def owner_rows(accounts: Accounts, by: By, team_of: TeamOf) -> tuple[GroupRow, ...]:
    """Means and classes by any dimension of ownership; time without that label has a row that says so."""
    columns = [accounts.labels[name] for name in by.labels]
    texts = [
        named_by(by, dict(zip(by.labels, row, strict=True)), owned=owned, team_of=team_of)
        for *row, owned in zip(*columns, accounts.owned.tolist(), strict=True)
    ]
    names, groups = _by_name(accounts, texts)
    return tuple(
        GroupRow(name, groups.means[i], groups.bottlenecked_pct[i], groups.classes_pct(i))
        for i, name in enumerate(names)
    )


def _series(by_hour: HourGroups) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Hours (since 1970) and mean utilization in percent, by namespace; folded days have none."""
    if not by_hour.sums or not (known := (by_hour.sums["util_ms"] > 0) & ~by_hour.folded).any():
        return {}
    texts = {text: namespace_name(text) for text in set(by_hour.namespace)}
    numbers = {name: i for i, name in enumerate(dict.fromkeys(texts.values()))}
    space = np.array([numbers[texts[text]] for text in by_hour.namespace])[known]
    hour = by_hour.hour[known]
    low, size = int(hour.min()), int(hour.max() - hour.min()) + 1
    held, place = np.unique(space * size + hour - low, return_inverse=True)
    part, known_ms = (np.bincount(place, by_hour.sums[c][known]) for c in ("util_ppm_ms", "util_ms"))
    hours, means = held % size + low, 100 * part / PPM / known_ms
    ends = np.searchsorted(held, size * np.arange(len(numbers) + 1)).tolist()
    return {name: (hours[a:b], means[a:b]) for name, (a, b) in zip(numbers, pairwise(ends), strict=True) if a < b}


def _folded_days(by_hour: HourGroups) -> dict[str, set[int]]:
    """By namespace the starts of its days whose hours were added up to a day."""
    days: dict[str, set[int]] = {}
    folded = np.flatnonzero(by_hour.folded)
    for i, hour in zip(folded.tolist(), by_hour.hour[folded].tolist(), strict=True):
        days.setdefault(namespace_name(by_hour.namespace[i]), set()).add(hour * MS_PER_HOUR)
    return days


def pattern_of(hours: np.ndarray, util_pct: np.ndarray, folded_days: int = 0) -> str:
    """Steady, day/night, bursty or uneven, with the figures that show it. Hours of the day are UTC.

    `folded_days`: days whose hours are gone, which the pattern leaves out.
    """
    folded = f"the hours of {count(folded_days, 'day')} are folded" if folded_days else ""
    if len(hours) < 2:
        return f"pattern unknown: {folded or 'fewer than two hours of utilization'}"
    found = _pattern(hours, util_pct)
    return f"{found} ({folded} and left out)" if folded else found


def _pattern(hours: np.ndarray, util_pct: np.ndarray) -> str:
    rule = _rules().pattern
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
