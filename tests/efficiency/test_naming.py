"""Is a GPU called what people call it, and can it still be looked up?"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gpuledger.efficiency.naming import Placed, gpu_name, name_with_uuid, short_uuid, sort_name

UUID = "GPU-a5f66776-74db-5da2-8e9e-37a75ed830dd"


@dataclass(frozen=True)
class Gpu:
    gpu_uuid: str
    host: str | None = None
    gpu_index: str | None = None


@pytest.mark.parametrize(
    ("gpu", "name", "long"),
    [
        (Gpu(UUID, "node-1", "0"), "node-1/0", f"node-1/0 ({UUID})"),
        (Gpu(UUID, "node-1"), "node-1 (a5f66776)", f"node-1 ({UUID})"),
        (Gpu(UUID, None, "0"), "a5f66776", UUID),  # every host has a GPU 0
        (Gpu(UUID), "a5f66776", UUID),
        (Gpu("GPU-a"), "GPU-a", "GPU-a"),
    ],
)
def test_host_and_index_or_what_is_known(gpu: Gpu, name: str, long: str) -> None:
    assert isinstance(gpu, Placed)
    assert gpu_name(gpu) == name
    assert gpu_name(gpu, "2") == f"{name} MIG 2"
    assert name_with_uuid(gpu) == long


def test_a_name_made_of_host_and_index_is_not_cut() -> None:
    assert short_uuid("a-long-host-name:gpu3") == "a-long-host-name:gpu3"


def test_gpus_sort_by_host_and_number() -> None:
    gpus = [Gpu(f"GPU-{n}", host, n) for host in ("a", "b") for n in ("0", "2", "10")]
    mixed = [gpus[i] for i in (5, 2, 0, 4, 1, 3)]
    assert sorted(mixed, key=sort_name) == gpus
