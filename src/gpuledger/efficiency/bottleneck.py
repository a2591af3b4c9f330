"""What did each GPU do, and which of them are busy on most days without doing much?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.account_sums import DeviceDays
from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.causes import Figures, likely_cause
from gpuledger.efficiency.means import Groups
from gpuledger.efficiency.statement import GpuRow, Means
from gpuledger.ledger.cells import classify
from gpuledger.units import MS_PER_HOUR, Unknown

NOT_KNOWN = "not known"


def gpu_rows(
    accounts: Accounts,
    devices: Groups,
    main: Sequence[int],
    days: DeviceDays,
    unobserved_ms: Sequence[int] | None,
    longest_idle_ms: Sequence[int],
    limits: Thresholds,
) -> tuple[GpuRow, ...]:
    """Analysis 6 and the per-GPU summary: one row a device, in the order of the accounts."""
    hosts, active_days, slow_days = days.host, days.active, days.bottlenecked
    unobserved = _unobserved_ms(accounts, devices) if unobserved_ms is None else unobserved_ms
    idle_h, held_h = ((devices.sums(c) / MS_PER_HOUR).tolist() for c in ("idle_ms", "idle_held_ms"))
    all_means, slow_pct, labels = devices.means, devices.bottlenecked_pct, accounts.labels
    figures = Figures(devices, [accounts.facts(row) for row in main])
    rows = []
    for device, row in enumerate(main):
        means = all_means[device]
        consistently = consistent(slow_days[device], active_days[device])
        cause, evidence = "", ""
        if consistently:
            cause, evidence = likely_cause(figures.of(device))
        rows.append(
            GpuRow(
                gpu_uuid=labels["gpu_uuid"][row] or "",
                gpu_instance_id=labels["gpu_instance_id"][row],
                gpu_model=labels["gpu_model"][row],
                host=hosts[device],
                cluster=labels["cluster"][row],
                namespace=labels["namespace"][row],
                means=means,
                klass=class_of(means, limits),
                bottlenecked_pct_of_active=slow_pct[device],
                bottlenecked_days=slow_days[device],
                active_days=active_days[device],
                consistently_bottlenecked=consistently,
                likely_cause=cause,
                cause_evidence=evidence,
                idle_h=idle_h[device],
                idle_held_h=held_h[device],
                longest_idle_h=longest_idle_ms[device] / MS_PER_HOUR,
                unobserved_h=max(0, unobserved[device]) / MS_PER_HOUR,
            )
        )
    return tuple(rows)


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


def _unobserved_ms(accounts: Accounts, devices: Groups) -> list[int]:
    """Time between a device's first and last sample that no sample stands for."""
    starts = np.flatnonzero(np.diff(accounts.device, prepend=-1))
    first, last = np.minimum.reduceat(accounts.first_ms, starts), np.maximum.reduceat(accounts.last_ms, starts)
    left: list[int] = (last - first - devices.sums("observed_ms").astype(np.int64)).tolist()
    return left
