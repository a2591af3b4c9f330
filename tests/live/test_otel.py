"""Does a receiver over a real socket get hw.gpu.* metrics as the conventions name them?"""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cost.fleets import ENERGY, MEMORY, POWER, UTIL, lake_of, mig, samples
from gpuledger.advice.asking import asked
from gpuledger.errors import ServerFault
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.live.metrics import read_window
from gpuledger.live.otel import count_points, metrics_data, send
from gpuledger.units import MIB

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)


class Receiver:
    """An OTLP/HTTP receiver: decodes what it is sent, answers with a status."""

    def __init__(self, status: int = 200) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                request = ExportMetricsServiceRequest()
                request.ParseFromString(body)
                receiver.requests.append(request)
                receiver.headers.append(dict(self.headers))
                self.send_response(status)
                answer = ExportMetricsServiceResponse().SerializeToString()
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.at = f"http://127.0.0.1:{self._server.server_port}/v1/metrics"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def sent(receiver: Receiver) -> list[tuple[dict[str, str], str, Any, dict[str, str], Any]]:
    """Resource, name, metric, attributes and point of everything that came."""

    def texts(pairs: Any) -> dict[str, str]:
        return {p.key: p.value.string_value for p in pairs}

    out = []
    for request in receiver.requests:
        for resource in request.resource_metrics:
            for metric in (m for s in resource.scope_metrics for m in s.metrics):
                data = metric.gauge if metric.HasField("gauge") else metric.sum
                for point in data.data_points:
                    own = texts(point.attributes)
                    out.append((texts(resource.resource.attributes), metric.name, metric, own, point))
    return out


def push(lake: Lake, receiver: Receiver, **terms: Any) -> int:
    data = metrics_data(read_window(lake, Scope(), asked(lake.root, **terms)))
    return send(data, receiver.at, {"x-token": "t"}, 5)


@pytest.fixture
def two(tmp_path: Path) -> Lake:
    """A whole GPU and one cut in two, an hour of each, at 300 W."""
    use = {UTIL: 40, POWER: 300, MEMORY: 10_000, "DCGM_FI_DEV_FB_FREE": 30_000}
    rows = []
    for m in range(61):
        rows += samples([m], "GPU-a", Hostname="h1", cluster="c1", **use, **{ENERGY: m * 60 * 300 * 1000})
        for s in ("1", "2"):
            rows += samples([m], "GPU-b", Hostname="h2", **mig(s, "3g.20gb"), **use)
    return lake_of(tmp_path, rows)


def test_names_units_and_attributes_are_those_of_the_conventions(two: Lake, receiver: Receiver) -> None:
    push(two, receiver, price=2)
    found = sent(receiver)
    units = {name: metric.unit for _, name, metric, _, _ in found}
    assert units == {
        "hw.gpu.utilization": "1", "hw.gpu.memory.utilization": "1", "hw.power": "W", "hw.energy": "J",
        "hw.gpu.memory.usage": "By", "hw.gpu.memory.limit": "By", "gpuledger.gpu.cost": "{USD}/h",
    }  # fmt: skip
    for _, name, _, own, _ in found:
        assert own["hw.id"]
        assert own["hw.type"] == "gpu"
        assert own["hw.vendor"] == "NVIDIA"
        assert own["hw.model"] == "NVIDIA A100-SXM4-40GB"
        assert (own.get("hw.gpu.task") == "general") == (name == "hw.gpu.utilization")
    assert receiver.headers[0]["x-token"] == "t"


def test_hosts_are_resources_and_slices_name_their_board(two: Lake, receiver: Receiver) -> None:
    push(two, receiver, price=2)
    found = [(where, own) for where, name, _, own, _ in sent(receiver) if name == "hw.gpu.memory.usage"]
    assert {(w["host.name"], w.get("k8s.cluster.name"), own["hw.id"], own.get("hw.parent")) for w, own in found} == {
        ("h1", "c1", "GPU-a", None), ("h2", None, "GPU-b/1", "GPU-b"), ("h2", None, "GPU-b/2", "GPU-b"),
    }  # fmt: skip
    assert {where["service.name"] for where, _ in found} == {"gpuledger"}


def test_values_are_those_of_the_statements(two: Lake, receiver: Receiver) -> None:
    push(two, receiver, price=2)
    values: dict[tuple[str, str], float] = {}
    for _, name, metric, own, point in sent(receiver):
        if name == "gpuledger.gpu.cost":
            continue
        values[name, own["hw.id"]] = point.as_double or point.as_int
        assert point.start_time_unix_nano < point.time_unix_nano
        assert metric.HasField("sum") == (name in {"hw.energy", "hw.gpu.memory.usage", "hw.gpu.memory.limit"})
    assert values["hw.gpu.utilization", "GPU-a"] == pytest.approx(0.4)
    assert values["hw.gpu.memory.utilization", "GPU-a"] == pytest.approx(0.25)
    assert values["hw.gpu.memory.usage", "GPU-a"] == 10_000 * MIB
    assert values["hw.gpu.memory.limit", "GPU-a"] == 40_000 * MIB
    assert values["hw.power", "GPU-a"] == pytest.approx(300)
    assert values["hw.energy", "GPU-a"] == pytest.approx(300 * 61 * 60, rel=0.02)
    # A board that is cut draws its power once: its slices have their parts of it.
    parts = [values["hw.energy", f"GPU-b/{s}"] for s in ("1", "2")]
    assert sum(parts) == pytest.approx(300 * 61 * 60, rel=0.02)


def test_the_power_of_a_board_comes_once_and_not_with_each_slice(two: Lake, receiver: Receiver) -> None:
    push(two, receiver, price=2)
    found = [(own, point) for _, name, _, own, point in sent(receiver) if name == "hw.power"]
    assert {own["hw.id"]: point.as_double for own, point in found} == pytest.approx({"GPU-a": 300, "GPU-b": 300})
    assert not any("hw.parent" in own or "MIG" in own["hw.name"] for own, _ in found)


def test_energy_is_a_growing_sum_over_the_window(two: Lake, receiver: Receiver) -> None:
    push(two, receiver, price=2)
    (metric, *_) = [m for _, name, m, _, _ in sent(receiver) if name == "hw.energy"]
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == 1  # delta


def test_dollars_by_bucket_add_up_to_the_price(two: Lake, receiver: Receiver) -> None:
    push(two, receiver, price=2)
    costs = [(own["hw.id"], p.as_double) for _, name, _, own, p in sent(receiver) if name == "gpuledger.gpu.cost"]
    assert sum(cost for gpu, cost in costs if gpu == "GPU-a") == pytest.approx(2)


def test_what_is_unknown_has_no_point(tmp_path: Path, receiver: Receiver) -> None:
    lake = lake_of(tmp_path, samples(range(60), "GPU-x", "Banana 9000", **{UTIL: 50}))
    count = push(lake, receiver)
    assert {name for _, name, _, _, _ in sent(receiver)} == {"hw.gpu.utilization"}
    assert count == 1


def test_bytes_moved_are_counted_by_direction(tmp_path: Path, receiver: Receiver) -> None:
    moved = {"DCGM_FI_PROF_PCIE_RX_BYTES": 1_000_000, "DCGM_FI_PROF_PCIE_TX_BYTES": 500_000}
    push(lake_of(tmp_path, samples(range(61), **{UTIL: 50, **moved})), receiver, price=1)
    found = {own["network.io.direction"]: p.as_int for _, name, _, own, p in sent(receiver) if name == "hw.gpu.io"}
    assert found == {"receive": 3660 * 1_000_000, "transmit": 3660 * 500_000}


def test_the_whole_fleet_arrives(lake: Lake, receiver: Receiver) -> None:
    made = metrics_data(read_window(lake, Scope(), asked(lake.root)))
    assert send(made, receiver.at, {}, 10) == count_points(made) == len(sent(receiver))


@pytest.mark.parametrize("status", [400, 401])
def test_a_receiver_that_refuses_is_an_error_with_its_reason(two: Lake, status: int) -> None:
    refusing = Receiver(status)
    try:
        with pytest.raises(ServerFault, match=str(status)):
            push(two, refusing, price=2)
    finally:
        refusing.stop()


def test_nobody_there_is_an_error_that_says_so(two: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    data = metrics_data(read_window(two, Scope(), asked(two.root, price=2)))
    gone = Receiver()
    gone.stop()
    with pytest.raises(ServerFault, match="refused"):
        send(data, gone.at, {}, 0.5)
    assert capfd.readouterr().err == ""
