"""Which figures of a window does a scrape give? One family each, all of them gauges over the window.

Rates are dollars per hour of the window, so they add up over GPUs, namespaces and buckets. Seconds are within the
window; `gpuledger_window_seconds` has its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version

from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.judged import known_waste
from gpuledger.cost.savings import CASES
from gpuledger.cost.statement import CostRow, CostStatement, GpuCost
from gpuledger.efficiency.health import FAULTS, HealthAnalysis
from gpuledger.efficiency.naming import name_of
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.live.exposition import Family, Value, family
from gpuledger.live.traffic import Traffic
from gpuledger.units import MS_PER_S, Unknown

Named = dict[str, str | None]
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Seen:
    """The statements of a window, and the memory and traffic of its devices."""

    audit: AuditStatement
    efficiency: EfficiencyStatement
    traffic: Mapping[tuple[str, str | None], Traffic]


def window_families(seen: Seen, newest_ms: int) -> tuple[Family, ...]:
    """All families of a window; `newest_ms`: the end of the newest sample."""
    cost, rows = seen.audit.cost, seen.efficiency.per_gpu
    return (
        *lake_families(newest_ms),
        *_window(cost),
        *_money(seen.audit),
        *_by_owner(cost),
        *_by_gpu(rows),
        *_memory(rows, seen.traffic),
        *_gpu_dollars(cost.by_gpu, cost.wall_h),
        *_health(seen.efficiency.health),
    )


def lake_families(newest_ms: int) -> tuple[Family, ...]:
    """What holds whatever the window: the version, and how old the newest sample is."""
    build = [({"version": version("gpuledger")}, 1)]
    newest = [(Named(), newest_ms / MS_PER_S)]
    return (
        family("gpuledger_build_info", "Version of gpuledger; always 1.", build),
        family("gpuledger_newest_sample_timestamp_seconds", "Unix time of the newest sample.", newest),
    )


def _window(cost: CostStatement) -> Iterator[Family]:
    one: Named = {}
    yield family(
        "gpuledger_window_end_timestamp_seconds", "Unix time the window ends.", [(one, cost.end_ms / MS_PER_S)]
    )
    length = (cost.end_ms - cost.start_ms) / MS_PER_S
    yield family("gpuledger_window_seconds", "Length of the window that all figures are over.", [(one, length)])
    yield family("gpuledger_gpus", "GPUs in the window.", [(one, cost.gpus)])
    unpriced = sum(row.gpus for row in cost.unpriced)
    yield family(
        "gpuledger_unpriced_gpus", "GPUs without a known price; no dollar figure holds them.", [(one, unpriced)]
    )


def _money(audit: AuditStatement) -> Iterator[Family]:
    cost, one = audit.cost, Named()
    yield family(
        "gpuledger_paid_usd_per_hour",
        "Dollars per hour paid, of all GPUs with a price.",
        [(one, _rate(cost.paid_usd, cost.wall_h))],
    )
    yield family(
        "gpuledger_bucket_usd_per_hour",
        "Dollars per hour by bucket; stalled, underused, idle and idle_held are waste.",
        [({"bucket": b}, _rate(v, cost.wall_h)) for b, v in cost.buckets.items()],
    )
    yield family(
        "gpuledger_waste_usd_per_hour",
        "Dollars per hour seen to be wasted; none where nothing shows whether paid time did work.",
        [(one, _rate(known_waste(cost.dollars), cost.wall_h))],
    )
    yield family(
        "gpuledger_unknown_info", "Buckets and waste that are unknown, and why; always 1.", _unknown(one, cost)
    )
    month = audit.savings if isinstance(audit.savings, Unknown) else audit.savings.combined_month
    ends = [] if isinstance(month, Unknown) else [(e, getattr(month, f"{e}_usd")) for e in CASES]
    yield family(
        "gpuledger_saving_usd_per_month",
        "What the advice of the audit could save per month, without lower prices; low to high. None from a window of "
        "less than a day.",
        [({"estimate": end}, amount) for end, amount in ends],
    )
    paid = cost.paid_usd
    shares = None if isinstance(audit.savings, Unknown) or isinstance(paid, Unknown) else audit.savings.combined
    yield family(
        "gpuledger_saving_usd_per_hour",
        "What the advice of the audit could save of the dollars per hour paid, without lower prices; low to high.",
        [
            ({"estimate": end}, _rate(paid * getattr(shares, f"{end}_pct") / 100, cost.wall_h))
            for end in (CASES if shares else ())
        ],
    )


def _by_owner(cost: CostStatement) -> Iterator[Family]:
    for label, rows in (("namespace", cost.by_namespace), ("team", cost.by_team)):
        yield family(
            f"gpuledger_{label}_paid_usd_per_hour",
            f"Dollars per hour paid, by {label}.",
            [({label: row.name}, _rate(_paid(row), cost.wall_h)) for row in rows],
        )
        yield family(
            f"gpuledger_{label}_bucket_usd_per_hour",
            f"Dollars per hour by {label} and bucket.",
            [({label: row.name, "bucket": b}, _rate(v, cost.wall_h)) for row in rows for b, v in row.buckets.items()],
        )
        yield family(
            f"gpuledger_{label}_waste_usd_per_hour",
            f"Dollars per hour seen to be wasted, by {label}.",
            [({label: row.name}, _rate(known_waste(row.dollars), cost.wall_h)) for row in rows],
        )
        yield family(
            f"gpuledger_{label}_unknown_info",
            f"Buckets and waste of a {label} that are unknown, and why; always 1.",
            [found for row in rows for found in _unknown({label: row.name}, row)],
        )
        yield family(
            f"gpuledger_{label}_gpus_held",
            f"GPUs paid for on average, by {label}.",
            [({label: row.name}, row.times.paid_h / cost.wall_h if cost.wall_h else None) for row in rows],
        )


def _paid(row: CostRow) -> Decimal | Unknown:
    return row.dollars if isinstance(row.dollars, Unknown) else row.dollars.paid_usd


def _rate(amount: Decimal | Unknown, hours: float) -> float | None:
    return None if isinstance(amount, Unknown) or not hours else float(amount) / hours


def _unknown(of: Named, row: CostRow | CostStatement) -> list[tuple[Named, int]]:
    """A series for each bucket whose dollars are unknown, with the reason."""
    found = [*row.buckets.items(), ("waste", known_waste(row.dollars))]
    return [({**of, "figure": name, "reason": v.why}, 1) for name, v in found if isinstance(v, Unknown)]


def gpu_labels(row: GpuRow | GpuCost) -> Named:
    """The labels of a device."""
    return {
        "gpu": row.gpu_uuid, "mig": row.gpu_instance_id, "name": name_of(row.gpu_uuid, row.host, row.gpu_index),
        "host": row.host, "model": row.gpu_model, "cluster": row.cluster,
    }  # fmt: skip


def _by_gpu(rows: Sequence[GpuRow]) -> Iterator[Family]:
    def by(figure: Callable[[GpuRow], Value | Unknown | None]) -> list[tuple[Named, Value | Unknown | None]]:
        return [(gpu_labels(row), figure(row)) for row in rows]

    def realized(end: str) -> Callable[[GpuRow], Value | Unknown]:
        def figure(row: GpuRow) -> Value | Unknown:
            found = row.means.rfu_counters_pct
            value = found if isinstance(found, Unknown) else getattr(found, end)
            return value if isinstance(value, Unknown) else value / 100

        return figure

    yield family("gpuledger_gpu_utilization_ratio", "Utilization, 0 to 1.", by(lambda r: _part(r.means.gpu_util_pct)))
    for end, suffix in (("low", "_low"), ("point", ""), ("high", "_high")):
        called = "middle" if end == "point" else end
        meaning = f"Realized share of the dense peak by pipe counters, 0 to 1: {called} estimate."
        yield family(f"gpuledger_gpu_realized{suffix}_ratio", meaning, by(realized(end)))
    yield family("gpuledger_gpu_power_watts", "Mean power.", by(lambda r: r.means.power_w))
    activity = "Memory interface activity, 0 to 1."
    yield family("gpuledger_gpu_memory_activity_ratio", activity, by(lambda r: _part(r.means.memory_pct)))
    yield family("gpuledger_gpu_idle_seconds", "Idle, memory free.", by(lambda r: _seconds(r.idle_h)))
    yield family("gpuledger_gpu_idle_held_seconds", "Idle, memory held.", by(lambda r: _seconds(r.idle_held_h)))
    yield family("gpuledger_gpu_observed_seconds", "Time with samples.", by(lambda r: r.means.observed_h * _HOUR_S))


def _memory(rows: Sequence[GpuRow], traffic: Mapping[tuple[str, str | None], Traffic]) -> Iterator[Family]:
    found = [(gpu_labels(row), traffic.get((row.gpu_uuid, row.gpu_instance_id))) for row in rows]
    known = [(labels, one) for labels, one in found if one is not None]
    used = [(labels, one.memory_used_bytes) for labels, one in known]
    yield family("gpuledger_gpu_memory_used_bytes", "Memory in use, mean.", used)
    size = [(labels, one.memory_size_bytes) for labels, one in known]
    yield family("gpuledger_gpu_memory_size_bytes", "Memory of the device.", size)


def _gpu_dollars(costs: Sequence[GpuCost], hours: float) -> Iterator[Family]:
    yield family(
        "gpuledger_gpu_paid_usd_per_hour",
        "Dollars per hour paid for the device.",
        [
            (gpu_labels(c), _rate(c.dollars if isinstance(c.dollars, Unknown) else c.dollars.paid_usd, hours))
            for c in costs
        ],
    )
    yield family(
        "gpuledger_gpu_waste_usd_per_hour",
        "Dollars per hour for stalled, underused, idle and idle-held time of the device.",
        [(gpu_labels(c), _rate(known_waste(c.dollars), hours)) for c in costs],
    )


def _seconds(hours: float | Unknown) -> float | Unknown:
    return hours if isinstance(hours, Unknown) else hours * _HOUR_S


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _part(pct: float | Unknown) -> float | Unknown:
    return pct if isinstance(pct, Unknown) else pct / 100


def _health(health: HealthAnalysis) -> Iterator[Family]:
    """Faults and heat: of the fleet, and of each GPU that has any."""
    one: Named = {}
    rows = [
        ({"gpu": r.gpu_uuid, "name": name_of(r.gpu_uuid, r.host, r.gpu_index), "host": r.host}, r) for r in health.rows
    ]
    for name, (_, many) in FAULTS.items():
        yield family(
            f"gpuledger_{name}",
            f"{_capital(many)} of the fleet in the window, where the source exports them.",
            [(one, getattr(health, name))],
        )
        found = [(labels, getattr(row, name)) for labels, row in rows if getattr(row, name)]
        yield family(f"gpuledger_gpu_{name}", f"{_capital(many)} in the window, of GPUs with any.", found)
    yield family(
        "gpuledger_gpu_thermal_ratio",
        "Share of the time that heat held the clocks down, of GPUs with faults or heat.",
        [(labels, _part(row.thermal_pct)) for labels, row in rows],
    )
    yield family(
        "gpuledger_gpu_temperature_max_celsius",
        "Highest die temperature in the window, of GPUs with faults or heat.",
        [(labels, row.gpu_temp_max_c) for labels, row in rows],
    )
