from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from gpuledger.cost.forecast import forecast
from gpuledger.units import Unknown

FIRST = dt.date(2026, 1, 5)  # a Monday


def days(*amounts, first=FIRST):
    return {first + dt.timedelta(days=i): Decimal(str(a)) for i, a in enumerate(amounts)}


def ahead(count, after, part=1):
    return [(after + dt.timedelta(days=i), Fraction(part)) for i in range(count)]


def test_the_mean_of_days_and_its_range_by_hand():
    """Three days of 10, 12 and 14: mean 12, scatter 2, t 4.303; two days ahead vary by themselves and by the mean."""
    made = forecast(days(10, 12, 14), ahead(2, FIRST + dt.timedelta(days=3)))
    off = 4.303 * 2 * math.sqrt(2 + 4 / 3)
    assert made.usd == 24
    assert float(made.low_usd) == pytest.approx(24 - off)
    assert float(made.high_usd) == pytest.approx(24 + off)
    assert not made.by_weekday
    assert made.days == 3


def test_weekdays_are_told_apart_from_fourteen_days_on():
    week = (100, 100, 100, 100, 100, 40, 20)
    made = forecast(days(*week, *week), ahead(3, FIRST + dt.timedelta(days=18)))  # Friday, Saturday, Sunday
    assert made.by_weekday
    assert (made.usd, made.low_usd, made.high_usd) == (160, 160, 160)
    early = forecast(days(*week, *week[:6]), ahead(1, FIRST + dt.timedelta(days=13)))  # a Sunday
    assert not early.by_weekday
    assert early.usd != 20


def test_a_part_of_a_day_costs_its_part():
    made = forecast(days(10, 10), [(FIRST + dt.timedelta(days=2), Fraction(1, 4))])
    assert made.usd == Decimal("2.5")


def test_too_few_days():
    assert isinstance(forecast({}, ahead(1, FIRST)), Unknown)
    one = forecast(days(10), ahead(3, FIRST + dt.timedelta(days=1)))
    assert one.usd == 30
    assert isinstance(one.low_usd, Unknown)


def test_nothing_ahead_is_nothing_to_forecast():
    assert forecast({}, []).usd == 0


def test_the_range_never_goes_below_zero():
    made = forecast(days(0, 100), ahead(1, FIRST + dt.timedelta(days=2)))
    assert made.low_usd == 0


@pytest.mark.parametrize("length", [7, 28])
def test_about_95_of_100_months_end_within_the_range(length):
    """Days drawn alike: the range of a forecast holds what the days ahead then come to."""
    import random

    draw, held = random.Random(7), 0
    for _ in range(300):
        seen = days(*(round(draw.gauss(100, 20), 4) for _ in range(length)))
        made = forecast(seen, ahead(5, FIRST + dt.timedelta(days=length)))
        held += made.low_usd <= Decimal(sum(draw.gauss(100, 20) for _ in range(5))) <= made.high_usd
    assert 0.91 <= held / 300 <= 0.99
