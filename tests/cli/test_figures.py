"""Is a figure written so that a reader cannot take it for another?"""

from __future__ import annotations

import pytest

from gpuledger.cli.figures import count, instant, number, percent, size
from gpuledger.units import Unknown


def test_unknown_is_never_a_number():
    for write in (number, percent):
        assert write(Unknown("no power")) == write(None) == "not known"
    assert number(0.0) == "0.0"


def test_numbers():
    assert number(1234567.891, 2) == "1,234,567.89"
    assert percent(70.44) == "70.4 %"
    assert count(1, "GPU") == "1 GPU"
    assert count(1200, "GPU") == "1,200 GPUs"
    assert instant(1_768_867_260_000) == "2026-01-20 00:01"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (7.2e15, "7,200.0 TB")]
)
def test_sizes(value, text):
    assert size(int(value)) == text
