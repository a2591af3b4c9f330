"""Do the same workers run on the nodes of a real Ray cluster, and is one that dies accounted for?"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from gpuledger.bench.load import Load
from gpuledger.bench.plan import Bench, Station
from gpuledger.bench.runner import Watch, run_bench
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.recording.runs import read_runs
from gpuledger.testing.openai_script import ServerFault, ServerScript
from gpuledger.testing.openai_server import OpenAiServer

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.skipif(sys.version_info >= (3, 14), reason="Ray has no wheel there"),
]
REPLAY = f"replay:{Path(__file__).parents[1] / 'data' / 'h200_replay.csv.gz'}"


def test_no_cluster_there(monkeypatch):
    from gpuledger.bench.ray_crew import connect

    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # the cluster of another test may be there
    with pytest.raises(InputError, match=re.escape("Ray at 127.0.0.1:1: [Errno 111]")):
        connect("127.0.0.1:1")


@pytest.fixture(scope="module")
def crew_on_two_nodes():
    from ray.cluster_utils import Cluster

    from gpuledger.bench.ray_crew import RayCrew, connect

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    connected = connect(cluster.address)
    yield lambda: RayCrew(connected)
    ray.shutdown()
    cluster.shutdown()


def test_two_nodes_answer_and_one_that_dies_is_lost(tmp_path, crew_on_two_nodes):
    crew = crew_on_two_nodes()

    class Kills(Watch):
        left = 30

        def answered(self, requests):
            self.left -= requests
            if self.left <= 0 and self.left + requests > 0:
                crew.kill("b")

    steady = ServerScript(ttft_s=0.02, per_token_s=0.001)
    # Answers some and then none: however late the end comes for b, it comes in the middle of its work.
    endless = msgspec.structs.replace(steady, faults=(ServerFault("stall", after=30),))
    with OpenAiServer(steady) as to_a, OpenAiServer(endless) as to_b:
        stations = (Station("a", {"url": to_a.url}), Station("b", {"url": to_b.url}))
        load = Load(requests=60, concurrency=1, output_tokens=8, warmup=1)
        file = tmp_path / "r.jsonl"
        bench = Bench("openai_http", stations, load, file, timeout_s=HUNG_S, device=REPLAY, elsewhere=True, hz=20.0)
        run = run_bench(bench, crew, Kills())
    assert Counter(r.node for r in run.measured) == {"a": 60, "b": 60}
    assert sum(r.ok for r in run.measured if r.node == "a") == 60
    lost = [r for r in run.measured if r.lost]
    assert {r.node for r in lost} == {"b"}
    assert len(lost) >= 30
    assert "its worker on the cluster died" in run.problems["b"][0]
    machines = [run.nodes[n].more["machine"] for n in ("a", "b")]
    assert all(m["versions"]["ray"] == ray.__version__ for m in machines)
    # Both nodes are this machine: one of the workers recorded it. Where that was the dead one, nothing came back.
    recorded = [m for m in machines if m.get("gpus") == ["NVIDIA H200"]]
    assert len(recorded) == 1
    if machines[0] in recorded:
        assert run.telemetry == "r.lake"
        assert sum(p.rows for p in Lake(run.telemetry_dir).manifest().parts) >= 1
        assert read_runs(Lake(run.telemetry_dir)) == []
