"""Do exchanges take what a pencil says, and does a slower way never take less?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import get_gpu, load_gpus
from gpuledger.plan.speed.facts import Way, all_reduce_s, gather_s, way


def test_a_ring_by_pencil():
    over = Way("test", 100e9)
    assert all_reduce_s(8e9, 4, over) == pytest.approx(2 * 3 / 4 * 8 / 100)
    assert gather_s(8e9, 4, over) == pytest.approx(3 / 4 * 8 / 100)
    assert all_reduce_s(8e9, 1, over) == gather_s(8e9, 1, over) == 0


def test_the_way_of_a_group():
    h100, l40s, pcie = get_gpu("h100-sxm"), get_gpu("l40s"), get_gpu("a100-pcie-80gb")
    assert way(h100, 8).bytes_per_s == pytest.approx(450e9 * 0.82)
    assert way(l40s, 4).words == "PCIe4 x16"
    # A bridge joins two cards; four of them meet over PCIe.
    assert way(pcie, 4).bytes_per_s < way(pcie, 2).bytes_per_s
    # One 400 Gb/s adapter a GPU: 50 GB/s, of which 0.8 is reached; eight in a node share the bytes.
    assert way(h100, 16).bytes_per_s == pytest.approx(40e9)
    assert way(h100, 16, node_gbps=100).bytes_per_s == pytest.approx(10e9)
    assert way(h100, 64, in_node=8).bytes_per_s == pytest.approx(8 * 40e9)
    assert way(h100, 64, in_node=8, node_gbps=3200).bytes_per_s == way(h100, 8).bytes_per_s


def test_every_gpu_has_a_way():
    for gpu in load_gpus().values():
        assert way(gpu, 8).bytes_per_s > 1e9
