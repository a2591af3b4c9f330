from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.billing import Stay
from gpuledger.cost.charges import Charge
from gpuledger.cost.figures import compare
from gpuledger.cost.money import QUANTUM, ZERO, usd
from gpuledger.cost.pieces import Device, Segment
from gpuledger.cost.statement import BUCKETS, Dollars, Times
from gpuledger.units import MS_PER_HOUR, Unknown

NONE = None


def charge(model: str, price: str, **hours: int) -> Charge:
    """One device's bill at one price."""
    device = Device("GPU-a", None, model, None, None, 0, 1)
    stay = Stay(device, Segment(0, "GPU-a", None, 0, 1), None, 0)
    times = Times.of({b: hours.get(b, 0) * MS_PER_HOUR for b in BUCKETS})
    dollars = Dollars.of({b: usd(hours.get(b, 0) * Decimal(price)) for b in BUCKETS})
    return Charge(stay, device, NONE, NONE, NONE, times, dollars, ZERO, ZERO, {}, Unknown("not asked"))


def test_the_three_effects_by_pencil() -> None:
    # Before: 10 h at $2, half productive, half idle. After: 20 h at $3, three quarters productive.
    found = compare([charge("m", "3", productive=15, idle=5)], [charge("m", "2", productive=5, idle=5)], (0, 1))
    idle = next(e for e in found.by_bucket if e.bucket == "idle")
    assert (idle.before_usd, idle.after_usd) == (10, 15)
    # volume: 10 h more x $2 x 1/2; rate: 20 h x $1 more x 1/2; efficiency: 20 h x $3 x (1/4 - 1/2).
    assert (idle.volume_usd, idle.rate_usd, idle.efficiency_usd) == (10, 10, -15)
    assert (found.total.change_usd, found.total.volume_usd, found.total.rate_usd) == (40, 20, 20)
    assert found.total.efficiency_usd == 0
    assert "+$40.00 against $20.00" in found.words[0]


def test_what_efficiency_moved_is_said_with_its_direction() -> None:
    mixed, stuck = [charge("m", "2", productive=3, idle=3)], [charge("m", "2", stalled=6)]
    assert compare(stuck, mixed, (0, 1)).words[1] == "efficiency moved $12.00 into stalled time"
    assert compare(mixed, stuck, (0, 1)).words[1] == "efficiency moved $12.00 out of stalled time"


def test_a_model_that_is_new_or_gone_is_all_volume() -> None:
    found = compare([charge("new", "3", idle=1)], [charge("old", "2", idle=1)], (0, 1))
    assert (found.total.volume_usd, found.total.rate_usd, found.total.efficiency_usd) == (1, 0, 0)


HOURS = st.fixed_dictionaries({b: st.integers(0, 500) for b in BUCKETS})
SIDES = st.lists(
    st.tuples(st.sampled_from("mn"), st.decimals("0.01", "99", places=7), HOURS), max_size=4
).map(lambda rows: [charge(m, str(p), **h) for m, p, h in rows])  # fmt: skip


@given(SIDES, SIDES)
def test_the_effects_add_up_to_the_change_exactly(now: list[Charge], before: list[Charge]) -> None:
    found = compare(now, before, (0, 1))
    for effect in (*found.by_bucket, found.total):
        assert effect.volume_usd + effect.rate_usd + effect.efficiency_usd == effect.change_usd
    paid = sum((c.dollars.paid_usd for c in now if c.dollars), ZERO)
    assert found.total.after_usd == paid
    # Moving time between buckets does not change what is paid.
    assert abs(found.total.efficiency_usd) <= 20 * QUANTUM
