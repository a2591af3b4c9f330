"""Do the compiled sums, the same sums in numpy, and sums by hand agree to the last digit?"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.native import library, line_sums
from gpuledger.native.line_sums import Level, LineRows, bins_of, places

TYPES = st.sampled_from([np.float32, np.float64])


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(line_sums, "call", lambda *_: None)
    elif library.library() is None:
        pytest.skip("built without a C compiler")
    return str(request.param)


@st.composite
def rows_of_lines(draw: st.DrawFn) -> tuple[LineRows, int]:
    """Pieces of lines in runs, of equal or other lengths of time, each of its own sample or not; how many samples."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=8))
    lengths += draw(st.sampled_from([[], [], [], [2500]]))
    n = sum(lengths)
    lines = draw(st.integers(1, len(lengths)))
    line = [*range(lines), *draw(st.lists(st.integers(0, lines - 1), min_size=len(lengths), max_size=len(lengths)))]
    samples = draw(st.integers(1, 60))
    row = draw(st.none() | st.integers(0, 2**31).map(lambda s: np.random.default_rng(s).integers(0, samples, n)))
    seed, data_ms = draw(st.integers(0, 2**31)), draw(st.sampled_from([9_000, 600_000]))
    ms = np.full(n, 1000.0) if draw(st.booleans()) else np.random.default_rng(seed).integers(0, data_ms, n)
    runs, of_line = np.cumsum([0, *lengths[:-1]]), np.array(line[: len(lengths)])
    return LineRows.of(row, ms.astype(np.float64), runs, of_line, lines), n if row is None else samples


def readings(draw: st.DrawFn, n: int, top: float = 1.0) -> np.ndarray:
    kind = draw(TYPES)
    some = draw(st.lists(st.floats(0, top, width=32) | st.just(math.nan), min_size=1, max_size=40))
    return np.resize(np.array(some, dtype=kind), n)


def of_lines(rows: LineRows) -> list[list[int]]:
    ends, out = [*rows.runs[1:].tolist(), len(rows.ms)], [list[int]() for _ in range(rows.count)]
    for first, end, line in zip(rows.runs.tolist(), ends, rows.run_line.tolist(), strict=True):
        out[line] += range(first, end)
    return out


def sample(rows: LineRows, piece: int) -> int:
    return piece if rows.row is None else int(rows.row[piece])


@given(st.data())
def test_levels_are_whole_values_over_time(data: st.DataObject) -> None:
    """Up to twenty at once, each with or without a mask, a cap and a factor of its own."""
    rows, n = data.draw(rows_of_lines())
    marks = st.lists(st.booleans(), min_size=1, max_size=40).map(lambda some: np.resize(np.array(some), n))
    levels = []
    for _ in range(data.draw(st.integers(1, 20))):
        mask, time = data.draw(st.none() | marks), data.draw(st.booleans())
        cap = readings(data.draw, n).astype(np.float64) if data.draw(st.booleans()) else None
        others = readings(data.draw, n, 8192.0) if data.draw(st.booleans()) else None
        factor = data.draw(st.sampled_from([1.0, 1e3, 1e6]))
        levels.append(Level(readings(data.draw, n), factor, mask, cap, others, time))
    for level, total in zip(levels, rows.over_time(levels), strict=True):
        whole = [by_hand(level, place) for place in range(n)]
        for k, pieces in enumerate(of_lines(rows)):
            said = [(i, x) for i in pieces if (x := whole[sample(rows, i)]) is not None]
            assert total[k] == float(sum((1 if level.time else x) * int(rows.ms[i]) for i, x in said))


def by_hand(level: Level, place: int) -> float | None:
    """One value of a level as its words say, rounded half to even as everywhere; None where it is not known."""
    value = float(level.values[place])
    if math.isnan(value) or (level.mask is not None and not level.mask[place]):
        return None
    whole = round(value * level.factor)
    if level.others is not None:
        if math.isnan(level.others[place]):
            return None
        whole *= round(float(level.others[place]))
    if level.cap is not None:
        return None if math.isnan(level.cap[place]) else min(whole, round(float(level.cap[place]) * level.factor))
    return whole


@given(st.data())
def test_whole_amounts_are_added_up_line_by_line(data: st.DataObject) -> None:
    rows, _ = data.draw(rows_of_lines())
    amounts = np.resize(np.array(data.draw(st.lists(st.integers(0, 2**40), min_size=1, max_size=40))), len(rows.ms))
    found = rows.added(amounts.astype(np.float64))
    assert found.tolist() == [sum(amounts[i] for i in pieces) for pieces in of_lines(rows)]


@given(st.data())
def test_the_highest_is_of_what_is_known(data: st.DataObject) -> None:
    rows, n = data.draw(rows_of_lines())
    values = readings(data.draw, n, 2.0**40)
    found = rows.highest(values)
    assert found.dtype == values.dtype
    for k, pieces in enumerate(of_lines(rows)):
        said = [float(v) for i in pieces if not math.isnan(v := values[sample(rows, i)])]
        assert found[k] == max(said) if said else math.isnan(found[k])


@given(st.data())
def test_times_by_code_add_up_to_the_time_of_the_line(data: st.DataObject) -> None:
    rows, n = data.draw(rows_of_lines())
    width = data.draw(st.integers(1, 30))
    some = data.draw(st.lists(st.integers(0, width - 1), min_size=1, max_size=40))
    code = np.resize(np.array(some, dtype=np.uint8), n)
    table = rows.times(code, width)
    assert table.shape == (width, rows.count)
    for k, pieces in enumerate(of_lines(rows)):
        for c in range(width):
            assert table[c, k] == sum(rows.ms[i] for i in pieces if code[sample(rows, i)] == c)


@given(st.data(), st.lists(st.floats(0, 1), max_size=9).map(lambda e: tuple(sorted(e))))
def test_a_place_is_the_number_of_edges_reached(data: st.DataObject, edges: tuple[float, ...]) -> None:
    values = readings(data.draw, data.draw(st.integers(1, 50)))
    found = places(values, edges, len(values))
    for value, place in zip(values, found, strict=True):
        reached = sum(value >= values.dtype.type(e) for e in edges)
        assert place == (len(edges) + 1 if math.isnan(value) else reached)
    assert (places(None, edges, 3) == len(edges) + 1).all()


@given(st.data(), st.integers(1, 40))
def test_a_bin_holds_its_share_of_the_range(data: st.DataObject, bins: int) -> None:
    values = readings(data.draw, data.draw(st.integers(1, 50)), 1.5)
    for value, found in zip(values, bins_of(values, bins), strict=True):
        assert found == (bins if math.isnan(value) else min(int(value * values.dtype.type(bins)), bins - 1))


def test_a_pencil_case() -> None:
    """Two lines: 10 s at 50 % and 10 s at 100 %, then 5 s not known."""
    rows = LineRows.of(None, np.array([10_000.0, 10_000.0, 5_000.0]), np.array([0, 2]), np.array([0, 1]), 2)
    shares = np.array([0.5, 1.0, math.nan], np.float32)
    total, known = rows.over_time([Level(shares, 100.0), Level(shares, 100.0, time=True)])
    assert total.tolist() == [1_500_000.0, 0.0]
    assert known.tolist() == [20_000.0, 0.0]


def test_an_hour_at_a_fast_clock_is_added_up_exactly() -> None:
    """1e6 ppm x 2,541 MHz x 3.6e6 ms is more than float64 adds without rounding."""
    ms = np.array([999.0, 1001.0] * 1800)
    rows = LineRows.of(None, ms, np.array([0]), np.array([0]), 1)
    clock = np.linspace(2505, 2577, 3600).astype(np.float32)
    (total,) = rows.over_time([Level(np.ones(3600, np.float32), 1e6, others=clock)])
    assert total[0] == float(sum(10**6 * round(float(c)) * int(m) for c, m in zip(clock, ms, strict=True)))
    assert total[0] > 2**53


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_it_is_built_where_there_is_a_compiler_and_can_be_turned_off() -> None:
    said = "from gpuledger.native.library import library; print(library() is not None)"
    for wish, built in (("", "True"), ("off", "False")):
        done = subprocess.run(
            [sys.executable, "-c", said], check=True, capture_output=True, text=True,
            env=os.environ | {"GPULEDGER_NATIVE": wish},
        )  # fmt: skip
        assert done.stdout.strip() == built


def test_a_library_of_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "VERSION", library.VERSION + 1)
    library.library.cache_clear()
    try:
        assert library.library() is None
    finally:
        monkeypatch.undo()
        library.library.cache_clear()
