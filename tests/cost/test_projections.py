from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.projections import PaidBoard, months, months_of, next_quarter, project
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


def board(dollars: int | str, hours: float, *, listed: bool = False, unobserved_h: float = 0) -> PaidBoard:
    return PaidBoard(Decimal(dollars), int(hours * MS_PER_HOUR), int(unobserved_h * MS_PER_HOUR), listed)


def test_gpus_seen_for_a_small_part_are_projected_at_their_rate_while_seen() -> None:
    """16 GPUs for half an hour each of 100 hours, $1 for a GPU-hour: $16 an hour while seen, not 8 cents."""
    made = project(Decimal(8), 100 * MS_PER_HOUR, 0, [board("0.5", 0.5) for _ in range(16)])
    assert not isinstance(made, Unknown)
    assert (made.hourly_usd, made.monthly_usd) == (16, 11520)
    basis = made.projection_basis
    assert (basis.sparse, basis.gpus, basis.usd_per_gpu_h, basis.seen_monthly_usd) == (True, 16, 1, Decimal("57.60"))
    assert (basis.paid_gpu_h, basis.window_gpu_h) == (8, 1600)
    for words in ("16 x 720 h", "$1.00 per GPU-hour", "8.0 of 1,600.0 GPU-hours", "no inventory", "$57.60"):
        assert words in basis.words
    assert months_of(made, 100 * MS_PER_HOUR) == months(100 * MS_PER_HOUR) * 200  # $16 against $0.08 an hour


@pytest.mark.parametrize(
    "boards",
    [
        [board(4, 2, listed=True), board(4, 2, listed=True)],  # the inventory says so, however little it is
        [board(4, 60), board(4, 50)],  # seen for 55 of 100 hours
        [],
    ],
)
def test_what_is_known_to_be_paid_is_carried_forward_as_it_was(boards: list[PaidBoard]) -> None:
    made = project(Decimal(8), 100 * MS_PER_HOUR, 0, boards)
    assert not isinstance(made, Unknown)
    assert made.hourly_usd == Decimal("0.08")
    assert not made.projection_basis.sparse
    assert months_of(made, 100 * MS_PER_HOUR) == months(100 * MS_PER_HOUR)


def test_only_what_the_inventory_does_not_list_is_stretched() -> None:
    # $10 by the inventory is 10 cents an hour; one hour seen of another GPU at $3 is $3 an hour.
    made = project(Decimal(13), 100 * MS_PER_HOUR, 0, [board(10, 10, listed=True), board(3, 1)])
    assert not isinstance(made, Unknown)
    assert made.hourly_usd == Decimal("3.1")


def test_paid_time_without_samples_is_named() -> None:
    made = project(Decimal(100), 100 * MS_PER_HOUR, 0, [board(100, 100, unobserved_h=80)])
    assert not isinstance(made, Unknown)
    assert "80 % of the paid time has no samples" in made.projection_basis.words
