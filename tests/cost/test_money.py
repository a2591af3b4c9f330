from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.money import QUANTUM, cost_usd, rounded, split, split_whole, usd
from gpuledger.encode import as_text
from gpuledger.units import MS_PER_HOUR

WEIGHTS = st.dictionaries(st.integers(0, 50), st.integers(0, 10**9), min_size=1, max_size=12)
AMOUNTS = st.integers(0, 10**18).map(lambda n: Decimal(n).scaleb(-12))


def test_an_hour_costs_its_price() -> None:
    assert cost_usd(MS_PER_HOUR, Decimal("6.88")) == Decimal("6.88")
    assert cost_usd(1, Decimal("3.6")) == Decimal("0.000001")


@given(st.integers(0, 10**11), st.decimals(0, 500, places=8))
def test_a_cost_is_off_by_half_the_smallest_unit_at_most(duration_ms: int, price: Decimal) -> None:
    exact = Fraction(price) * duration_ms / MS_PER_HOUR
    assert abs(Fraction(cost_usd(duration_ms, price)) - exact) <= Fraction(QUANTUM) / 2
    assert cost_usd(duration_ms, price) == usd(exact)


@given(AMOUNTS, WEIGHTS)
def test_parts_add_up_to_the_last_digit(total: Decimal, weights: dict[int, int]) -> None:
    parts = split(total, weights)
    assert sum(parts.values()) == total
    if whole := sum(weights.values()):
        for key, part in parts.items():
            assert abs(Fraction(part) - Fraction(total) * weights[key] / whole) < Fraction(QUANTUM)


def test_a_split_by_pencil() -> None:
    assert split_whole(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert split_whole(7, {"a": 0, "b": 0}) == {"a": 7, "b": 0}


@given(st.dictionaries(st.integers(0, 50), st.decimals(-1000, 1000, places=6), min_size=1, max_size=12))
def test_a_rounded_column_adds_up_to_its_rounded_total(values: dict[int, Decimal]) -> None:
    cents = rounded(values)
    assert sum(cents.values()) == round(sum(values.values()), 2)
    assert all(abs(cents[k] - v) < Decimal("0.01") for k, v in values.items())


def test_amounts_are_written_in_plain_digits() -> None:
    assert as_text(Decimal("137736.700000000000")) == "137736.7"
    assert as_text(Decimal("0.000000000000")) == "0"
    assert as_text(Decimal("1E-12")) == "0.000000000001"
    assert as_text(Decimal(100)) == "100"
