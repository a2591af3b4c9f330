"""Are the curves of a scenario what they say, and their areas right?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.devices.replay.script import Looped, Ramp, Scenario, Segment, Square

CURVES = st.one_of(
    st.floats(-5, 5).map(lambda v: Segment(10.0, power_w=v).curves["power_w"]),
    st.builds(Ramp, st.floats(-5, 5), st.floats(-5, 5)),
    st.builds(Square, st.floats(0, 5), st.floats(-5, 0), st.floats(0.5, 4.0), st.floats(0.1, 0.9)),
)


@given(CURVES, st.floats(0.0, 10.0))
def test_an_area_is_the_sum_of_values(curve, t: float) -> None:
    steps = 4000
    total = sum(curve.at((k + 0.5) * t / steps, 10.0) for k in range(steps)) * t / steps
    assert curve.area(t, 10.0) == pytest.approx(total, abs=0.1)


def test_a_scenario_by_hand() -> None:
    # 2 s at 100 W, then 4 s rising from 100 to 300 W: 200 J, then 4 x 200 = 800 J.
    scenario = Scenario([Segment(2, power_w=100), Segment(4, power_w=Ramp(100, 300))], energy_start_mj=0)
    assert scenario.length_s == 6
    assert scenario.level("power_w", 1.0) == 100
    assert scenario.level("power_w", 4.0) == 200
    assert scenario.energy_mj(2.0) == 200_000
    assert scenario.energy_mj(6.0) == pytest.approx(1_000_000)
    assert scenario.mean("power_w", 1.0, 4.0) == pytest.approx((100 + 2 * 150) / 3)
    assert scenario.level("power_w", 99.0) == 300
    assert scenario.level("tensor_ratio", 1.0) is None
    assert scenario.mean("tensor_ratio", 0.0, 1.0) is None
    assert scenario.columns == {"power_w"}


def test_a_loop_starts_again_and_its_energy_runs_on() -> None:
    once = Scenario([Segment(2, power_w=100, sm_ratio=0.2), Segment(2, power_w=300, sm_ratio=0.6)], energy_start_mj=50)
    loop = Looped(once)
    assert loop.level("sm_ratio", 9.0) == 0.2
    assert loop.energy_mj(4.0) == 50 + 800_000
    assert loop.energy_mj(9.0) == 50 + 1_600_000 + 100_000
    assert loop.mean("sm_ratio", 4.5, 5.5) == pytest.approx(0.2)
    assert loop.mean("sm_ratio", 3.5, 4.2) == pytest.approx(0.6)
    assert loop.mean("sm_ratio", 3.9, 4.6) == pytest.approx(0.2)
    assert loop.columns == once.columns
