"""Do rounded dollars add up, whatever they are?"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.report.adding import add_up, add_up_columns, places_for, shares_adding_up

amounts = st.decimals(0, 10**6, places=6, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("total", "places"),
    [("32138.56", 2), ("1", 2), ("0.99", 3), ("0.0133", 4), ("0.000001", 8), ("0.00000001", 8), ("0", 2)],
)
def test_small_bills_keep_three_digits(total, places):
    assert places_for(Decimal(total)) == places


def test_a_goal_the_other_way_moves_the_nearest_cell():
    # 0.004 + 0.004 rounds to 0.01 by itself; the table's own total says 0.00 or 0.02.
    values = {"a": Decimal("0.004"), "b": Decimal("0.0041")}
    assert sum(add_up(values, Decimal("0.00"), 2).values()) == 0
    assert add_up(values, Decimal("0.01"), 2) == {"a": Decimal("0.00"), "b": Decimal("0.01")}


def test_shares_of_a_whole_are_written_as_a_hundred():
    # Each rounded by itself would make 100.1: 10.4, 25.8, 30.1 and 33.8.
    phases = {"idle": 10.38115, "underutilized": 25.7871, "productive": 30.05457, "compute_bound": 33.77718}
    written = shares_adding_up(phases)
    assert [f"{share:.1f}" for share in written.values()] == ["10.4", "25.8", "30.0", "33.8"]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8).filter(any))
def test_shares_add_up_whatever_they_are(parts):
    shares = {i: 100 * part / sum(parts) for i, part in enumerate(parts)}
    written = shares_adding_up(shares)
    assert round(sum(written.values()), 6) == 100
    assert all(abs(written[i] - share) < 0.1 + 1e-9 for i, share in shares.items())


@given(st.lists(st.tuples(amounts, amounts, amounts), min_size=1, max_size=12))
def test_columns_add_up_and_so_do_their_totals(rows):
    parts = {name: [row[i] for row in rows] for i, name in enumerate("abc")}
    columns = {**parts, "paid": [sum(row, Decimal(0)) for row in rows]}
    cells, totals = add_up_columns(columns, "paid", 2)
    for name, column in columns.items():
        assert sum(cells[name]) == totals[name]
        assert all(abs(cell - value) < Decimal("0.02") for cell, value in zip(cells[name], column, strict=True))
    assert totals["a"] + totals["b"] + totals["c"] == totals["paid"] == round(sum(columns["paid"]), 2)


def test_columns_that_are_no_parts_are_rounded_by_themselves():
    columns = {"before": [Decimal("13773.67")], "now": [Decimal("13773.67")]}
    cells, totals = add_up_columns(columns, None, 0)
    assert totals == {"before": 13774, "now": 13774}
    assert cells == {"before": [13774], "now": [13774]}


def test_what_is_not_known_adds_nothing():
    cells, totals = add_up_columns({"paid": [Decimal("1.005"), None, Decimal("2.004")]}, "paid", 2)
    assert cells["paid"][1] is None
    assert sum(c for c in cells["paid"] if c is not None) == totals["paid"] == Decimal("3.01")
