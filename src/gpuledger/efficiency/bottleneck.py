"""What did each GPU do, and which of them are busy on most days without doing much?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.means import Groups
from gpuledger.efficiency.statement import GpuRow, Means
from gpuledger.ledger.cells import classify
from gpuledger.ledger.read.rollup import DeviceDays
from gpuledger.physics.causes import cause_figures, known_figures, likely_cause
from gpuledger.units import MS_PER_HOUR, Unknown

NOT_KNOWN = "not known"


def gpu_rows(
    accounts: Accounts,
    devices: Groups,
    main: Sequence[int],
    days: DeviceDays,
    unobserved_ms: Sequence[int],
    longest_idle_ms: Sequence[int],
    limits: Thresholds,
) -> tuple[GpuRow, ...]:
    """Analysis 6 and the per-GPU summary: one row a device, in the order of the accounts."""
    links = [accounts.facts(row).link_bytes_per_s for row in main]
    link = np.array([np.nan if isinstance(b, Unknown) else b for b in links])
    figures = cause_figures(devices.all, link)
    slow = [consistent(*counts) for counts in zip(days.bottlenecked, days.active, strict=True)]
    causes = [likely_cause(known_figures(figures, i)) if is_slow else None for i, is_slow in enumerate(slow)]
    # By position, in the order of the fields: names would take a third of the time.
    columns = zip(
        (uuid or "" for uuid in _of(accounts, "gpu_uuid", main)),
        _of(accounts, "gpu_instance_id", main),
        _of(accounts, "gpu_model", main),
        days.host,
        _of(accounts, "cluster", main),
        _of(accounts, "namespace", main),
        devices.means,
        [class_of(means, limits) for means in devices.means],
        devices.bottlenecked_pct,
        days.bottlenecked,
        days.active,
        slow,
        causes,
        (devices.sums("idle_ms") / MS_PER_HOUR).tolist(),
        (devices.sums("idle_held_ms") / MS_PER_HOUR).tolist(),
        (np.array(longest_idle_ms) / MS_PER_HOUR).tolist(),
        (np.array(unobserved_ms) / MS_PER_HOUR).tolist(),
        strict=True,
    )
    return tuple(GpuRow(*row) for row in columns)


def _of(accounts: Accounts, label: str, rows: Sequence[int]) -> list[str | None]:
    texts = accounts.labels[label]
    return [texts[row] for row in rows]


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
