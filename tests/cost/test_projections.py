from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.projections import PaidBoard, Projection, months_of, next_quarter, project
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, day_start_ms

DAY_H = 24


def board(
    name: str, dollars: int | str, hours: float, *, listed: bool = False, unobserved_h: float = 0,
    since_h: float | None = None,
) -> PaidBoard:  # fmt: skip
    since = None if since_h is None else int(since_h * MS_PER_HOUR)
    lost = int(unobserved_h * MS_PER_HOUR)
    return PaidBoard(f"GPU-{name}", name, Decimal(dollars), int(hours * MS_PER_HOUR), lost, listed, since)


def projected(window_h: float, *boards: PaidBoard, at: str = "2026-01-27") -> Projection:
    window_ms = int(window_h * MS_PER_HOUR)
    made = project(window_ms, day_start_ms(at), boards, months_of(window_ms, boards))
    assert not isinstance(made, Unknown)
    return made


def test_a_week_by_pencil() -> None:
    # $336 in a week of 168 hours is $2 an hour: $1,440 in 30 days, $17,520 in 365.
    made = projected(168, board("a", 336, 168))
    assert (made.hourly_usd, made.monthly_usd, made.yearly_usd) == (2, 1440, 17520)
    assert not isinstance(made.quarter, Unknown)
    assert (made.quarter.name, made.quarter.days, made.quarter.usd) == ("2026-Q2", 91, 2 * 24 * 91)


@given(st.integers(0, 10**12), st.integers(MS_PER_DAY, 400 * MS_PER_DAY))
def test_longer_times_follow_from_the_hourly_figure_to_the_cent(cents: int, window_ms: int) -> None:
    made = projected(window_ms / MS_PER_HOUR, board("a", str(Decimal(cents).scaleb(-2)), window_ms / MS_PER_HOUR))
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
    assert isinstance(project(0, 0, [], months_of(0, [])), Unknown)


def test_less_than_a_day_says_nothing_of_a_month() -> None:
    """$2 in one hour is $2 an hour, and no month; the rate of a whole day is one."""
    short, whole = projected(1, board("a", 2, 1)), projected(24, board("a", 48, 24))
    assert (short.hourly_usd, whole.hourly_usd) == (2, 2)
    assert whole.monthly_usd == 1440
    for figure in (short.monthly_usd, short.yearly_usd, short.quarter, short.projection_basis.seen_monthly_usd):
        assert figure == Unknown("seen for 1 h only; a month needs 24 h or more")
    assert "seen for 1 h only" in short.projection_basis.words
    listed = projected(1, board("a", 2, 1, listed=True, since_h=1))
    assert isinstance(listed.monthly_usd, Unknown)  # also where an inventory has the price


def test_gpus_seen_for_less_than_a_day_are_named_and_left_out() -> None:
    """One GPU idles for 60 h at $3, nine are seen for an hour: the month is $2,160, not of ten GPUs."""
    brief = [board(f"b{n}", 3, 1) for n in range(9)]
    made = projected(60, board("a", 180, 60), *brief)
    assert (made.hourly_usd, made.monthly_usd) == (3, 2160)
    basis = made.projection_basis
    assert (basis.gpus, basis.sparse, basis.left_out) == (1, False, tuple(b.gpu for b in brief))
    assert basis.words.endswith(
        "9 GPUs were seen for less than 24 h and are left out of the month: b0, b1, b2, b3, b4 and 4 more"
    )
    nobody = projected(60, *brief)
    assert nobody.hourly_usd == 9 * 3  # what they cost together while they were paid for
    turns = [replace(b, paid_in=((n * MS_PER_HOUR, (n + 1) * MS_PER_HOUR),)) for n, b in enumerate(brief)]
    assert projected(60, *turns).hourly_usd == 3
    assert isinstance(nobody.monthly_usd, Unknown)


def test_what_an_inventory_pays_for_has_a_month_however_briefly_it_was_seen() -> None:
    """Paid for at $2 for the last hour of 60 and going on: 720 h at $2; paid for an hour that is over: as it was."""
    assert projected(60, board("a", 2, 1, listed=True, since_h=1)).monthly_usd == 1440
    assert projected(60, board("a", 2, 1, listed=True)).monthly_usd == 24


def test_no_gpu_comes_to_more_than_it_costs_however_long_it_was_seen() -> None:
    boards = [board("a", 3 * 30, 30), board("b", 3 * 60, 60), board("c", 3 * 150, 150), board("d", 3 * 23, 23)]
    months = months_of(150 * MS_PER_HOUR, boards)
    assert [months.total([(b.gpu_uuid, b.usd)]) for b in boards[:3]] == [2160] * 3
    assert isinstance(months.of("GPU-d"), Unknown)
    assert months.left_out == ("d",)
    assert months.total((b.gpu_uuid, b.usd) for b in boards) == 3 * 2160
    assert isinstance(months.total([("GPU-d", Decimal(1))]), Unknown)
    assert months.total([]) == 0


def test_gpus_seen_for_a_small_part_are_projected_at_their_rate_while_seen() -> None:
    """16 GPUs for 25 hours each of 100, $1 for a GPU-hour: $16 an hour while seen, not $4."""
    made = projected(100, *(board(str(n), 25, 25) for n in range(16)))
    assert (made.hourly_usd, made.monthly_usd) == (16, 11520)
    basis = made.projection_basis
    assert (basis.sparse, basis.gpus, basis.usd_per_gpu_h, basis.seen_monthly_usd) == (True, 16, 1, 2880)
    assert (basis.paid_gpu_h, basis.window_gpu_h) == (400, 1600)
    for words in ("16 x 720 h", "$1.00 per GPU-hour", "400.0 of 1,600.0 GPU-hours", "no inventory", "$2,880.00"):
        assert words in basis.words


def test_each_gpu_is_carried_forward_by_its_own_hours() -> None:
    """Seen for 60 and 50 of 100 hours at $1: two GPUs at $1 an hour, whether or not most of the window was seen."""
    made = projected(100, board("a", 60, 60), board("b", 50, 50))
    assert made.hourly_usd == 2
    assert not made.projection_basis.sparse
    assert "paid for at all hours" in made.projection_basis.words


def test_what_is_known_to_be_paid_is_carried_forward_as_it_was() -> None:
    made = projected(100, board("a", 4, 2, listed=True), board("b", 4, 2, listed=True))
    assert made.hourly_usd == Decimal("0.08")
    assert not made.projection_basis.sparse
    assert months_of(100 * MS_PER_HOUR, [board("a", 4, 2, listed=True)]).of("GPU-a") == Fraction(720, 100)


def test_only_what_the_inventory_does_not_list_is_stretched() -> None:
    # $10 by the inventory is 10 cents an hour; 30 hours seen of another GPU at $3 are $3 an hour.
    made = projected(100, board("a", 10, 10, listed=True), board("b", 90, 30))
    assert made.hourly_usd == Decimal("3.1")


def test_paid_time_without_samples_is_named() -> None:
    made = projected(100, board("a", 100, 100, unobserved_h=80))
    assert "80 % of the paid time has no samples" in made.projection_basis.words
