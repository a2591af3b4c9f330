"""Do compiled sums of runs agree with numpy, whatever the columns hold?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.native import run_sums
from gpuledger.native.run_sums import added_up


@given(st.integers(1, 300), st.integers(0, 19), st.integers(0, 1 << 31), st.booleans())
def test_sums_are_those_of_numpy(rows: int, columns: int, seed: int, ordered: bool) -> None:
    random = np.random.default_rng(seed)
    found = [random.integers(-(1 << 62), 1 << 62, rows) for _ in range(columns)]  # sums may wrap
    starts = np.unique(np.append(0, random.integers(0, rows, rows // 5)))
    order = random.permutation(rows) if ordered else None
    wanted = [np.add.reduceat(values if order is None else values[order], starts) for values in found]
    for sums in (added_up(found, starts, order), _without_library(found, starts, order)):
        assert len(sums) == columns
        assert all(np.array_equal(made, values) for made, values in zip(sums, wanted, strict=True))


def _without_library(found: list[np.ndarray], starts: np.ndarray, order: np.ndarray | None) -> list[np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_sums, "call", lambda *_: None)
        return added_up(found, starts, order)


def test_no_rows_have_no_runs() -> None:
    none = np.zeros(0, np.int64)
    assert [len(sums) for sums in added_up([none, none], none)] == [0, 0]
