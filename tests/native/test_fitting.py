"""Are readings that are fitted in one pass those that the careful way gives, and is all else left to it?"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.native import library
from gpuledger.native.fitting import Fit, fitted
from gpuledger.telemetry import schema
from gpuledger.telemetry.cells import numbers, quickly
from gpuledger.telemetry.convert import _fit
from gpuledger.telemetry.mapping import ValueRule

pytestmark = pytest.mark.skipif(library.library() is None, reason="built without a C compiler")
READINGS = [c for c in schema.columns().values() if c.kind in ("level", "counter")]
BLANK_TEXT = pa.array([], pa.string())


@st.composite
def sources(draw: st.DrawFn) -> tuple[pa.Array, ValueRule, float, schema.Column]:
    """A column as a file may hold it, mostly in order, and a rule for it."""
    column = draw(st.sampled_from(READINGS))
    multiply = draw(st.sampled_from([1.0, 100.0, 1024.0**2, 1e6, 0.5]))
    divide = draw(st.sampled_from([1.0, 100.0, 1000.0]))
    top = min(column.max * divide / multiply, 2.0**55)
    cells = st.floats(max(column.min, 0), top) if draw(st.booleans()) else st.integers(0, max(int(top), 1))
    odd = draw(st.sampled_from([[], [None], [math.nan], [math.inf], [-1], [2**60], [-0.0]]))
    values = draw(st.lists(cells | st.sampled_from(odd) if odd else cells, min_size=1, max_size=30))
    whole = all(v is None or (isinstance(v, int) and abs(v) < 2**62) for v in values)
    kind = pa.int64() if whole else pa.float64()
    if draw(st.booleans()):
        small = whole and all(v is None or abs(v) < 2**31 for v in values)
        kind = pa.int32() if small else kind if whole else pa.float32()
    raw = pa.array(values if whole else [v if v is None else float(v) for v in values], kind)
    if draw(st.booleans()):
        raw = pa.concat_arrays([raw, raw]).slice(len(raw) // 2, len(raw))
    blank_from = draw(st.sampled_from([math.inf, 1e9]))
    return raw, ValueRule(column.name, ("x",), multiply=multiply, divide=divide), blank_from, column


@given(sources())
def test_one_pass_gives_what_the_careful_way_gives(source: tuple[pa.Array, ValueRule, float, schema.Column]) -> None:
    raw, rule, blank_from, column = source
    quick = quickly(raw, rule, blank_from, column)
    if quick is None:
        return
    careful, outside = _fit(numbers(raw, rule, blank_from, BLANK_TEXT).values, column)
    assert outside is None
    assert quick.type == careful.type == column.arrow()
    assert quick.is_valid().equals(careful.is_valid())
    for mine, theirs in zip(quick.to_pylist(), careful.to_pylist(), strict=True):
        assert mine == theirs
        assert mine is None or math.copysign(1, mine) == math.copysign(1, theirs)


def test_columns_in_order_take_the_quick_way() -> None:
    by = Fit(0.0, 1.0, 100.0, math.inf, 0.0, 1.0)
    raw = pa.array([0.0, 55.5, None, 100.0], pa.float64())
    assert fitted(raw, by, pa.float32()).to_pylist() == [0.0, pytest.approx(np.float32(0.555)), None, 1.0]


@pytest.mark.parametrize("odd", [math.nan, math.inf, 101.0, -0.1])
def test_what_is_odd_gets_a_closer_look(odd: float) -> None:
    by = Fit(0.0, 1.0, 100.0, math.inf, 0.0, 1.0)
    assert fitted(pa.array([1.0, odd]), by, pa.float32()) is None


def test_numbers_too_large_to_be_whole_in_float64_get_a_closer_look() -> None:
    by = Fit(0.0, 1.0, 1.0, math.inf, 0.0, 2.0**62)
    assert fitted(pa.array([2**53 + 1]), by, pa.int64()) is None
    assert fitted(pa.array([2**53 - 1]), by, pa.int64()).to_pylist() == [2**53 - 1]
