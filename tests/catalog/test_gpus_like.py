"""Which GPUs may a default power limit and a total memory be of, and is the answer never falsely the only one?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import MEMORY_SEEN_RATIO, gpus_like, load_gpus
from gpuledger.units import Unknown

MIB_PER_BYTE = 1024 / 1e9  # of a label: its GB are GiB


@pytest.mark.parametrize(
    ("default_limit_w", "memory_mib", "name"),
    [
        (700, 81559, "H100-SXM5-80GB"),
        (400, 81920, "A100-SXM4-80GB"),
        (400, 40960, "A100-SXM4-40GB"),
        (350, 24576, "RTX-3090"),
        (320, 10240, "RTX-3080-10GB"),
        (70, 20475, "RTX-4000-SFF-Ada"),
        (72, 23034, "L4"),  # ECC takes a sixteenth
        (700, 143771, "H200-SXM-141GB"),
    ],
)
def test_one_gpu_of_the_catalog_has_both(default_limit_w: float, memory_mib: float, name: str) -> None:
    assert gpus_like(default_limit_w, memory_mib) == (name,)


@pytest.mark.parametrize(
    ("default_limit_w", "memory_mib", "names"),
    [
        (300, 46068, {"A40", "L40", "RTX-6000-Ada", "RTX-A6000"}),
        (300, 49140, {"A40", "L40", "RTX-6000-Ada", "RTX-A6000"}),
        (450, 24564, {"RTX-4090", "RTX-3090-Ti"}),
        (70, 15360, {"T4", "RTX-2000-Ada", "A2", "A16"}),  # the last two: their power is unknown
        (230, 24564, {"RTX-A5000", "RTX-A5500"}),  # the last: its memory is unknown
    ],
)
def test_several_share_both_or_may(default_limit_w: float, memory_mib: float, names: set[str]) -> None:
    assert names <= set(gpus_like(default_limit_w, memory_mib))


@pytest.mark.parametrize(
    ("default_limit_w", "memory_mib"),
    [(449, 24564), (700, 60000), (700, 40960), (0, 0), (float("nan"), float("nan"))],
)
def test_what_no_gpu_has_is_nobodys(default_limit_w: float, memory_mib: float) -> None:
    assert gpus_like(default_limit_w, memory_mib) == ()


@given(st.sampled_from(list(load_gpus().values())), st.floats(*MEMORY_SEEN_RATIO), st.floats(-0.5, 0.5))
def test_a_gpu_is_always_among_those_of_its_own_figures(gpu, seen, off_w) -> None:
    power_w, memory = gpu.figure("board_power_w"), gpu.figure("memory_bytes")
    if isinstance(power_w, Unknown) and isinstance(memory, Unknown):
        return
    limit_w = 5000.0 if isinstance(power_w, Unknown) else power_w + 0.99 * off_w
    memory_mib = 1.0 if isinstance(memory, Unknown) else memory * MIB_PER_BYTE * min(max(seen, 0.901), 1.004)
    assert gpu.name in gpus_like(limit_w, memory_mib)


def test_a_gpu_of_which_both_are_unknown_is_left_out() -> None:
    assert isinstance(load_gpus()["thor"].figure("memory_bytes"), Unknown)
    assert all("Thor" not in gpus_like(w, mib) for w, mib in ((130, 125000), (300, 46068)))
