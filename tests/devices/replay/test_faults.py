"""Does exactly what is planned go wrong, when it is planned?"""

from __future__ import annotations

from gpuledger.devices.replay.faults import Codes, DriverError, FaultPlan, LostGpu, Refused, SlowCall, Unsupported

CODES = Codes(lost=15, unsupported=3, refused=4)


def test_each_fault_has_its_time_its_call_and_its_gpu() -> None:
    slept: list[float] = []
    plan = FaultPlan(
        [
            LostGpu(at_s=5.0, gpu=1),
            Unsupported("a"),
            Refused("b", gpu=0),
            DriverError("c", at_s=1.0, times=2, code=999),
            SlowCall("d", 0.4, at_s=1.0),
        ],
        CODES,
        slept.append,
    )
    assert plan.code("x", 1, 4.9) == 0
    assert plan.code("x", 1, 5.0) == 15
    assert plan.code("x", 0, 9.0) == 0
    assert plan.code("a", 0, 0.0) == 3
    assert (plan.code("b", 0, 0.0), plan.code("b", 1, 0.0)) == (4, 0)
    assert [plan.code("c", 0, t) for t in (0.5, 1.0, 1.1, 1.2)] == [0, 999, 999, 0]
    assert [plan.code("d", 0, t) for t in (0.5, 1.0, 1.1)] == [0, 0, 0]
    assert slept == [0.4]
