"""How does the efficiency statement come about: what is read, and which analysis makes which part?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.accounts import Accounts, make_accounts
from gpuledger.efficiency.active import active_analysis
from gpuledger.efficiency.assumptions import assumptions, not_known
from gpuledger.efficiency.bottleneck import gpu_rows
from gpuledger.efficiency.capacity import (
    Capacities,
    capacity_analysis,
    device_capacities,
    main_rows,
    unknown_capacity,
)
from gpuledger.efficiency.counted import with_counted
from gpuledger.efficiency.findings import findings
from gpuledger.efficiency.groups import model_rows
from gpuledger.efficiency.health import health_analysis
from gpuledger.efficiency.hours import gather, hour_rows, util_power_cells
from gpuledger.efficiency.means import Groups, fleet
from gpuledger.efficiency.patterns import namespace_rows
from gpuledger.efficiency.roi import roi
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.efficiency.trend import trends
from gpuledger.lake.layout import Lake
from gpuledger.ledger.facts import rules_fingerprint
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.idle import longest_idle_ms
from gpuledger.ledger.read.rollup import hour_lines, quiet_spells, read_accounts
from gpuledger.ledger.read.scope import Scope, check_source
from gpuledger.ledger.store import PostedDay
from gpuledger.physics.calibration import Calibration
from gpuledger.units import Unknown, utc_day


def efficiency_statement(
    lake: Lake,
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    clusters: Iterable[str] = (),
    namespaces: Iterable[str] = (),
    owners: Iterable[str] = (),
    thresholds: Thresholds | None = None,
    achievable: str = "s0",
    calibration: Calibration | None = None,
) -> EfficiencyStatement:
    """The eight analyses over the posted lines of a lake.

    `owners` are workloads, run ids or "namespace/workload"; "unallocated" as a namespace is time without an owner
    (a namespace really called so is "unallocated (namespace)").
    `achievable` names the source of achievable TFLOPS: "s0" (as published), "peak" (dense) or "measured".
    """
    scope = Scope(since_ms, until_ms, tuple(clusters), tuple(namespaces), tuple(owners))
    source, limits = check_source(achievable), thresholds or load_thresholds()
    statement = _stated(Books(lake, scope, limits), limits, source, calibration)
    return with_counted(replace(statement, findings=findings(statement, limits)), lake, scope)


def _stated(books: Books, limits: Thresholds, source: str, calibration: Calibration | None) -> EfficiencyStatement:
    """The analyses, without findings."""
    scope, found = books.scope, read_accounts(books)
    accounts = make_accounts(found, calibration)
    main = main_rows(accounts)
    devices = Groups(accounts, accounts.device, accounts.devices)
    capacities = device_capacities(accounts, devices, main, source, calibration)
    lines = hour_lines(books, found)
    sums = gather(lines, books.names, capacities.seen_tflops, capacities.board, np.nan_to_num(capacities.share))
    idle_ms = longest_idle_ms(quiet_spells(books, found), scope, accounts.devices)
    unknown = capacities.achievable.unknown
    why = unknown[min(unknown)].why if unknown else "no PIF"
    hours = hour_rows(sums, accounts.models, why)
    per_gpu = gpu_rows(accounts, devices, main, found.days, found.unobserved_ms, idle_ms, limits)
    whole, capacity = fleet(accounts), capacity_analysis(capacities, source)
    means, posted = whole.means[0], _posted_days(books, scope)
    other = [d.day for d in posted if d.rules != rules_fingerprint(limits)]
    return EfficiencyStatement(
        start_ms=int(accounts.first_ms.min()),
        end_ms=int(accounts.last_ms.max()),
        gpus=means.gpus,
        clusters=_distinct(accounts, "cluster"),
        namespaces=_distinct(accounts, "namespace"),
        samples=means.samples,
        conflicts=sum(d.conflicts for d in posted),
        fleet=means,
        capacity=capacity,
        active=active_analysis(whole),
        util_power=util_power_cells(sums, limits),
        hours=hours,
        trends=trends(hours),
        by_model=model_rows(accounts),
        per_gpu=per_gpu,
        by_namespace=namespace_rows(accounts, sums.groups, limits.targets),
        roi=roi(_gpus_with_pif(capacities, devices), means.rfu_power_pct, limits.targets.roi_rfu_ratios),
        findings=(),
        assumptions=assumptions(
            accounts, whole, scope, limits, source, calibration, other, cut_by_share=books.cut_by_share
        ),
        not_known=not_known(accounts, whole, capacity, unknown_capacity(capacities)),
        health=health_analysis(found),
    )


def _distinct(accounts: Accounts, label: str) -> int:
    return len({text for text in accounts.labels[label] if text is not None})


def _gpus_with_pif(capacities: Capacities, devices: Groups) -> int:
    """The boards RFU by power stands on: what it is scaled over."""
    return len({b for b, p in zip(capacities.board.tolist(), devices.pif, strict=True) if not isinstance(p, Unknown)})


def _posted_days(books: Books, scope: Scope) -> list[PostedDay]:
    """The posted days that lie in the window, whole or in part."""
    first = "" if scope.since_ms is None else utc_day(scope.since_ms)
    last = "9999" if scope.until_ms is None else utc_day(scope.until_ms - 1)
    return [d for d in books.days if first <= d.day <= last]
