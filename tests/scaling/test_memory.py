"""Is memory in use held against the right card, whoever says how much it is?"""

from __future__ import annotations

import pytest
from made_runs import lines, run_of

from gpuledger.scaling.analysis.telemetry import memory_of, no_telemetry
from gpuledger.scaling.figures import GpuPeak, Telemetry
from gpuledger.units import Unknown

A30 = {"gpu": "NVIDIA A30", "gpus": 1}
NONE = no_telemetry("none")


def sampled(*peaks):
    gap = Unknown("not asked here")
    return Telemetry(gap, gap, gap, gap, gap, tuple(GpuPeak(*p) for p in peaks))


def used(nodes, telemetry):
    run = run_of(lines({name: [1.0] for name in nodes}, nodes=nodes))
    return {name: memory_of(run, name, telemetry) for name in nodes}


@pytest.mark.parametrize(
    ("field", "value"),
    [("memory_used_bytes", 15_830_000_000), ("memory_used_gb", 15.83), ("memory_used_mib", 15_830_000_000 / 2**20)],
)
def test_the_node_may_say_it_in_any_unit(field, value):
    found = used({"a": {**A30, field: value}}, NONE)["a"]
    assert found[0] == 15_830_000_000
    assert found[2] == 24e9
    assert found[3] == pytest.approx(65.96, abs=0.01)  # of the real card; of an assumed one of 32 GB it would be 49.5


def test_what_the_node_says_wins_over_the_samples():
    assert used({"a": {**A30, "memory_used_bytes": 1}}, sampled(("h", "GPU-1", 9)))["a"][0] == 1


def test_nodes_on_one_machine_are_told_apart_by_their_gpu():
    nodes = {"a": {**A30, "gpu_uuid": "GPU-1"}, "b": {**A30, "gpu_uuid": "GPU-2"}}
    found = used(nodes, sampled(("h", "GPU-1", 10), ("h", "GPU-2", 20)))
    assert (found["a"][0], found["b"][0]) == (10, 20)


def test_nodes_that_share_a_machine_are_not_guessed_at():
    found = used({"a": A30, "b": A30}, sampled(("h", "GPU-1", 10), ("h", "GPU-2", 20)))
    assert "do not name the GPU of each" in found["a"][0].why


def test_each_machine_of_a_cluster_has_its_own():
    nodes = {name: {**A30, "machine": {"host": f"host-{name}"}} for name in "abc"}
    found = used(nodes, sampled(("host-a", "GPU-1", 10), ("host-a", "GPU-2", 30), ("host-b", "GPU-3", 20)))
    assert (found["a"][0], found["b"][0]) == (30, 20)
    assert "GPUs of host-c were not sampled" in found["c"][0].why


def test_a_card_nobody_knows_is_not_assumed():
    found = used({"a": {"gpu": "NVIDIA Imaginary 9000", "gpus": 1, "memory_used_bytes": 5}}, NONE)["a"]
    assert found[0] == 5
    assert isinstance(found[3], Unknown)
