"""What does an OpenTelemetry collector get? hw.gpu.* metrics of a window, one resource per host.

Names, units and attributes are those of the semantic conventions for hardware (GPU metrics, status Development):
opentelemetry.io/docs/specs/semconv/hardware/gpu. Readings are means over the window; energy and errors are sums over
it, sent as deltas. Power is of the board; the energy of a MIG slice is its part of the board's. Dollars are metrics of
our own, gpuledger.gpu.*. An unknown figure has no data point.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from gpuledger.cost.statement import GpuCost
from gpuledger.efficiency.health import HealthRow
from gpuledger.efficiency.naming import gpu_name
from gpuledger.efficiency.statement import GpuRow
from gpuledger.errors import MissingExtra, ServerFault
from gpuledger.lake.batch import device_name
from gpuledger.live.figures import Seen
from gpuledger.live.traffic import Traffic
from gpuledger.units import Unknown, point_of

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
    """A metric of the conventions, or of ours.

    A gauge is a mean over the window, a counter a sum over it; an amount is a sum that may also fall.
    """

    name: str
    unit: str
    description: str
    kind: Literal["gauge", "counter", "amount"] = "gauge"


Figure = tuple[Instrument, Attributes, float | int | Unknown | None]
UTILIZATION = Instrument("hw.gpu.utilization", "1", "Fraction of time spent in a specific task.")
MEMORY = Instrument("hw.gpu.memory.utilization", "1", "Fraction of GPU memory used.")
USED = Instrument("hw.gpu.memory.usage", "By", "GPU memory used.", "amount")
LIMIT = Instrument("hw.gpu.memory.limit", "By", "Size of the GPU memory.", "amount")
IO = Instrument("hw.gpu.io", "By", "Received and transmitted bytes by the GPU.", "counter")
POWER = Instrument("hw.power", "W", "Mean power drawn by the component.")
ENERGY = Instrument("hw.energy", "J", "Energy consumed by the component.", "counter")
ERRORS = Instrument("hw.errors", "{error}", "Number of errors encountered by the component.", "counter")
REALIZED = Instrument("gpuledger.gpu.realized", "1", "Share of the dense peak that pipe counters prove.")
COST = Instrument("gpuledger.gpu.cost", "{USD}/h", "Dollars per hour, by bucket of use.")
# What a fault is called as the type of an error.
FAULTS = {
    "xid_events": "xid", "rows_remapped": "row_remapped", "row_remap_failures": "row_remap_failure",
    "pcie_replays": "pcie_replay",
}  # fmt: skip


def points_of(seen: Seen) -> dict[Place, dict[Instrument, list[Point]]]:
    """All points of a window by host and instrument."""
    found: dict[Place, dict[Instrument, list[Point]]] = {}
    costs = {(c.gpu_uuid, c.gpu_instance_id): c for c in seen.audit.cost.by_gpu}
    sick = {row.gpu_uuid: row for row in seen.efficiency.health.rows}
    power = _board_power(seen.efficiency.per_gpu)
    for row in seen.efficiency.per_gpu:
        device, own = (row.gpu_uuid, row.gpu_instance_id), gpu_attributes(row)
        here = found.setdefault((row.host, row.cluster), {})
        figures = (
            *_readings(row, own),
            *_memory(seen.traffic.get(device), own),
            *_dollars(costs.get(device), seen.audit.cost.wall_h, own),
        )
        for instrument, attributes, value in figures:
            if value is not None and not isinstance(value, Unknown):
                here.setdefault(instrument, []).append(Point(attributes, value))
        # Power and faults are of the board, whatever slices it has: its first device brings them.
        board = {**{k: v for k, v in own.items() if k != "hw.parent"}, "hw.id": row.gpu_uuid, "hw.name": gpu_name(row)}
        if (watts := power.pop(row.gpu_uuid, None)) is not None:
            here.setdefault(POWER, []).append(Point(board, watts))
        if faults := sick.pop(row.gpu_uuid, None):
            here.setdefault(ERRORS, []).extend(_errors(board, faults))
    return found


def _board_power(rows: Sequence[GpuRow]) -> dict[str, float]:
    """Mean power by board: as its longest observed slice reports it, not once for each slice."""
    found: dict[str, float] = {}
    for row in sorted(rows, key=lambda r: -r.means.observed_h):
        if not isinstance(row.means.power_w, Unknown):
            found.setdefault(row.gpu_uuid, row.means.power_w)
    return found


def _readings(row: GpuRow, own: Attributes) -> Iterator[Figure]:
    means = row.means
    realized = point_of(means.rfu_counters_pct)
    energy = means.energy_kwh if isinstance(means.energy_kwh, Unknown) else means.energy_kwh * JOULES_PER_KWH
    yield UTILIZATION, {**own, "hw.gpu.task": "general"}, _part(means.gpu_util_pct)
    yield ENERGY, own, energy
    yield REALIZED, own, realized if isinstance(realized, Unknown) else realized / 100


def _memory(traffic: Traffic | None, own: Attributes) -> Iterator[Figure]:
    if traffic is None:
        return
    used, size = traffic.memory_used_bytes, traffic.memory_size_bytes
    yield MEMORY, own, used / size if used is not None and size else None
    yield USED, own, None if used is None else round(used)
    yield LIMIT, own, size
    yield IO, {**own, "network.io.direction": "receive"}, traffic.received_bytes
    yield IO, {**own, "network.io.direction": "transmit"}, traffic.transmitted_bytes


def _dollars(cost: GpuCost | None, hours: float, own: Attributes) -> Iterator[Figure]:
    if cost is None or isinstance(cost.dollars, Unknown) or not hours:
        return
    for bucket, amount in cost.buckets.items():
        figure = amount if isinstance(amount, Unknown) else float(amount) / hours
        yield COST, {**own, "gpuledger.bucket": bucket}, figure


def _errors(board: Attributes, sick: HealthRow) -> Iterator[Point]:
    counts = ((kind, getattr(sick, name)) for name, kind in FAULTS.items())
    return (Point({**board, "error.type": kind}, number) for kind, number in counts if number)


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


def metrics_data(seen: Seen) -> MetricsData:
    """The window as the SDK's own data; an error where the SDK is not installed."""
    try:
        from opentelemetry.sdk.metrics.export import MetricsData
    except ImportError as error:
        raise MissingExtra("OpenTelemetry", "otel") from error
    span = seen.efficiency.start_ms * NS_PER_MS, seen.efficiency.end_ms * NS_PER_MS
    found = points_of(seen)
    return MetricsData([_resource(place, instruments, span) for place, instruments in found.items()])


def _resource(place: Place, found: Mapping[Instrument, Sequence[Point]], span: tuple[int, int]) -> ResourceMetrics:
    from opentelemetry.sdk.metrics.export import Metric, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    host, cluster = place
    named = {"service.name": "gpuledger", "host.name": host, "k8s.cluster.name": cluster}
    resource = Resource({name: text for name, text in named.items() if text})
    metrics = [Metric(i.name, i.description, i.unit, _data(i, points, span)) for i, points in found.items() if points]
    scope = InstrumentationScope("gpuledger", version("gpuledger"))
    return ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")


def _data(instrument: Instrument, points: Sequence[Point], span: tuple[int, int]) -> Sum | Gauge:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, NumberDataPoint, Sum

    made = [NumberDataPoint(dict(p.attributes), span[0], span[1], p.value) for p in points]
    if instrument.kind == "gauge":
        return Gauge(made)
    if instrument.kind == "counter":
        return Sum(made, AggregationTemporality.DELTA, True)
    return Sum(made, AggregationTemporality.CUMULATIVE, False)


def send(data: MetricsData, endpoint: str, headers: Mapping[str, str], timeout_s: float = 10.0) -> int:
    """Send to a collector over OTLP/HTTP; the number of points sent. An error where it is not taken."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import MetricExportResult
    except ImportError as error:
        raise MissingExtra("OpenTelemetry", "otel") from error
    exporter = OTLPMetricExporter(endpoint=endpoint, headers=dict(headers), timeout=timeout_s)
    with _logged() as logged:
        try:
            result = exporter.export(data, timeout_millis=timeout_s * 1000)
        finally:
            exporter.shutdown()
    if result is not MetricExportResult.SUCCESS:
        why = _unreachable(endpoint, timeout_s) or " ".join(logged[:1]) or "no reason given"
        hint = "start a collector with an OTLP/HTTP receiver there, or give its address"
        raise ServerFault(endpoint, f"did not take the metrics: {why}", hint=hint)
    return count_points(data)


def _unreachable(endpoint: str, timeout_s: float) -> str:
    """Why an address does not answer; empty where it does."""
    parts = urlsplit(endpoint)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout_s).close()
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""


@contextmanager
def _logged() -> Iterator[list[str]]:
    """What the exporter would write to the log, kept for the error instead."""
    log, words = logging.getLogger("opentelemetry.exporter.otlp"), list[str]()

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words.append(record.getMessage())

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
