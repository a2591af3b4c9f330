"""Do the bills of adjoining windows add up to the bill of the whole, without an inventory?

Without an inventory a GPU is paid for from its first to its last sample in the lake. A window cuts that time; it does
not move its ends to the samples that happen to lie inside.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from handmade import HOUR, START, line

from gpuledger.cost.build import cost_statement
from gpuledger.cost.statement import BUCKETS, Dollars
from gpuledger.errors import InputError
from gpuledger.ledger.read.scope import Scope


def paid(lake, since_h: float | None = None, until_h: float | None = None) -> Dollars | None:
    """The dollars of a window at $1 for a GPU-hour; None where no sample lies in it."""
    scope = Scope(*(None if h is None else START + int(h * HOUR) for h in (since_h, until_h)))
    try:
        found = cost_statement(lake, scope, price=1).dollars
    except InputError:
        return None
    assert isinstance(found, Dollars)
    return found


@pytest.fixture
def lake(books):
    """Two GPUs of 24 hours. The first is seen all of the time, the second in its first, middle and last hour only."""
    seen = [line(h, "GPU-a") for h in range(24)]
    return books(*seen, *(line(h, "GPU-b") for h in (0, 12, 23)))


def test_the_whole_is_from_first_to_last_sample(lake) -> None:
    whole = paid(lake)
    assert whole is not None
    assert whole.paid_usd == 48
    assert whole.unobserved_usd == 21


@pytest.mark.parametrize("cut_h", [0.5, 6, 12, 12.5, 18, 23.25])
def test_two_adjoining_windows_add_up(lake, cut_h: float) -> None:
    whole, before, after = paid(lake), paid(lake, until_h=cut_h), paid(lake, since_h=cut_h)
    assert whole is not None
    assert before is not None
    assert after is not None
    assert (before.paid_usd, after.paid_usd) == (2 * Decimal(str(cut_h)), 48 - 2 * Decimal(str(cut_h)))
    for bucket in BUCKETS:
        assert before.each()[bucket] + after.each()[bucket] == whole.each()[bucket], bucket


def test_many_windows_add_up_even_where_a_gpu_has_no_sample_in_one(lake) -> None:
    pieces = [paid(lake, h, h + 4) for h in range(0, 24, 4)]
    assert [p.paid_usd for p in pieces if p is not None] == [8] * 6


def test_a_gpu_that_comes_later_is_not_paid_for_before(books) -> None:
    lake = books(*(line(h, "GPU-a") for h in range(8)), *(line(h, "GPU-b") for h in range(4, 8)))
    first, second = paid(lake, 0, 4), paid(lake, 4, 8)
    assert first is not None
    assert second is not None
    assert (first.paid_usd, second.paid_usd) == (4, 8)
