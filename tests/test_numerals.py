"""Which numbers can a text be, and when does a column tell?"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger.errors import InputError
from gpuledger.numerals import NOTHING, Ambiguous, Mark, Unclear, number_given, number_in, readings, shown_by


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("192", "192"), ("-52.00", "-52"), ("384,00", "384"), ("0,125", "0.125"), ("1384,567", "1384.567"),
        ("1.384,00", "1384"), ("1,384.00", "1384"), ("12,345,678", "12345678"), ("12.345.678", "12345678"),
        ("1 384,00", "1384"), ("1\u202f384,00", "1384"), ("1\u00a0384", "1384"), ("1'384.50", "1384.5"),
        ("1,90,000.50", "190000.5"), ("$1,008.00", "1008"), ("-$52.00", "-52"), ("US$ 16.00", "16"), ("(52.00)", "-52"),
        ("9.6E-06", "0.0000096"), ("1.0E7", "10000000"), ("1,2E-05", "0.000012"), (".5", "0.5"), ("5.", "5"),
    ],
)  # fmt: skip
def test_a_number_with_one_reading_is_read(text, number):
    assert {*readings(text).values()} == {Decimal(number)}
    assert number_in(text) == Decimal(number)


@pytest.mark.parametrize(
    "text",
    ["", "nan", "inf", "€8.00", "1,9.5", "1,90.5", "1.900.00", "1,384,00", "0,384.00", "-$-5", "-(5)", "(5", "5,"],
)
def test_what_is_no_number_is_refused(text):
    assert not readings(text)
    with pytest.raises(Unclear):
        number_in(text)


@pytest.mark.parametrize(("text", "point", "comma"), [("1,900", "1900", "1.9"), ("-384,125", "-384125", "-384.125")])
def test_a_comma_before_three_digits_has_two_readings(text, point, comma):
    assert readings(text) == {Mark.POINT: Decimal(point), Mark.COMMA: Decimal(comma)}
    with pytest.raises(Ambiguous) as caught:
        number_in(text)
    assert f"{text!r} can be {comma.removesuffix('.9')}" in caught.value.problem
    assert point in caught.value.problem
    assert number_in(text, shown_by([text, "192", "55.04"])) == Decimal(point)
    assert number_in(text, shown_by([text, "192", "55,04"])) == Decimal(comma)


def test_a_point_before_three_digits_stands_before_decimals_unless_something_speaks_against_it():
    assert number_in("1.384") == Decimal("1.384")
    assert number_in("1.384", shown_by(["384,00"])) == 1384
    assert number_in("1.384", shown_by(["1.384", "384,00"], points=True)) == Decimal("1.384")
    with pytest.raises(Ambiguous, match=r"can be 1\.384 or 1384") as caught:
        number_in("1.384", points=False)
    clear, thousands = caught.value.hint.removeprefix("write ").split(" or ")
    assert (number_in(clear, points=False), number_in(thousands, points=False)) == (Decimal("1.384"), 1384)


def test_two_decimal_signs_in_a_column_are_refused():
    with pytest.raises(Ambiguous, match="have other decimal signs"):
        number_in("192.50", shown_by(["384,00", "192.50"]))
    assert shown_by(["192", "", "1,900", "a lot"]) == NOTHING


@pytest.mark.parametrize(("text", "write"), [("2,50", "2.50"), ("1.900,00", "1900.00")])
def test_a_decimal_comma_given_by_itself_is_refused_with_the_number_to_write(text, write):
    with pytest.raises(InputError, match="has a decimal comma") as caught:
        number_given(text, "--price", "price", "")
    assert caught.value.hint == f"write {write}"
