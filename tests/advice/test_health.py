"""Does a failing or hot GPU get a node drained, counted once a board, for no dollars?"""

from __future__ import annotations

import pytest
from casebook import case

from gpuledger.advice.case import Health, health_of
from gpuledger.advice.findings import find
from gpuledger.advice.limits import load_limits
from gpuledger.advice.rule import RULES
from gpuledger.ledger.read.rollup import HEALTH
from gpuledger.units import MS_PER_HOUR, Unknown

LIMITS = load_limits()
RULE = RULES.get("health")
HOUR = MS_PER_HOUR


def sums(**given: int) -> dict[str, int]:
    return dict.fromkeys(HEALTH, 0) | given


def test_a_board_counts_once_however_many_instances_report_it():
    found = health_of(
        [
            ("GPU-a", "1", sums(xid_events=2, throttle_ms=HOUR, thermal_ms=HOUR // 2)),
            ("GPU-a", "2", sums(xid_events=2, throttle_ms=HOUR, thermal_ms=HOUR // 2)),
            ("GPU-b", None, sums(xid_events=1, throttle_ms=HOUR)),
            ("GPU-b", None, sums(rows_remapped=1, throttle_ms=HOUR)),
        ]
    )
    # GPU-a: 2 and half of one hour; GPU-b: 1 and none of two hours.
    assert found.xid_events == 3
    assert found.hottest_ratio == pytest.approx(0.5)
    assert found.affected == ("GPU-a", "GPU-b")


def test_one_hot_gpu_among_many_is_found():
    many = [(f"GPU-{i:03d}", None, sums(throttle_ms=HOUR)) for i in range(200)]
    found = health_of([*many, ("GPU-hot", None, sums(throttle_ms=HOUR, thermal_ms=HOUR // 2))])
    assert found.affected == ("GPU-hot",)


def test_nothing_recorded_is_not_a_healthy_gpu_and_no_advice():
    found = health_of([("GPU-a", None, sums())])
    assert isinstance(found.hottest_ratio, Unknown)
    assert find(RULE, case("compute-bound", health=found), LIMITS) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"xid_events": 3}, "3 XID errors on GPU-a"),
        ({"row_remap_failures": 1}, "1 failed row remapping on GPU-a"),
        ({"throttle_ms": HOUR, "thermal_ms": HOUR // 5}, "held down by heat for up to 20 % of a GPU's time on GPU-a"),
    ],
)
def test_faults_and_heat_drain_the_node(given, words):
    found = find(RULE, case("compute-bound", health=health_of([("GPU-a", None, sums(**given))])), LIMITS)
    assert found is not None
    assert words in found.reason.why
    assert found.lever is None
    assert found.reason.devices == ("GPU-a",)
    for part in ("kubectl cordon", "dcgmi diag -r 3", "nvidia-smi -q -i GPU-a -d ROW_REMAPPER"):
        assert part in found.change.text


@pytest.mark.parametrize("given", [{"rows_remapped": 2}, {"pcie_replays": 9}, {"throttle_ms": HOUR, "thermal_ms": 1}])
def test_repairs_that_worked_and_a_moment_of_heat_are_no_reason_to_drain(given):
    assert find(RULE, case("compute-bound", health=health_of([("GPU-a", None, sums(**given))])), LIMITS) is None
    assert find(RULE, case("compute-bound", health=Health()), LIMITS) is None
