"""What did each GPU do, and which of them are busy on most days without doing much?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.causes import figures_of, likely_cause
from gpuledger.efficiency.means import Groups
from gpuledger.efficiency.statement import GpuRow, Means
from gpuledger.ledger.cells import classify
from gpuledger.units import MS_PER_HOUR, Unknown

NOT_KNOWN = "not known"
Device = tuple[str, str | None]


def gpu_rows(
    accounts: Accounts,
    devices: Groups,
    main: Sequence[int],
    days: pa.Table,
    coverage: pa.Table | None,
    longest_idle_ms: Sequence[int],
    limits: Thresholds,
) -> tuple[GpuRow, ...]:
    """Analysis 6 and the per-GPU summary: one row a device, in the order of the accounts."""
    hosts, active_days, slow_days = (days[c].to_pylist() for c in ("host", "active_days", "bottlenecked_days"))
    unobserved = _unobserved_ms(accounts, devices, coverage)
    idle_h, held_h = ((devices.sums(c) / MS_PER_HOUR).tolist() for c in ("idle_ms", "idle_held_ms"))
    all_means, slow_pct, labels = devices.means, devices.bottlenecked_pct, accounts.labels
    rows = []
    for device, row in enumerate(main):
        means = all_means[device]
        consistently = consistent(slow_days[device], active_days[device])
        cause, evidence = "", ""
        if consistently:
            cause, evidence = likely_cause(figures_of(devices, device, accounts.facts(row)))
        key = (labels["gpu_uuid"][row] or "", labels["gpu_instance_id"][row])
        rows.append(
            GpuRow(
                gpu_uuid=key[0],
                gpu_instance_id=key[1],
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
                unobserved_h=max(0, unobserved[key]) / MS_PER_HOUR,
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


def _unobserved_ms(accounts: Accounts, devices: Groups, coverage: pa.Table | None) -> dict[Device, int]:
    """Time between a device's first and last sample that no sample stands for, whoever owned it.

    `coverage` is all owners' where the accounts are those of some only.
    """
    if coverage is None:
        starts = np.flatnonzero(np.diff(accounts.device, prepend=-1))
        first, last = np.minimum.reduceat(accounts.first_ms, starts), np.maximum.reduceat(accounts.last_ms, starts)
        keys = [(accounts.labels["gpu_uuid"][i] or "", accounts.labels["gpu_instance_id"][i]) for i in starts.tolist()]
        left = last - first - devices.sums("observed_ms").astype(np.int64)
        return dict(zip(keys, left.tolist(), strict=True))
    columns = (coverage[c].to_pylist() for c in ("gpu_uuid", "gpu_instance_id", "first_ms", "last_ms", "observed_ms"))
    return {(uuid, instance): last - first - seen for uuid, instance, first, last, seen in zip(*columns, strict=True)}
