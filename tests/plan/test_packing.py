from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.packing import Parcel, bins

shares = st.sampled_from([0.1, 0.2, 0.3, 0.45, 0.5, 0.7, 0.9, 1.0])
parcels = st.lists(st.builds(Parcel, shares, shares, st.booleans()), min_size=1, max_size=6)


def holds(members: list[Parcel], full: float) -> bool:
    if len(members) == 1:
        return members[0].fits
    if any(p.alone for p in members):
        return False
    hair = 1e-6
    return sum(p.memory_ratio for p in members) <= 1 + hair and sum(p.time_ratio for p in members) <= full + hair


def fewest(made: list[Parcel], full: float) -> int:
    """By trying every way to put loads on GPUs."""
    for n in range(1, len(made) + 1):
        for places in product(range(n), repeat=len(made)):
            groups = [[p for p, at in zip(made, places, strict=True) if at == i] for i in range(n)]
            if all(not g or holds(g, full) for g in groups):
                return n
    raise AssertionError("each by itself always fits")


def test_memory_and_time_both_limit() -> None:
    small = Parcel(0.3, 0.1)
    assert len(bins([small] * 6, 0.7)) == 2  # three by memory (0.9), though seven by time
    assert len(bins([Parcel(0.1, 0.3)] * 6, 0.7)) == 3  # two by time (0.6), though ten by memory


def test_a_full_load_is_alone_and_may_fill_its_gpu() -> None:
    assert len(bins([Parcel(0.2, 0.95), Parcel(0.2, 0.01)], 0.7)) == 2
    assert len(bins([Parcel(0.2, 0.1, alone=True), Parcel(0.2, 0.1)], 0.7)) == 2


@settings(max_examples=60, deadline=None)
@given(parcels, st.sampled_from([0.6, 0.7, 0.85]))
def test_every_gpu_holds_what_it_got_and_few_are_wasted(made: list[Parcel], full: float) -> None:
    found = bins(made, full)
    assert sorted(i for group in found for i in group) == list(range(len(made)))
    for group in found:
        assert holds([made[i] for i in group], full)
    best = fewest(made, full)
    assert best <= len(found) <= best + 1


@pytest.mark.parametrize("full", [0.6, 0.85])
def test_no_loads_need_no_gpu(full: float) -> None:
    assert bins([], full) == []
