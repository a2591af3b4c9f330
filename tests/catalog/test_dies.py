"""Is the power of a die its part of the board's, in every plan that prices or weighs energy?"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger import plan
from gpuledger.catalog.gpus import get_gpu
from gpuledger.plan.regions.costing import energy_kwh


def test_two_dies_of_a_board_draw_what_the_board_draws():
    die, whole = get_gpu("mi250x"), get_gpu("h100-sxm5-80gb")
    assert die.dies * die.power_w == die.board_power_w.value == 560
    assert whole.power_w == whole.board_power_w.value
    assert energy_kwh(die, 2, Decimal(10), 1.0, 1.0) == pytest.approx(5.6)


def test_the_power_of_owned_dies_is_their_part_of_the_boards():
    """Hosts draw the same next to either GPU, so what is reserved differs by the GPUs alone."""
    asked = {"gpus": 8, "years": 1, "purchase_usd": 10_000.0, "rent_usd": 2.0}
    die, other = (plan.tco(gpu=name, **asked).own.reserved_kw for name in ("mi250x", "mi210"))
    expected_w = 8 * (get_gpu("mi210").board_power_w.value - 280)
    assert 1000 * float(other - die) == pytest.approx(expected_w)
