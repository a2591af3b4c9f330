"""How is the efficiency statement made, what does it assume, and what is unknown?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuledger.arguments import takes
from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.collector import collector_paused
from gpuledger.efficiency.capacity import (
    Capacities,
    capacity_analysis,
    device_capacities,
    main_rows,
    roi,
    unknown_capacity,
)
from gpuledger.efficiency.counted import with_counted
from gpuledger.efficiency.findings import findings
from gpuledger.efficiency.groups import active_analysis, gpu_rows, model_rows, namespace_rows, owner_rows
from gpuledger.efficiency.health import health_analysis
from gpuledger.efficiency.hours import gather, hour_rows, util_power_cells
from gpuledger.efficiency.means import NO_SHARE, Accounts, Groups, fleet, make_accounts
from gpuledger.efficiency.statement import CapacityAnalysis, EfficiencyStatement, NotKnown
from gpuledger.efficiency.trend import trends
from gpuledger.efficiency.xid_codes import with_codes
from gpuledger.lake.layout import AnyLake, posted_lake
from gpuledger.ledger import lines
from gpuledger.ledger.facts import posted_by
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.doubts import doubts
from gpuledger.ledger.read.idle import longest_idle_ms
from gpuledger.ledger.read.owners import By, TeamOf, dimension
from gpuledger.ledger.read.rollup import fleet_hours, hour_lines, quiet_spells, read_accounts
from gpuledger.ledger.read.scope import ACHIEVABLE_SOURCES, Scope, check_source
from gpuledger.ledger.store import PostedDay
from gpuledger.physics.calibration import Calibration
from gpuledger.settings import changed
from gpuledger.times import EDGES_MS, MONTH_FROM_MS
from gpuledger.units import Range, Unknown, count, utc_day


@takes()
@collector_paused()
def efficiency_statement(
    lake: AnyLake,
    scope: Scope | None = None,
    *,
    thresholds: Thresholds | None = None,
    achievable: str = ACHIEVABLE_SOURCES[0],
    calibration: Calibration | None = None,
    by: By | str | None = None,
    team_of: TeamOf = lambda _cluster, _namespace: None,
) -> EfficiencyStatement:
    """The eight analyses over the posted lines of a lake.

    Owners in scope are workloads, run ids or "namespace/workload"; "unallocated" as a namespace is time without an
    owner (a namespace really called so is "unallocated (namespace)").
    `achievable` names the source of achievable TFLOPS, one of `ledger.read.scope.ACHIEVABLE_SOURCES`: as published (the
    default), the vendor's dense peak, or measured. `by`: a dimension of ownership to break the means down by, besides
    namespaces; `team_of`: the team of a namespace, where no label names it.
    """
    wanted, source, limits = scope or Scope(), check_source(achievable), thresholds or load_thresholds()
    asked = None if by is None else dimension(by)
    own = posted_lake(lake, limits)
    books = Books(own, wanted, limits)
    statement = _stated(books, limits, source, calibration, asked, team_of)
    statement = replace(statement, health=with_codes(statement.health, books))
    return with_counted(replace(statement, findings=findings(statement, limits)), own, wanted)


def _stated(
    books: Books, limits: Thresholds, source: str, calibration: Calibration | None, by: By | None, team_of: TeamOf
) -> EfficiencyStatement:
    """The analyses, without findings."""
    scope, found = books.scope, read_accounts(books, () if by is None else by.labels)
    accounts = make_accounts(found, calibration)
    main = main_rows(accounts)
    devices = Groups(accounts, accounts.device, accounts.devices)
    capacities = device_capacities(accounts, devices, main, source, calibration)
    by_model, health = model_rows(accounts), health_analysis(found)
    whole, capacity = fleet(accounts), capacity_analysis(capacities, source)
    idle = longest_idle_ms(quiet_spells(books, found), scope, accounts.devices)
    per_gpu = gpu_rows(accounts, devices, main, found.days, found.unobserved_ms, idle, limits)
    lines, fleet_lines, share = hour_lines(books, found), fleet_hours(books, found), np.nan_to_num(capacities.share)
    sums = gather(lines, fleet_lines, books.names, capacities.seen_tflops, capacities.board, share)
    unknown = capacities.achievable.unknown
    why = unknown[min(unknown)].why if unknown else "no PIF"
    hours = hour_rows(sums, accounts.models, why)
    means, posted, powered = whole.means[0], _posted_days(books, scope), _boards_with_pif(capacities, devices)
    start_ms, end_ms = int(accounts.first_ms.min()), int(accounts.last_ms.max())
    other = [d.day for d in posted if not posted_by(d.rules, limits)]
    folded = [d.day for d in posted if d.folded]
    return EfficiencyStatement(
        start_ms=start_ms,
        end_ms=end_ms,
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
        by_model=by_model,
        per_gpu=per_gpu,
        by_namespace=namespace_rows(accounts, sums.groups, limits.targets),
        by=by,
        by_owner=() if by is None else owner_rows(accounts, by, team_of),
        roi=roi(
            len(powered),
            means.rfu_power_pct,
            limits.targets.roi_rfu_ratios,
            end_ms - start_ms,
            len(powered & _lasting(accounts, cut=scope.since_ms is not None)),
        ),
        findings=(),
        assumptions=(
            *assumptions(accounts, whole, scope, limits, source, calibration, other, cut_by_share=books.cut_by_share),
            *_without_hours(folded, len(posted)),
            *(f"{words[:1].upper()}{words[1:]}." for words in doubts(books.lake, scope)),
        ),
        not_known=not_known(accounts, whole, capacity, unknown_capacity(capacities)),
        health=health,
    )


def _distinct(accounts: Accounts, label: str) -> int:
    return len({text for text in accounts.labels[label] if text is not None})


def _boards_with_pif(capacities: Capacities, devices: Groups) -> set[int]:
    """The boards whose RFU by power is known: what it is scaled over."""
    return {b for b, p in zip(capacities.board.tolist(), devices.pif, strict=True) if not isinstance(p, Unknown)}


def _lasting(accounts: Accounts, *, cut: bool) -> set[int]:
    """The boards that were seen for long enough to say something of a month; `cut`: the window has a beginning."""
    boards = int(accounts.board.max()) + 1
    first, last = np.full(boards, np.iinfo(np.int64).max), np.zeros(boards, dtype=np.int64)
    np.minimum.at(first, accounts.board, accounts.first_ms)
    np.maximum.at(last, accounts.board, accounts.last_ms)
    return set(np.flatnonzero(last - first >= MONTH_FROM_MS - EDGES_MS * cut).tolist())


def _posted_days(books: Books, scope: Scope) -> list[PostedDay]:
    """The posted days within the window, whole or in part."""
    first = "" if scope.since_ms is None else utc_day(scope.since_ms)
    last = "9999" if scope.until_ms is None else utc_day(scope.until_ms - 1)
    return [d for d in books.days if first <= d.day <= last]


_SOURCES = ("as published by GPU Efficiency Analytics", "the vendor's dense peak", "measured")
_BY_POWER = (
    "rfu_power_pct (realized FLOPS utilization, RFU, by power) is 100 x PIF (power intensity factor): power over the "
    "power limit in force, else over board power. Readings above the limit count as the limit. It measures watts, not "
    "FLOPs."
)
_COUNTERS = (
    "rfu_counters_pct is pipe activity x SM clock x SMs x FLOP per clock per SM over the dense peak at the reference "
    "precision (bf16, or fp16 where the GPU has no bf16) and rated clock."
)


def assumptions(
    accounts: Accounts,
    fleet: Groups,
    scope: Scope,
    limits: Thresholds,
    achievable: str,
    calibration: Calibration | None,
    other_rules: Sequence[str],
    *,
    cut_by_share: bool,
) -> tuple[str, ...]:
    """Every choice a figure depends on, in words."""
    b, source = limits.bottleneck, _SOURCES[ACHIEVABLE_SOURCES.index(achievable)]
    out = [
        "Times are UTC. The window is exact to the millisecond: hours that it cuts are posted again from samples.",
        "Means are weighted by time: a sample stands for the time to its device's next one, at most 2.5 median steps.",
        _BY_POWER,
        "rfu_power_idle_corrected_pct subtracts the catalog's idle power from both power and board power.",
        _COUNTERS,
        f"Achievable TFLOPS: {source} ({achievable}). Realized TFLOPS by power are achievable x PIF.",
        _memory(calibration),
        (
            f"Bottlenecked: an active sample with utilization above {100 * b.util_above_ratio:.0f} % "
            f"and PIF below {b.pif_below_ratio:.2f}, over the active time in which PIF is known."
        ),
        "A GPU is bottlenecked on a UTC day if it was for over half of its active time; consistently: on most days.",
        f"Quantiles come from histograms of {lines.bins()} bins: off by at most {100 / lines.bins():.0f} points.",
        "ROI scales from rfu_power_pct: GPUs x (target / current - 1); a month is 30 days. No prices are used.",
    ]
    counted = fleet.counters_pct[0]
    if isinstance(counted, Range) and counted.note:
        out.append(f"Counters: {counted.note}.")
    if calibration and fleet.measured_pct[0] is not None:
        out.append(_measured(calibration))
    if any(i is not None for i in accounts.labels["gpu_instance_id"]):
        out.append("GPUs are counted as boards; a MIG instance is a row of its own with its share of the TFLOPS.")
    if cut_by_share:
        out.append("Samples of an hour or day that the window cuts are gone: its part is taken in proportion to time.")
    if scope.names_owners:
        out.append("Only some owners are in scope; unobserved time and idle stretches are those of the whole device.")
    if other_rules:
        days = other_rules[0] if len(other_rules) == 1 else f"{len(other_rules)} days from {other_rules[0]}"
        out.append(f"Classes of {days} were posted under other limits or board powers than those of now.")
    out += changed(efficiency_classes=limits.origin)
    return tuple(out)


def _without_hours(folded: Sequence[str], days: int) -> list[str]:
    """Which figures rest on days where hours are asked for."""
    if not folded:
        return []
    which = folded[0] if len(folded) == 1 else f"{folded[0]} to {folded[-1]}"
    gone = f"The hours of {len(folded)} of {count(days, 'day')} ({which}) are folded into days"
    left_out = "patterns and ranges by hour leave these days out"
    coarse = "in trends, hourly rows and cells of utilization and power each counts as one long hour"
    return [f"{gone}: {left_out}; {coarse}."]


def _memory(calibration: Calibration | None) -> str:
    if calibration and any(m.bandwidth_bytes_per_s for m in calibration.gpus.values()):
        return (
            "memory_pct is memory interface activity over the bandwidth measured on each board, 100 % where none was."
        )
    return (
        "memory_pct is memory interface activity as the counter gives it: 100 % is every cycle, not what is attainable."
    )


def _measured(calibration: Calibration) -> str:
    found = [m for m in calibration.gpus.values() if m.achievable_tflops]
    dates, kinds = sorted(m.as_of[:10] for m in found), sorted({str(m.precision) for m in found})
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return (
        f"rfu_measured_pct is the same work over the {', '.join(kinds)} TFLOPS measured on each board ({when}), not "
        "over the dense peak."
    )


def not_known(
    accounts: Accounts, fleet: Groups, capacity: CapacityAnalysis, unknown: Sequence[NotKnown]
) -> tuple[NotKnown, ...]:
    """Models without facts first, as they explain the rest; fleet figures without a value; totals over a part."""
    out = []
    for facts in accounts.models.values():
        if isinstance(facts.gpu, Unknown):
            out.append(NotKnown(f"figures of GPU model {facts.name}", facts.gpu.why))
        elif isinstance(idle := facts.idle_mw, Unknown):
            out.append(NotKnown(f"rfu_power_idle_corrected_pct of {facts.name}", idle.why))
    means = fleet.means[0]
    figures = {name: getattr(means, name) for name in means.__dataclass_fields__}
    out += [NotKnown(f"fleet.{name}", value.why) for name, value in figures.items() if isinstance(value, Unknown)]
    if fleet.sum("unshared_ms", 0) and fleet.sum("energy_ms", 0):
        out.append(NotKnown("fleet.energy_kwh for all devices", f"known in part: {NO_SHARE}"))
    if capacity.fleet.note:
        out.append(NotKnown("capacity.fleet for all GPUs", f"known in part: {capacity.fleet.note}"))
    return tuple(dict.fromkeys((*out, *unknown)))
