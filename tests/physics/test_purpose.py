from __future__ import annotations

import pytest

from gpuledger.physics.purpose import USE, By, Purpose, purpose
from gpuledger.units import PPM

NOTHING = dict.fromkeys(USE, 0.0)
BUSY = {"active_ms": 1000.0, "active_util_ppm_ms": 0.95 * PPM * 1000}
QUIET = {"active_ms": 1000.0, "active_util_ppm_ms": 0.40 * PPM * 1000}
DECODING = {"tensor_ppm_ms": 100.0, "dram_ppm_ms": 400.0}


@pytest.mark.parametrize(
    ("name", "use", "kind", "by"),
    [
        ("chat-serving", BUSY, "inference", "name"),
        ("ml-training/nightly", QUIET | DECODING, "training", "name"),
        ("platform", BUSY | DECODING, "inference", "memory"),
        ("platform", BUSY, "training", "utilization"),
        ("platform", QUIET, "inference", "utilization"),
        ("platform", {}, None, "none"),
        ("unallocated", BUSY, None, "none"),
    ],
)
def test_what_a_workload_is_for_and_what_shows_it(
    name: str, use: dict[str, float], kind: Purpose | None, by: By
) -> None:
    found = purpose(name, NOTHING | use, nameless="unallocated")
    assert (found.kind, found.by) == (kind, by)
    assert found.how
