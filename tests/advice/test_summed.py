"""Do sums kept by column read and add up as rows do?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.advice.cases import add_up
from gpuledger.advice.stretches import MOST, SUMS
from gpuledger.advice.summed import Summed, SumsRow

HUGE = (1 << 63) - 1


@given(st.lists(st.tuples(st.integers(0, HUGE), st.integers(-1, 10**6)), min_size=1, max_size=60))
def test_many_rows_add_up_as_one_by_one(rows: list[tuple[int, int]]) -> None:
    whole, largest = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    columns = dict.fromkeys(SUMS, whole) | {SUMS[0]: np.zeros_like(whole)} | dict.fromkeys(MOST, largest)
    table = Summed(columns, MOST)
    each = [SumsRow(table, i) for i in range(len(rows))]
    by_column = table.added(range(len(rows)))
    assert by_column == add_up([dict(row) for row in each])
    assert add_up(each) == by_column
    assert by_column[SUMS[0]] == 0
    assert by_column[SUMS[1]] == sum(value for value, _ in rows)
    known = [value for _, value in rows if value >= 0]
    assert by_column[MOST[0]] == (max(known) if known else None)


def test_a_row_gives_plain_numbers_and_none_for_what_is_unknown() -> None:
    table = Summed({"all_ms": np.array([3, 7]), "limit_mw": np.array([-1, 5])}, ("limit_mw",))
    assert dict(SumsRow(table, 0)) == {"all_ms": 3, "limit_mw": None}
    assert dict(SumsRow(table, 1)) == {"all_ms": 7, "limit_mw": 5}
    assert type(SumsRow(table, 1)["all_ms"]) is int
