from __future__ import annotations

from dataclasses import replace

import pytest
from case_table import CASES

from gpuledger.advice.limits import load_limits
from gpuledger.advice.signs import need, packed, room_to_share, shared_gain
from gpuledger.units import Unknown

LIMITS = load_limits()


def test_a_quarter_of_a_card_by_pencil():
    one = replace(CASES["idle, memory held"], busy_ratio=0.2)
    one = replace(one, demand=replace(one.demand, memory_max_ratio=0.3, memory_mean_ratio=0.25))
    assert need(one) == (0.3, 0.25)
    # Cautious: 0.3 of 0.6; middle 0.25 of 0.7; bold 0.25 of 0.85.
    gain = shared_gain(one, LIMITS)
    assert [float(x) for x in (gain.low, gain.middle, gain.high)] == pytest.approx(
        [0.5, 1 - 25 / 70, 1 - 25 / 85], abs=1e-6
    )
    # Four loads of 0.25 need 1.43 cards at 0.7: two.
    fewer, saved = packed(one, LIMITS)
    assert fewer == 2
    assert [float(x) for x in (saved.low, saved.middle, saved.high)] == [0.5, 0.5, 0.5]


def test_without_memory_use_nothing_is_packed():
    one = CASES["idle, memory held"]
    for figure in ("memory_max_ratio", "memory_mean_ratio"):
        blind = replace(one, demand=replace(one.demand, **{figure: Unknown("memory use is not recorded")}))
        assert need(blind) is None
        assert shared_gain(blind, LIMITS) is None
        assert packed(blind, LIMITS) is None


def test_copies_of_a_server_share_their_weights():
    one = replace(CASES["a server short of requests"], busy_ratio=0.35)
    one = replace(one, demand=replace(one.demand, memory_max_ratio=0.9, memory_mean_ratio=0.9))
    assert packed(one, LIMITS)[0] == 2
    assert packed(replace(one, namespace="team-q", purpose="training"), LIMITS)[0] == 4


def test_peaks_that_collide_leave_nothing_in_the_cautious_case():
    one = CASES["idle, memory held"]
    one = replace(one, demand=replace(one.demand, memory_max_ratio=0.8))
    said = room_to_share(one, LIMITS)
    assert said is not None
    assert "80 % at its peak" in said
    assert shared_gain(one, LIMITS).low == 0
    assert shared_gain(one, LIMITS).middle > 0


def test_a_gpu_without_work_has_nothing_to_share():
    served = CASES["idle, memory held"]
    assert room_to_share(served, LIMITS)
    free = replace(served, busy_ratio=0.0, idle_ratio=1.0, idle_held_ratio=0.0)
    free = replace(free, demand=replace(free.demand, memory_max_ratio=0.0, memory_mean_ratio=0.0))
    assert room_to_share(free, LIMITS) is None
    assert room_to_share(replace(free, busy_ratio=0.05), LIMITS)
