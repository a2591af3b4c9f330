"""Which GPUs are bottlenecked on most of their days?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.groups import consistent
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.units import MS_PER_HOUR, day_start_ms

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
START = day_start_ms("2026-01-20")
SLOW: dict[str, Any] = {"util": 0.9, "pif": 0.4, "bottleneck_ms": MS_PER_HOUR}
FAST: dict[str, Any] = {"util": 0.9, "pif": 0.9}


def test_more_than_half_of_the_active_time_of_a_day(state: State, line: Line) -> None:
    (tie,) = state(line(0, **SLOW), line(1, **FAST)).per_gpu
    assert (tie.bottlenecked_days, tie.active_days, tie.consistently_bottlenecked) == (0, 1, False)
    assert tie.bottlenecked_pct_of_active == pytest.approx(50)
    (over,) = state(line(0, **SLOW), line(1, **SLOW), line(2, **FAST)).per_gpu
    assert (over.bottlenecked_days, over.consistently_bottlenecked) == (1, True)


def test_idle_days_do_not_count(state: State, line: Line) -> None:
    rows = [line(0, **SLOW), line(24, **SLOW), line(48, **FAST), line(72, util=0.0, pif=0.1), line(96, util=0.0)]
    found = state(*rows)
    (gpu,) = found.per_gpu
    assert (gpu.bottlenecked_days, gpu.active_days) == (2, 3)
    assert found.bottlenecked_gpus == (gpu,)


@given(st.integers(0, 400), st.integers(0, 400))
def test_consistent_is_most_active_days(slow: int, active: int) -> None:
    assert consistent(slow, active) == (active > 0 and slow / active > 0.5)


def test_classes_of_a_device(state: State, line: Line) -> None:
    rows = [
        line(0, "GPU-a", util=0.05, pif=0.1),
        line(0, "GPU-b", **FAST),
        line(0, "GPU-c", util=0.8, pif=0.5),
        line(0, "GPU-d", util=0.5, pif=0.6),
        line(0, "GPU-e", util=0.5, pif=0.3),
        line(0, "GPU-f", util=0.05, model="Frobnicator 9000"),
        line(0, "GPU-g", util=0.5, model="Frobnicator 9000"),
        line(0, "GPU-h"),
    ]
    klass = [g.klass for g in state(*rows).per_gpu]
    assert klass == ["idle", "efficient", "bottlenecked", "moderate", "inefficient", "idle", "not known", "not known"]


def test_unobserved_time_lies_between_first_and_last(state: State, line: Line) -> None:
    (gpu,) = state(line(0, util=0.5), line(5, util=0.5)).per_gpu
    assert gpu.unobserved_h == pytest.approx(4)
    # Another owner's hours are observed too, even where only one is asked for.
    rows = [line(0, util=0.5), *(line(h, util=0.5, namespace="other") for h in range(1, 5)), line(5, util=0.5)]
    assert state(*rows, namespaces=["n1"]).per_gpu[0].unobserved_h == 0


def spell(start_h: float, end_h: float, kind: str = "idle", gpu: str = "GPU-a") -> dict[str, Any]:
    start, end = (START + round(h * MS_PER_HOUR) for h in (start_h, end_h))
    return {"gpu_uuid": gpu, "gpu_instance_id": None, "start_ms": start, "end_ms": end, "kind": kind}


def test_the_longest_idle_stretch_goes_on_over_midnight(state: State, line: Line) -> None:
    rows = [line(h, g, util=0.0) for h in range(30) for g in ("GPU-a", "GPU-b")]
    quiet = [
        spell(1, 3),
        spell(20, 24, "idle_held"), spell(24, 26), spell(26, 27, "idle_held"),
        spell(27.5, 30), spell(5, 15, "gap"), spell(2, 4, gpu="GPU-b"),
    ]  # fmt: skip
    found = {g.gpu_uuid: g.longest_idle_h for g in state(*rows, quiet=quiet).per_gpu}
    assert found == {"GPU-a": 7, "GPU-b": 2}
    until = START + 23 * MS_PER_HOUR
    cut = {g.gpu_uuid: g.longest_idle_h for g in state(*rows, quiet=quiet, until_ms=until).per_gpu}
    assert cut == {"GPU-a": 3, "GPU-b": 2}


def test_the_device_is_named_by_most_of_its_time(state: State, line: Line) -> None:
    rows = [
        line(0, util=0.5, namespace="a", host="old"),
        line(1, util=0.5, namespace="b", host="new"),
        line(2, util=0.5, namespace="b", host="new"),
    ]
    (gpu,) = state(*rows).per_gpu
    assert (gpu.namespace, gpu.host) == ("b", "new")
    assert gpu.idle_h == 0
