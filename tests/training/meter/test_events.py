"""Do the phases of a step add up, and is a device ever waited for?"""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.training.meter.events import MOST_MARKS, PHASES, EventTimer, HostTimer, Marks, StepTimes


class FakeEvent:
    """An event of a device that reaches its marks only when told to."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.at_ms = cuda, 0.0

    def record(self) -> None:
        self.at_ms = self.cuda.clock_ms
        self.cuda.recorded += 1
        self.number = self.cuda.recorded

    def query(self) -> bool:
        return self.number <= self.cuda.reached

    def elapsed_time(self, other: FakeEvent) -> float:
        assert self.query(), "read before it happened"
        assert other.query(), "read before it happened"
        return other.at_ms - self.at_ms


class FakeCuda:
    def __init__(self) -> None:
        self.clock_ms, self.recorded, self.reached, self.made, self.synchronized = 0.0, 0, 0, 0, 0

    def Event(self, *, enable_timing: bool) -> FakeEvent:  # noqa: N802
        assert enable_timing
        self.made += 1
        return FakeEvent(self)

    capturing = False

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def synchronize(self) -> None:
        self.synchronized += 1
        self.reached = self.recorded


def followed() -> tuple[FakeCuda, Marks, list[StepTimes]]:
    cuda, done = FakeCuda(), list[StepTimes]()
    return cuda, Marks(EventTimer(cuda), done.append), done


def step(cuda: FakeCuda, marks: Marks, index: int, spent: list[tuple[str, float]]) -> None:
    marks.begin(index, spent[0][0])
    for phase, ms in spent:
        marks.mark(phase)
        cuda.clock_ms += ms
    marks.end()


@given(st.lists(st.tuples(st.sampled_from(PHASES), st.integers(0, 1000)), min_size=1, max_size=40))
def test_the_phases_add_up_to_the_step(spent):
    cuda, marks, done = followed()
    step(cuda, marks, 0, spent)
    marks.finish()
    assert done[0].seconds == pytest.approx(sum(ms for _, ms in spent) / 1000)
    for phase in PHASES:
        assert done[0].device_s[phase] == pytest.approx(sum(ms for p, ms in spent if p == phase) / 1000)


def test_the_loop_never_waits_for_the_device():
    cuda, marks, done = followed()
    for index in range(50):
        step(cuda, marks, index, [("forward", 3.0), ("backward", 5.0)])
    assert done == [], "the device reached nothing yet"
    assert cuda.synchronized == 0
    cuda.reached = cuda.recorded // 2
    step(cuda, marks, 50, [("forward", 1.0)])
    assert 20 <= len(done) <= 26
    assert cuda.synchronized == 0
    marks.finish()
    assert cuda.synchronized == 1
    assert [s.index for s in done] == list(range(51))


def test_events_are_used_again():
    cuda, marks, _ = followed()
    for index in range(200):
        step(cuda, marks, index, [("forward", 1.0), ("backward", 1.0)])
        cuda.reached = cuda.recorded
    assert cuda.made <= 12


def test_a_wait_within_the_forward_pass_is_taken_out_of_it():
    cuda, marks, done = followed()
    step(cuda, marks, 0, [("forward", 10.0), ("sync", 2.0), ("forward", 5.0)])
    marks.finish()
    assert (done[0].device_s["forward"], done[0].device_s["sync"]) == (0.015, 0.002)


def test_a_step_that_was_left_is_forgotten():
    cuda, marks, done = followed()
    marks.begin(0, "data_wait")
    marks.drop()
    step(cuda, marks, 1, [("forward", 1.0)])
    marks.finish()
    assert [s.index for s in done] == [1]


def test_too_many_waits_are_counted_but_not_timed():
    cuda, marks, done = followed()
    step(cuda, marks, 0, [("sync" if i % 2 else "forward", 1.0) for i in range(2 * MOST_MARKS)])
    marks.finish()
    assert marks.left_out == MOST_MARKS
    assert done[0].seconds == pytest.approx(2 * MOST_MARKS / 1000)


def test_nothing_is_put_into_a_graph_that_is_being_captured():
    cuda, marks, done = followed()
    marks.begin(0, "forward")
    cuda.capturing = True
    before = cuda.recorded
    marks.mark("backward")
    assert cuda.recorded == before
    cuda.capturing = False
    cuda.clock_ms += 5
    marks.end()
    marks.finish()
    assert done[0].seconds == 0.005


def test_what_turned_out_to_be_something_else_is_renamed():
    cuda, marks, done = followed()
    marks.begin(0, "data_wait")
    cuda.clock_ms += 7
    marks.rename("other")
    marks.mark("data_wait")
    cuda.clock_ms += 1
    marks.end()
    marks.finish()
    assert (done[0].device_s["other"], done[0].device_s["data_wait"]) == (0.007, 0.001)


def test_without_a_gpu_the_host_clock_does_it():
    done: deque[StepTimes] = deque()
    marks = Marks(HostTimer(), done.append)
    marks.begin(0, "forward")
    marks.mark("backward")
    marks.end()
    marks.finish()
    assert done[0].seconds > 0
    assert done[0].device_s["optimizer"] == 0.0
