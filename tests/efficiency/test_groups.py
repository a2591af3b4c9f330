"""How is time divided among classes and phases?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.efficiency.groups import consistent, pattern_of
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.ledger.cells import CLASSES, PHASES
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import MS_PER_HOUR, PPM, Unknown, day_start_ms

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]


def test_active_time_only(state: State, line: Line) -> None:
    found = state(line(0, util=0.8, pif=0.5), line(1, util=0.0, pif=0.1)).active
    assert found.active_h == 1
    assert (found.gpu_util_pct, found.pif) == (pytest.approx(80), pytest.approx(0.5))
    assert (found.rfu_power_pct, found.efficiency_gap_pp) == (pytest.approx(50), pytest.approx(30))


def test_a_fleet_that_was_never_active(state: State, line: Line) -> None:
    found = state(line(0, util=0.0, pif=0.1)).active
    assert found.active_h == 0
    for figure in (found.gpu_util_pct, found.pif, found.efficiency_gap_pp, found.bottlenecked_pct_of_active):
        assert isinstance(figure, Unknown)


parts = st.lists(st.integers(0, MS_PER_HOUR // 5), min_size=5, max_size=5)


@settings(max_examples=10, deadline=None)
@given(classes=parts, phases=parts)
def test_shares_sum_to_a_hundred(state: State, line: Line, classes: list[int], phases: list[int]) -> None:
    row = line(0, util=0.5, pif=0.5)
    row |= {f"class_{name}_ms": ms for name, ms in zip(CLASSES, classes, strict=True)}
    row |= {f"phase_{name}_ms": ms for name, ms in zip(PHASES, phases[:4], strict=True)}
    found = state(row).active
    for shares, ms in ((found.classes_pct, sum(classes)), (found.phases_pct, sum(phases[:4]))):
        assert sum(shares.values()) == pytest.approx(100 if ms else 0)
        assert all(0 <= share <= 100 for share in shares.values())
    assert found.class_unknown_h == pytest.approx((MS_PER_HOUR - sum(classes)) / MS_PER_HOUR)


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
    assert state(*rows, scope=Scope(namespaces=("n1",))).per_gpu[0].unobserved_h == 0


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
    cut = {g.gpu_uuid: g.longest_idle_h for g in state(*rows, quiet=quiet, scope=Scope(until_ms=until)).per_gpu}
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


@pytest.mark.parametrize(
    ("places", "last"),
    [
        ([("a", "0"), ("a", "3")], ("a", "3")),
        ([("a", "3"), ("a", None)], ("a", "3")),  # the latest that is known
        ([("a", "3"), (None, None)], ("a", "3")),
        ([("a", "3"), ("b", None)], ("b", None)),  # there, it may be another GPU's
        ([("b", "1"), ("a", "3"), ("b", None)], ("b", "1")),
        ([(None, "2")], (None, "2")),
        ([("a", None)], ("a", None)),
    ],
)
def test_the_index_is_the_one_on_the_latest_host(
    state: State, line: Line, places: list[tuple[str | None, str | None]], last: tuple[str | None, str | None]
) -> None:
    rows = [line(24 * i, util=0.5, host=host, gpu_index=index) for i, (host, index) in enumerate(places)]
    made = state(*rows, line(0, "GPU-b", util=0.5, host="a", gpu_index="7"))
    assert [(g.host, g.gpu_index) for g in made.per_gpu] == [last, ("a", "7")]


WEEK = np.arange(168)


def noise(seed: int, scale: float, n: int = 168) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, n)


def test_steady() -> None:
    assert pattern_of(WEEK, 70 + noise(1, 2)).startswith("steady: hourly utilization 6")


def test_day_and_night() -> None:
    words = pattern_of(WEEK, 50 + 30 * np.sin((WEEK % 24 - 8) / 24 * 2 * np.pi) + noise(2, 3))
    assert words.startswith("day/night: 8")
    assert "around 14:00" in words
    assert words.endswith("UTC")


def test_noise_over_two_days_is_not_the_time_of_day() -> None:
    for seed in range(30):
        assert not pattern_of(np.arange(48), 50 + noise(seed, 8, 48)).startswith("day/night")


def test_bursty_and_uneven() -> None:
    spikes = np.where(np.random.default_rng(3).random(168) < 0.2, 90.0, 5.0)
    assert pattern_of(WEEK, spikes).startswith("bursty: hourly utilization 5 to 90 %")
    assert pattern_of(WEEK, 60 + noise(4, 10)).startswith("uneven: ")


def test_one_hour_has_no_pattern() -> None:
    assert "unknown" in pattern_of(np.array([5]), np.array([50.0]))


@pytest.mark.parametrize(
    ("name", "target", "how"),
    [
        ("ml-training", 70, "by its name: training"),
        ("ML_Inference", 50, "by its name: inference"),
        ("chat.api", 50, "by its name: api"),
        ("constraint-solver", 70, "by its use: 90 % utilization while active"),
        ("research", 70, "by its use: 90 % utilization while active"),
    ],
)
def test_targets_by_name_and_use(state: State, line: Line, name: str, target: float, how: str) -> None:
    (row,) = state(line(0, util=0.9, pif=0.5, namespace=name)).by_namespace
    assert row.target_rfu_pct == target
    assert how in row.pattern


def test_memory_ahead_of_the_tensor_pipe_is_inference(state: State, line: Line) -> None:
    used = {"dram_ms": MS_PER_HOUR, "dram_ppm_ms": 45 * PPM // 100 * MS_PER_HOUR}
    used |= {"tensor_ms": MS_PER_HOUR, "tensor_ppm_ms": 15 * PPM // 100 * MS_PER_HOUR}
    (row,) = state(line(0, util=0.9, pif=0.5, namespace="blue", **used)).by_namespace
    assert row.target_rfu_pct == 50
    assert "3.0 times" in row.pattern


def test_a_namespace_that_never_worked_has_no_target(state: State, line: Line) -> None:
    (row,) = state(line(0, util=0.0, namespace="blue")).by_namespace
    assert row.target_rfu_pct is None
    assert "no target" in row.pattern


def test_folded_days_tell_no_time_of_day(state: State, line: Line) -> None:
    rows = [line(24 * d, util=0.5, grain_ms=24 * MS_PER_HOUR, ms=24 * MS_PER_HOUR) for d in range(3)]
    found = state(*rows)
    assert "pattern unknown" in found.by_namespace[0].pattern
    assert [h.hours for h in found.hours] == [24, 24, 24]
