"""Are two loss curves told apart, and is a loss that is no number named?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.training.tune.parity import compare

CURVES = st.lists(st.floats(0.01, 100), min_size=1, max_size=10)


def test_a_pencil_case():
    """The widest gap is 0.3 at update 2, the largest old loss 5: 6 %."""
    found = compare([5.0, 4.0, 3.0], [5.0, 4.3, 2.9], 0.02)
    assert found.deviation_ratio == pytest.approx(0.06)
    assert not found.kept
    assert found.why == "the loss at update 2 is 4.3 where it was 4: 6.0% apart, allowed is 2.0%"
    assert compare([5.0, 4.0, 3.0], [5.0, 4.3, 2.9], 0.06 + 1e-9).kept


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_refused(bad):
    found = compare([5.0, 4.0], [5.0, bad], 1e9)
    assert not found.kept
    assert found.why == f"the loss is {bad} at update 2"
    assert found.deviation_ratio is None


@given(curve=CURVES)
def test_a_curve_agrees_with_itself(curve):
    assert compare(curve, curve, 0.0).kept


@given(curve=CURVES, scale=st.floats(0.1, 10), off=st.floats(0, 0.5))
def test_the_unit_of_the_loss_does_not_matter(curve, scale, off):
    new = [loss * (1 + off) for loss in curve]
    one = compare(curve, new, 0.02).deviation_ratio
    other = compare([scale * x for x in curve], [scale * x for x in new], 0.02).deviation_ratio
    assert one == pytest.approx(other, abs=1e-9)


def test_curves_of_different_length_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        compare([1.0, 2.0], [1.0], 0.02)


def test_a_loss_of_zero_all_along():
    assert compare([0.0], [0.0], 0.02).kept
    assert compare([0.0], [0.1], 0.02).deviation_ratio is None
