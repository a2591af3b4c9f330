"""Do stamps follow the calendar without bending the series?"""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.devices.clock import Clock, Stamper
from gpuledger.devices.replay.clock import EPOCH_S, QuickClock, VirtualClock
from gpuledger.devices.replay.faults import ClockStep


def test_a_stamp_is_the_wall_time_on_even_milliseconds() -> None:
    clock = VirtualClock()
    stamper = Stamper(clock)
    clock.sleep(1.2345)
    assert stamper.stamp(clock.monotonic()) == int(EPOCH_S * 1000) + 1234


def test_a_step_is_noticed_once_noted_and_followed() -> None:
    clock = VirtualClock(steps=[ClockStep(5.0, 3600.0)])
    stamper = Stamper(clock)
    clock.sleep(4.0)
    assert stamper.check() is None
    clock.sleep(2.0)
    step = stamper.check()
    assert step is not None
    assert step.step_s == 3600.0
    assert stamper.check() is None
    assert stamper.stamp(clock.monotonic()) == int((EPOCH_S + 6 + 3600) * 1000)


@given(st.lists(st.integers(1, 300), min_size=5, max_size=40), st.integers(60, 5000))
def test_time_lived_through_twice_gives_no_stamp_twice(pauses_ms: list[int], back_ms: int) -> None:
    half = len(pauses_ms) // 2
    clock = VirtualClock(steps=[ClockStep(sum(pauses_ms[:half]) / 1000, -back_ms / 1000)])
    stamper, stamps = Stamper(clock), []
    for k, pause in enumerate(pauses_ms):
        clock.sleep(max(pause, 3) / 1000)
        if k >= half:
            stamper.check()
        stamps.append(stamper.stamp(clock.monotonic()))
    assert len(set(stamps)) == len(stamps)


def test_real_clocks_wait_and_can_be_stopped() -> None:
    for clock in (Clock(), QuickClock(speed=50.0)):
        stop = threading.Event()
        before = clock.monotonic()
        assert not clock.wait(stop, 0.01)
        clock.sleep(0.01)
        assert clock.monotonic() - before >= 0.02 - 1e-3
        assert clock.wall() > 1.7e9
        stop.set()
        assert clock.wait(stop, 60.0)
