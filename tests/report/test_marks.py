"""Do the small pieces of the charts behave?"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.marks import clip, plottable, spread, time_axis, widest_gap
from gpuledger.units import Range, Unknown


@given(st.lists(st.floats(0, 100), max_size=12), st.floats(0.1, 8))
def test_labels_keep_their_order_and_their_distance(places: list[float], gap: float) -> None:
    out = spread(places, gap, 0, 100)
    order = sorted(range(len(places)), key=lambda i: places[i])
    put = [out[i] for i in order]
    assert all(b - a >= gap - 1e-9 for a, b in itertools.pairwise(put))
    assert all(v <= 100 + 1e-9 for v in out)


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread([10.0, 50.0, 30.0], 5, 0, 100) == [10.0, 50.0, 30.0]


def test_labels_at_the_top_are_pushed_down() -> None:
    assert spread([99.0, 100.0], 6, 0, 100) == [94.0, 100.0]


def test_only_figures_have_a_place() -> None:
    assert plottable(Range(1, 2, 3, "counters")) == 2
    assert plottable(Unknown("no")) is None
    assert plottable(None) is None
    with pytest.raises(TypeError, match="not a figure"):
        plottable("12")


def test_widest_gap_ignores_what_is_not_known(
    statement: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    found = widest_gap(statement.by_namespace)
    assert found is not None
    assert found.name == "ml-training"
    assert widest_gap(unknown_statement.by_model) is None


def test_long_names_are_cut() -> None:
    assert clip("a" * 40, 10) == "a" * 9 + "…"
    assert clip("short", 10) == "short"


@given(st.integers(0, 4000).map(lambda hours: hours * 3_600_000), st.integers(2, 10))
def test_an_axis_of_days_has_no_date_twice_and_few_of_them(span_ms: int, most: int) -> None:
    axis = time_axis(span_ms, most).to_dict()
    if "%H" not in axis["format"]:
        assert axis["tickCount"]["interval"] == "day"
        assert span_ms / 86_400_000 / axis["tickCount"]["step"] <= most
    else:
        assert span_ms < 2 * 86_400_000
