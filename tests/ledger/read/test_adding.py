"""Are whole numbers added up exactly, in whatever order and pieces they come?"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.ledger.read.adding import Accumulator, added, distinct, exact_total, grouped, runs
from gpuledger.ledger.read.key_sums import Sums

HUGE = (1 << 63) - 1
ROWS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 5) | st.integers(0, HUGE)), min_size=1, max_size=40
)


def expected(rows: list[tuple[int, int, int]]) -> dict[tuple[int, int], float]:
    """Python's whole numbers have no limit, and round once."""
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for a, b, value in rows:
        sums[a, b] += value
    return {key: float(total) for key, total in sums.items()}


@given(ROWS)
@settings(deadline=None)
def test_runs_bring_equal_keys_together_and_their_sums_are_exact(rows: list[tuple[int, int, int]]) -> None:
    a, b, values = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    order, starts = runs([a + 1, b + 1])
    if order is not None:
        a, b, values = a[order], b[order], values[order]
    found = dict(
        zip(zip(a[starts].tolist(), b[starts].tolist(), strict=True), added(values, starts).tolist(), strict=True)
    )
    assert found == expected(rows)
    assert list(found) == sorted(found)


@given(ROWS, st.integers(1, 40))
@settings(deadline=None)
def test_sums_do_not_depend_on_how_rows_are_cut(rows: list[tuple[int, int, int]], size: int) -> None:
    sums = Sums()
    for start in range(0, len(rows), size):
        a, b, values = (np.array(c, dtype=np.int64) for c in zip(*rows[start : start + size], strict=True))
        sums.add([a, b], {"x": values, "none": np.zeros(len(a), dtype=np.int64)})
    (a, b), found = sums.total()
    assert dict(zip(zip(a.tolist(), b.tolist(), strict=True), found["x"].tolist(), strict=True)) == expected(rows)
    assert not found["none"].any()


@given(ROWS, st.integers(1, 40), st.randoms())
@settings(deadline=None)
def test_an_accumulator_does_not_depend_on_order_or_cuts(rows: list[tuple[int, int, int]], size: int, random) -> None:
    """Sums round once, at the end; the largest and the smallest are kept as they are."""
    random.shuffle(rows)
    found = Accumulator(most=("top",), least=("bottom",))
    for start in range(0, len(rows), size):
        a, b, values = (np.array(c, dtype=np.int64) for c in zip(*rows[start : start + size], strict=True))
        found.add([a, b], {"x": values, "top": values, "bottom": values})
    keys, sums = found.total()
    pairs = list(zip(*(k.tolist() for k in keys), strict=True))
    assert dict(zip(pairs, sums["x"].tolist(), strict=True)) == expected(rows)
    for name, pick in (("top", max), ("bottom", min)):
        assert dict(zip(pairs, sums[name].tolist(), strict=True)) == {
            key: pick(v for a, b, v in rows if (a, b) == key) for key in pairs
        }


def test_an_accumulator_merges_as_it_grows() -> None:
    """Pieces of half a million keys that are all the same stay as few as they are."""
    found, size = Accumulator(), 1 << 18
    key = np.arange(size, dtype=np.int64)
    for _ in range(5):
        found.add([key], {"x": key})
    (keys,), sums = found.total()
    assert len(keys) == size
    assert (sums["x"] == 5.0 * keys).all()


def test_nothing_was_added() -> None:
    assert Sums().total() == ([], {})
    assert Accumulator().total() == ([], {})


def test_keys_too_wide_for_one_number_are_counted_up_first() -> None:
    wide = np.array([0, 1 << 40, 1 << 40, 0], dtype=np.int64)
    order, starts = runs([wide, wide, np.array([0, 1, 1, 0], dtype=np.int64)])
    assert order is not None
    assert (order.tolist(), starts.tolist()) == ([0, 3, 1, 2], [0, 2])


def test_rows_that_stand_in_order_are_left_alone() -> None:
    order, starts = runs([np.array([0, 0, 2], dtype=np.int64)])
    assert order is None
    assert starts.tolist() == [0, 2]
    assert runs([np.zeros(0, np.int64)])[1].tolist() == []
    assert added(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


@given(st.lists(st.integers(-5, 5)))
def test_distinct_is_what_a_set_says(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


@given(ROWS)
@settings(deadline=None)
def test_grouped_sums_are_those_of_each_key(rows: list[tuple[int, int, int]]) -> None:
    a, b, values = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    small = values >> 6  # so that no sum of up to 40 passes 2**63; running totals over all rows still may
    (keys, others), sums = grouped([a, b], {"sum": small, "again": small, "none": np.zeros_like(small)})
    found = dict(zip(zip(keys.tolist(), others.tolist(), strict=True), sums["sum"].tolist(), strict=True))
    wanted: dict[tuple[int, int], int] = defaultdict(int)
    for one, other, value in zip(a.tolist(), b.tolist(), small.tolist(), strict=True):
        wanted[one, other] += value
    assert found == wanted
    assert sums["again"].tolist() == sums["sum"].tolist()
    assert not sums["none"].any()


def test_running_totals_that_pass_the_largest_number_change_no_sum() -> None:
    huge = np.array([1 << 62, 1 << 62, 1 << 62, 5], dtype=np.int64)
    (keys,), sums = grouped([np.array([0, 1, 2, 2])], {"sum": huge})
    assert dict(zip(keys.tolist(), sums["sum"].tolist(), strict=True)) == {0: 1 << 62, 1: 1 << 62, 2: (1 << 62) + 5}


@given(st.lists(st.integers(0, HUGE), max_size=40))
def test_a_total_is_exact_however_large(values: list[int]) -> None:
    assert exact_total(np.array(values, dtype=np.int64)) == sum(values)
