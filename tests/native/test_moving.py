"""Do compiled and plain ways of moving rows give the same?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.native import moving
from gpuledger.native.moving import Blocks, first_rows, follows, order_by

codes = st.lists(st.integers(0, 6), min_size=1, max_size=60)


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways; where nothing was compiled, the first is the second."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            patch.setattr(moving, "call", lambda *_given: None)
        yield


@given(codes)
def test_the_first_row_of_each_group(groups: list[int]) -> None:
    found = first_rows(np.array(groups, np.int32), 8)
    assert found.tolist() == [groups.index(g) if g in groups else -1 for g in range(8)]


@given(codes, st.data())
def test_a_code_follows_where_each_group_has_one(groups: list[int], data: st.DataObject) -> None:
    code = data.draw(st.lists(st.integers(-1, 2), min_size=len(groups), max_size=len(groups)))
    group = np.array(groups, np.int32)
    one_each = len(set(zip(groups, code, strict=True))) == len(set(groups))
    assert follows(np.array(code, np.int32), group, first_rows(group, 8)) == one_each


@given(codes)
def test_rows_of_a_key_stay_as_they_stand(keys: list[int]) -> None:
    assert order_by(np.array(keys), 7).tolist() == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.data(), st.sampled_from([pa.int64(), pa.int32(), pa.float32(), pa.float64()]))
def test_blocks_are_the_rows_they_name(data: st.DataObject, kind: pa.DataType) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    arrays = [pa.array(np.arange(n + 2) + 100 * i).cast(kind).slice(1, n) for i, n in enumerate(sizes)]
    blocks = []
    for _ in range(data.draw(st.integers(1, 6))):
        piece = data.draw(st.integers(0, len(sizes) - 1))
        start = data.draw(st.integers(0, sizes[piece] - 1))
        blocks.append((piece, start, data.draw(st.integers(0, sizes[piece] - start))))
    wanted = [value for piece, start, rows in blocks for value in arrays[piece].to_pylist()[start : start + rows]]
    named = Blocks(*(np.array(column) for column in zip(*blocks, strict=True)))
    assert named.gathered(arrays).to_pylist() == wanted
    begins = np.cumsum([0, *sizes[:-1]])
    assert pa.concat_arrays(arrays).take(pa.array(named.order(begins))).to_pylist() == wanted
