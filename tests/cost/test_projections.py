from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.projections import next_quarter, project
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, day_start_ms


def test_a_week_by_pencil() -> None:
    # $336 in a week of 168 hours is $2 an hour: $1,440 in 30 days, $17,520 in 365.
    made = project(Decimal(336), 7 * MS_PER_DAY, day_start_ms("2026-01-27"))
    assert not isinstance(made, Unknown)
    assert (made.hourly_usd, made.monthly_usd, made.yearly_usd) == (2, 1440, 17520)
    assert (made.quarter.name, made.quarter.days, made.quarter.usd) == ("2026-Q2", 91, 2 * 24 * 91)


@given(st.integers(0, 10**12), st.integers(1, 400 * MS_PER_DAY))
def test_longer_times_follow_from_the_hourly_figure_to_the_cent(cents: int, window_ms: int) -> None:
    made = project(Decimal(cents).scaleb(-2), window_ms, 0)
    assert not isinstance(made, Unknown)
    assert made.monthly_usd == round(made.hourly_usd * 24 * 30, 2)
    assert made.yearly_usd == round(made.hourly_usd * 24 * 365, 2)


@pytest.mark.parametrize(
    ("day", "name", "first", "days"),
    [
        ("2026-01-01", "2026-Q2", "2026-04-01", 91),
        ("2026-06-30", "2026-Q3", "2026-07-01", 92),
        ("2026-12-31", "2027-Q1", "2027-01-01", 90),
        ("2027-10-01", "2028-Q1", "2028-01-01", 91),
    ],
)
def test_the_next_quarter_has_its_real_days(day: str, name: str, first: str, days: int) -> None:
    found = next_quarter(Decimal(1), day_start_ms(day))
    assert (found.name, found.first_day, found.days, found.usd) == (name, first, days, 24 * days)


def test_no_window_no_rate() -> None:
    assert isinstance(project(Decimal(1), 0, 0), Unknown)
    assert not isinstance(project(Decimal(1), MS_PER_HOUR, 0), Unknown)
