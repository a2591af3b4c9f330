"""Is Student's t the one of the tables?"""

from __future__ import annotations

import pytest

from gpuledger.efficiency.trend import critical, two_sided_p


@pytest.mark.parametrize(
    ("freedom", "p", "t"),
    [(1, 0.05, 12.706), (2, 0.05, 4.303), (3, 0.01, 5.841), (10, 0.05, 2.228), (30, 0.001, 3.646), (500, 0.05, 1.965)],
)
def test_printed_tables(freedom: int, p: float, t: float) -> None:
    assert critical(freedom, p) == pytest.approx(t, abs=6e-4)
    assert two_sided_p(t, freedom) == pytest.approx(p, rel=2e-3)


def test_no_freedom_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="degree"):
        two_sided_p(1.0, 0)


def test_nothing_is_certain_at_zero() -> None:
    assert two_sided_p(0.0, 7) == 1.0
