"""Are times and lengths read as people write them?"""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import InputError
from gpuledger.times import duration, instant_ms, length_ms


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-01-20", "2026-01-20T00:00:00+00:00"),
        ("2026-01-20T08:30", "2026-01-20T08:30:00+00:00"),
        (" 2026-01-20 08:30:05 ", "2026-01-20T08:30:05+00:00"),
        ("2026-01-20T08:30Z", "2026-01-20T08:30:00+00:00"),
        ("2026-01-20T08:30+02:00", "2026-01-20T06:30:00+00:00"),
    ],
)
def test_instants(text, iso):
    assert instant_ms(text) == dt.datetime.fromisoformat(iso).timestamp() * 1000


@given(st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2099, 1, 1), timezones=st.timezones()))
def test_any_zoned_time_is_the_same_instant(when):
    assert abs(instant_ms(when.isoformat()) - when.timestamp() * 1000) <= 1


@pytest.mark.parametrize("text", ["", "yesterday", "20/01/2026", "2026-13-01"])
def test_what_is_no_time_says_how_to_write_one(text):
    with pytest.raises(InputError) as caught:
        instant_ms(text)
    assert "2026-01-20T08:30" in caught.value.hint


@given(st.datetimes(dt.datetime(1974, 1, 1), dt.datetime(2199, 1, 1), timezones=st.just(dt.UTC)))
def test_whole_numbers_are_milliseconds_and_never_taken_for_seconds(when):
    at_ms = int(when.timestamp()) * 1000
    assert instant_ms(at_ms) == at_ms
    with pytest.raises(InputError) as caught:
        instant_ms(at_ms // 1000)
    assert f"write {at_ms};" in caught.value.hint


@pytest.mark.parametrize("number", [-1, 20260901, 1_788_264_000, 1_788_264_000_000_000, 1_788_264_000_000_000_000])
def test_a_number_that_is_no_time_of_a_sample_is_refused(number):
    with pytest.raises(InputError, match=str(number)):
        instant_ms(number)


def test_the_beginning_of_time():
    assert instant_ms(0) == 0


@given(st.integers(1, 10_000), st.sampled_from("wdhms"))
def test_lengths(count, unit):
    seconds = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}[unit]
    assert length_ms(f"{count}{unit}") == length_ms(f" {count} {unit.upper()} ") == count * seconds * 1000


@given(st.decimals("0.001", 10_000, places=3), st.sampled_from("wdhms"))
def test_a_bare_number_has_the_unit_the_caller_names_and_a_written_unit_wins(number, unit):
    assert length_ms(f"{number}", bare=unit) == length_ms(f"{number}{unit}")
    assert length_ms(f"{number}s", bare=unit) == length_ms(f"{number}s")


def test_fractions_of_a_length():
    assert length_ms("1.5h") == 5_400_000
    assert length_ms("0.1s") == 100


@pytest.mark.parametrize("text", ["", "7", "d", "-3d", "0d", "7 days", "1e3s"])
def test_what_is_no_length(text):
    with pytest.raises(InputError, match="not a length"):
        length_ms(text)


def test_lengths_are_written_in_one_or_two_units():
    lengths = [0, 59_000, 60_000, 3_600_000, 7_500_000, 86_400_000, 100_000_000]
    assert [duration(ms) for ms in lengths] == ["0 s", "59 s", "1 min", "1 h", "2 h 05 min", "1 d", "1 d 3 h"]
