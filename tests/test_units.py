"""Is an amount written so that a reader cannot take it for another?"""

from __future__ import annotations

import pytest

from gpuledger.units import count, size


def test_counts():
    assert count(1, "GPU") == "1 GPU"
    assert count(1200, "GPU") == "1,200 GPUs"
    assert count(2, "PCIe replay retry", "PCIe replay retries") == "2 PCIe replay retries"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (7.2e15, "7,200.0 TB")]
)
def test_sizes(value, text):
    assert size(int(value)) == text
