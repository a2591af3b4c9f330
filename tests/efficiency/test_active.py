"""How is time divided among classes and phases?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.ledger.cells import CLASSES, PHASES
from gpuledger.units import MS_PER_HOUR, Unknown

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]


def test_active_time_only(state: State, line: Line) -> None:
    found = state(line(0, util=0.8, pif=0.5), line(1, util=0.0, pif=0.1)).active
    assert found.active_h == 1
    assert (found.gpu_util_pct, found.pif) == (pytest.approx(80), pytest.approx(0.5))
    assert (found.rfu_power_pct, found.efficiency_gap_pp) == (pytest.approx(50), pytest.approx(30))


def test_a_fleet_that_was_never_active(state: State, line: Line) -> None:
    found = state(line(0, util=0.0, pif=0.1)).active
    assert found.active_h == 0
    for figure in (found.gpu_util_pct, found.pif, found.efficiency_gap_pp, found.bottlenecked_pct_of_active):
        assert isinstance(figure, Unknown)


parts = st.lists(st.integers(0, MS_PER_HOUR // 5), min_size=5, max_size=5)


@settings(max_examples=10, deadline=None)
@given(classes=parts, phases=parts)
def test_shares_sum_to_a_hundred(state: State, line: Line, classes: list[int], phases: list[int]) -> None:
    row = line(0, util=0.5, pif=0.5)
    row |= {f"class_{name}_ms": ms for name, ms in zip(CLASSES, classes, strict=True)}
    row |= {f"phase_{name}_ms": ms for name, ms in zip(PHASES, phases[:4], strict=True)}
    found = state(row).active
    for shares, ms in ((found.classes_pct, sum(classes)), (found.phases_pct, sum(phases[:4]))):
        assert sum(shares.values()) == pytest.approx(100 if ms else 0)
        assert all(0 <= share <= 100 for share in shares.values())
    assert found.class_unknown_h == pytest.approx((MS_PER_HOUR - sum(classes)) / MS_PER_HOUR)
