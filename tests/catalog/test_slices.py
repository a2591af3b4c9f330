"""Which slice of a board holds a job?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus.mig import Slice, slices_of, smallest_slice, source
from gpuledger.units import Unknown


@pytest.mark.parametrize(
    ("compute", "memory", "name"),
    [
        (0.01, 0.12, "1g.5gb"),
        (0.14, 0.13, "2g.10gb"),
        (0.2, 0.01, "2g.10gb"),
        (0.4, 0.5, "3g.20gb"),
        (0.5, 0.1, "4g.20gb"),
    ],
)
def test_the_smallest_slice_that_holds_both(compute, memory, name):
    found = smallest_slice("a100-sxm4-40gb", compute, memory)
    assert isinstance(found, Slice)
    assert found.name == name


def test_what_does_not_fit_or_cannot_be_cut_is_unknown_with_a_reason():
    whole = smallest_slice("a100-sxm4-40gb", 0.1, 0.9)
    assert isinstance(whole, Unknown)
    assert "90%" in whole.why
    assert "A10G" in str(slices_of("a10g"))
    assert isinstance(smallest_slice("a10g", 0.1, 0.1), Unknown)


def test_slices_rise_and_never_exceed_the_board():
    for key in ("a100-sxm4-80gb", "h200-sxm-141gb", "a30", "h20-96gb"):
        found = slices_of(key)
        assert not isinstance(found, Unknown)
        assert [s.compute for s in found] == sorted(s.compute for s in found)
        assert all(0 < s.compute_ratio < 1 and 0 < s.memory_ratio < 1 for s in found)
    assert "NVIDIA" in source()
