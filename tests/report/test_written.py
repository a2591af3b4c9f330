"""How are figures written?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import UnknownName
from gpuledger.report.written import MINUS, NARROW, STYLES, amount, device, number, shares, sort_key, tie, write
from gpuledger.units import Range, Unknown


@pytest.mark.parametrize(
    ("value", "style", "text"),
    [
        (70.44, "percent", f"70.4{NARROW}%"),
        (-3.25, "points", f"{MINUS}3.2{NARROW}pp"),
        (0.6489, "factor", "0.649"),
        (504_000, "whole", "504,000"),
        (-0.0001, "tenth", "0.0"),
        (0.25, "signed", "+0.250"),
        (1_768_867_200_000, "instant", "2026-01-20 00:00"),
        (None, "percent", "none"),
        (None, "plain", "none given"),
        (None, "remark", ""),
        ("compute_bound", "title", "Compute-bound"),
        ("NVIDIA A10G", "model", "A10G"),
        ("Homemade X1", "model", "Homemade X1"),
        ("efficiency_gap_pp", "series", "Gap, pp"),
        (True, "yes_no", "yes"),
        (72.04, "loose", "72.0"),
        (0.649, "loose", "0.649"),
    ],
)
def test_styles(value: object, style: str, text: str) -> None:
    assert write(value, style) == text


@pytest.mark.parametrize("style", sorted(STYLES))
def test_unknown_is_said_with_its_reason_in_every_style(style: str) -> None:
    assert write(Unknown("the sensor is silent"), style) == "not known: the sensor is silent"


def test_range_shows_its_ends() -> None:
    assert write(Range(11.0, 22.6, 35.24, "counters"), "percent") == f"22.6{NARROW}% (11.0 to 35.2{NARROW}%)"


def test_range_of_one_value_is_that_value() -> None:
    assert write(Range(22.6, 22.6, 22.6, "counted"), "percent") == f"22.6{NARROW}%"


def test_unknown_style_is_refused() -> None:
    with pytest.raises(UnknownName, match="percent"):
        write(1.0, "precent")


@given(st.floats(-1e12, 1e12), st.integers(0, 3))
def test_number_reads_back_within_its_rounding(value: float, places: int) -> None:
    text = number(value, places).replace(",", "").replace(MINUS, "-")
    assert float(text) == pytest.approx(value, abs=0.5000001 * 10**-places, rel=1e-12)
    assert not (text.startswith("-") and float(text) == 0)


def test_unknown_sorts_last_and_range_by_its_middle() -> None:
    assert sort_key(Unknown("x")) is None
    assert sort_key(None) is None
    assert sort_key(Range(1, 2, 3, "counters")) == 2
    assert sort_key(7) == 7.0
    assert sort_key("a") == "a"


def test_shares_largest_first_zero_left_out() -> None:
    assert shares({"idle": 10.0, "efficient": 90.0, "moderate": 0.0}) == f"efficient 90.0{NARROW}%, idle 10.0{NARROW}%"


def test_device_is_short_and_tie_keeps_the_sign() -> None:
    assert device("GPU-c195f12f-f2a7-5b50-b391-9ce8d061eb39") == "c195f12f"
    assert device("rack7/gpu0") == "rack7/gpu0"
    assert tie("30 % of 5 GPUs") == f"30{NARROW}% of 5 GPUs"
    assert tie("459 kWh, 126 kg CO2e") == f"459{NARROW}kWh, 126{NARROW}kg CO2e"


@pytest.mark.parametrize(
    ("written", "words"), [("1", "1 GPU-hour"), ("0", "0 GPU-hours"), ("1.0", "1.0 GPU-hours"), ("2", "2 GPU-hours")]
)
def test_one_is_not_many(written: str, words: str) -> None:
    assert amount(written, "GPU-hour") == words
