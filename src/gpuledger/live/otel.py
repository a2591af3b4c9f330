"""What does an OpenTelemetry collector get? hw.gpu.* metrics of a window, one resource per host.

Names, units and attributes are those of the semantic conventions for hardware (GPU metrics, status Development):
opentelemetry.io/docs/specs/semconv/hardware/gpu. Readings are means over the window; energy and errors are sums over
it, sent as deltas. Dollars are metrics of our own, gpuledger.gpu.*. An unknown figure has no data point.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuledger import __version__
from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.statement import GpuCost
from gpuledger.efficiency.health import HealthRow
from gpuledger.efficiency.naming import gpu_name
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.errors import MissingExtra, ServerFault
from gpuledger.lake.batch import device_name
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Gauge, MetricsData, ResourceMetrics, Sum

NS_PER_MS = 1_000_000
JOULES_PER_KWH = 3_600_000
DEFAULT = "http://localhost:4318/v1/metrics"
Attributes = Mapping[str, str]
Place = tuple[str | None, str | None]  # host, cluster


@dataclass(frozen=True)
class Point:
    """One value of one instrument."""

    attributes: Attributes
    value: float | int


@dataclass(frozen=True)
class Instrument:
    """A metric of the conventions, or of ours; `summed`: a sum over the window, else a mean."""

    name: str
    unit: str
    description: str
    summed: bool = False


UTILIZATION = Instrument("hw.gpu.utilization", "1", "Fraction of time spent in a specific task.")
MEMORY = Instrument("hw.gpu.memory.utilization", "1", "Fraction of GPU memory used.")
POWER = Instrument("hw.power", "W", "Mean power drawn by the component.")
ENERGY = Instrument("hw.energy", "J", "Energy consumed by the component.", summed=True)
ERRORS = Instrument("hw.errors", "{error}", "Number of errors encountered by the component.", summed=True)
REALIZED = Instrument("gpuledger.gpu.realized", "1", "Share of the dense peak that pipe counters prove.")
COST = Instrument("gpuledger.gpu.cost", "{USD}/h", "Dollars per hour, by bucket of use.")
# What a fault is called as the type of an error.
FAULTS = {
    "xid_events": "xid", "rows_remapped": "row_remapped", "row_remap_failures": "row_remap_failure",
    "pcie_replays": "pcie_replay",
}  # fmt: skip


def points_of(audit: AuditStatement, efficiency: EfficiencyStatement) -> dict[Place, dict[Instrument, list[Point]]]:
    """All points of a window by host and instrument."""
    found: dict[Place, dict[Instrument, list[Point]]] = {}
    costs = {(c.gpu_uuid, c.gpu_instance_id): c for c in audit.cost.by_gpu}
    sick = {row.gpu_uuid: row for row in efficiency.health.rows}
    faulty = set[str]()
    for row in efficiency.per_gpu:
        here = found.setdefault((row.host, row.cluster), {})
        for instrument, point in (
            *_readings(row),
            *_dollars(row, costs.get((row.gpu_uuid, row.gpu_instance_id)), audit),
        ):
            here.setdefault(instrument, []).append(point)
        if row.gpu_uuid in sick and row.gpu_uuid not in faulty:  # faults are of the board, whatever slices it has
            faulty.add(row.gpu_uuid)
            here.setdefault(ERRORS, []).extend(_errors(row, sick[row.gpu_uuid]))
    return found


def _readings(row: GpuRow) -> Iterable[tuple[Instrument, Point]]:
    means, own = row.means, gpu_attributes(row)
    general = {**own, "hw.gpu.task": "general"}
    realized = means.rfu_counters_pct
    energy = means.energy_kwh if isinstance(means.energy_kwh, Unknown) else means.energy_kwh * JOULES_PER_KWH
    figures: tuple[tuple[Instrument, Attributes, float | Unknown], ...] = (
        (UTILIZATION, general, _part(means.gpu_util_pct)),
        (MEMORY, own, _part(means.memory_pct)),
        (POWER, own, means.power_w),
        (ENERGY, own, energy),
        (REALIZED, own, realized if isinstance(realized, Unknown) else realized.middle / 100),
    )
    return ((i, Point(at, value)) for i, at, value in figures if not isinstance(value, Unknown))


def _dollars(row: GpuRow, cost: GpuCost | None, audit: AuditStatement) -> Iterable[tuple[Instrument, Point]]:
    hours = audit.cost.wall_h
    if cost is None or isinstance(cost.dollars, Unknown) or not hours:
        return ()
    own = gpu_attributes(row)
    each = cost.dollars.each().items()
    return ((COST, Point({**own, "gpuledger.bucket": b}, float(amount) / hours)) for b, amount in each)


def _errors(row: GpuRow, sick: HealthRow) -> Iterable[Point]:
    own = {**gpu_attributes(row), "hw.id": row.gpu_uuid}
    own.pop("hw.parent", None)
    counts = ((kind, getattr(sick, name)) for name, kind in FAULTS.items())
    return (Point({**own, "error.type": kind}, number) for kind, number in counts if number)


def _part(pct: float | Unknown) -> float | Unknown:
    return pct if isinstance(pct, Unknown) else pct / 100


def gpu_attributes(row: GpuRow) -> dict[str, str]:
    """What names a device in the conventions; a MIG slice names its board as its parent."""
    model = row.gpu_model or ""
    found = {
        "hw.id": device_name(row.gpu_uuid, row.gpu_instance_id), "hw.type": "gpu",
        "hw.name": gpu_name(row, row.gpu_instance_id), "hw.model": model, "hw.vendor": _vendor(model),
        "hw.parent": row.gpu_uuid if row.gpu_instance_id else "",
    }  # fmt: skip
    return {name: text for name, text in found.items() if text}


def _vendor(model: str) -> str:
    return next((maker for maker in ("NVIDIA", "AMD", "Intel") if model.casefold().startswith(maker.casefold())), "")


def metrics_data(audit: AuditStatement, efficiency: EfficiencyStatement) -> MetricsData:
    """The window as the SDK's own data; an error where the SDK is not installed."""
    try:
        from opentelemetry.sdk.metrics.export import MetricsData
    except ImportError as error:
        raise MissingExtra("OpenTelemetry", "otel") from error
    span = efficiency.start_ms * NS_PER_MS, efficiency.end_ms * NS_PER_MS
    found = points_of(audit, efficiency)
    return MetricsData([_resource(place, instruments, span) for place, instruments in found.items()])


def _resource(place: Place, found: Mapping[Instrument, Sequence[Point]], span: tuple[int, int]) -> ResourceMetrics:
    from opentelemetry.sdk.metrics.export import Metric, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    host, cluster = place
    named = {"service.name": "gpuledger", "host.name": host, "k8s.cluster.name": cluster}
    resource = Resource({name: text for name, text in named.items() if text})
    metrics = [Metric(i.name, i.description, i.unit, _data(i, points, span)) for i, points in found.items() if points]
    scope = InstrumentationScope("gpuledger", __version__)
    return ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")


def _data(instrument: Instrument, points: Sequence[Point], span: tuple[int, int]) -> Sum | Gauge:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, NumberDataPoint, Sum

    made = [NumberDataPoint(dict(p.attributes), span[0], span[1], p.value) for p in points]
    return Sum(made, AggregationTemporality.DELTA, True) if instrument.summed else Gauge(made)


def send(data: MetricsData, endpoint: str, headers: Mapping[str, str], timeout_s: float = 10.0) -> int:
    """Send to a collector over OTLP/HTTP; the number of points sent. An error where it is not taken."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import MetricExportResult
    except ImportError as error:
        raise MissingExtra("OpenTelemetry", "otel") from error
    exporter = OTLPMetricExporter(endpoint=endpoint, headers=dict(headers), timeout=timeout_s)
    with _said() as said:
        try:
            result = exporter.export(data, timeout_millis=timeout_s * 1000)
        finally:
            exporter.shutdown()
    if result is not MetricExportResult.SUCCESS:
        why = f": {said[0]}" if said else ""
        hint = "start a collector with an OTLP/HTTP receiver there, or give its address"
        raise ServerFault(endpoint, f"did not take the metrics{why}", hint=hint)
    return count_points(data)


def _reason(fault: Exception) -> str:
    """Why a connection failed, without the layers of calls around it."""
    inner = fault.args[0] if fault.args else fault
    return str(getattr(inner, "reason", inner)).rpartition("] ")[2].rstrip(")")


@contextmanager
def _said() -> Iterator[list[str]]:
    """What the exporter would write to the log, kept for the error instead."""
    log, words = logging.getLogger("opentelemetry.exporter.otlp"), list[str]()

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            faults = [a for a in record.args or () if isinstance(a, Exception)]
            words.append(_reason(faults[0]) if faults else record.getMessage())

    keep, before = Keep(), log.propagate
    log.addHandler(keep)
    log.propagate = False
    try:
        yield words
    finally:
        log.removeHandler(keep)
        log.propagate = before


def count_points(data: MetricsData) -> int:
    """How many points there are."""
    metrics = (m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics)
    return sum(len(metric.data.data_points) for metric in metrics)
