"""A load that starts and stops is called what it is: through import and audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bouncing import AMOUNTS, Load, levels, sampled
from grid import FULL, WAITING, Cell, accepted_of, cells, judge
from schedules import pool_of

from recording import COUNTERS

LOAD = "lm_train_bf16_b16"
# A part of the grid in benchmarks/truth/grid.py: short and long waits, few and many, resolved and not.
GRID = {cell.name: cell for cell in cells([LOAD], periods=(0.4, 6.0, 60.0), duties=(0.2, 0.5, 0.9))}


@pytest.fixture(scope="module")
def judged(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pool, folder = pool_of([recorded]), tmp_path_factory.mktemp("grid")
    return judge(list(GRID.values()), pool, accepted_of([recorded]), folder)


@pytest.mark.parametrize("name", [name for name, cell in GRID.items() if cell.load.duty != FULL])
def test_the_verdict_is_the_right_one(judged: dict[str, Any], name: str) -> None:
    one = judged[name]
    assert one["right"], (one["due"], one["class"], one["first"], one["bucket_pct"], one["evidence"])


@pytest.mark.parametrize(
    ("period", "duty", "hz", "counters", "due"),
    [
        (6.0, 0.5, 10.0, True, ("starved",)),
        (0.2, 0.5, 1.0, True, ("starved",)),
        (0.2, 0.5, 10.0, False, ("cannot",)),
        (0.4, 0.5, 10.0, False, ("starved", "cannot")),
        (2.0, 0.2, 10.0, False, ("starved",)),
        (2.0, 0.2, 1.0, False, ("cannot",)),
        (60.0, 0.2, 1.0, False, ("idle",)),
        (60.0, 0.5, 10.0, True, ("starved", "idle")),
        (60.0, 0.9, 10.0, True, ("work",)),
        (0.4, 0.9, 1.0, False, ("cannot", "work")),
    ],
)
def test_what_is_due(period: float, duty: float, hz: float, counters: bool, due: tuple[str, ...]) -> None:
    assert Cell(LOAD, Load(period, duty), hz, counters).due() == due


@pytest.mark.parametrize("period", [0.2, 2.0, 20.0])
@pytest.mark.parametrize("duty", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("hz", [10.0, 1.0])
def test_counters_add_up_to_the_duty(recorded: Path, period: float, duty: float, hz: float) -> None:
    pool = pool_of([recorded])
    rows = sampled(Load(period, duty), hz, pool["bf16_gemm_8192"], pool[WAITING], 0.0)
    whole = sum(r["gr_engine_active"] for r in pool["bf16_gemm_8192"]) / len(pool["bf16_gemm_8192"])
    assert sum(r["gr_engine_active"] for r in rows) / len(rows) == pytest.approx(duty * whole, rel=0.03)
    assert {r["fb_used_mib"] for r in rows} == {r["fb_used_mib"] for r in pool["bf16_gemm_8192"]}


def test_a_missed_window_is_not_a_level(recorded: Path) -> None:
    """The recording of a training loop has windows that no counter met; the next row covers two of them."""
    rows = pool_of([recorded])[LOAD]
    missed = [i for i, row in enumerate(rows[:-1]) if not any(row[c] for c in COUNTERS if c in row)]
    found = levels(rows)
    assert missed
    assert len(found) == len(rows) - len(missed)
    for number, place in enumerate(missed):
        after = found[place - number]
        assert [after[name] for name in AMOUNTS] == pytest.approx([rows[place + 1][name] / 2 for name in AMOUNTS])
        assert after["gr_engine_active"] == rows[place + 1]["gr_engine_active"]


def test_readings_rise_as_they_were_recorded_to_rise(recorded: Path) -> None:
    """The recording has the start of a matrix product: power needs 1 s, utilization 0.2 s, the counters one sample."""
    from recording import read_recording

    pool, raw = pool_of([recorded]), read_recording(recorded).rows["bf16_gemm_8192"]
    rows = sampled(Load(40.0, 0.5), 10.0, pool["bf16_gemm_8192"], pool[WAITING], 0.0)
    start = next(i for i, row in enumerate(rows) if i > 300 and row["gr_engine_active"] > 20)
    first = next(i for i, row in enumerate(raw) if row["gr_engine_active"] > 20)
    for after in range(1, 12):
        modelled, real = rows[start + after], raw[first + after]
        assert modelled["power_w"] == pytest.approx(real["power_w"], abs=80), after
        assert modelled["gr_engine_active"] == pytest.approx(real["gr_engine_active"], abs=3)
    assert rows[start + 3]["gpu_util"] == pytest.approx(raw[first + 3]["gpu_util"], abs=2)
    assert set(rows[start]) >= {"gpu_util", "power_w", *COUNTERS}
