"""Is a board paid for once, and its power counted once, however it is sliced and resliced?"""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import (
    CLOCK,
    DRAM,
    ENERGY,
    ENGINE,
    MEMORY,
    POWER,
    TENSOR,
    analyze,
    bill,
    lake_of,
    mig,
    owed,
    samples,
)  # fmt: skip

from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.units import MS_PER_HOUR, Unknown

DAYS = 2


def hours(*wanted: int, days: int = DAYS) -> list[int]:
    """The minutes of some hours of each day."""
    return [(day * 24 + hour) * 60 + m for day in range(days) for hour in wanted for m in range(60)]


def test_a_board_whole_by_night_and_sliced_by_day_bills_its_owners_by_what_they_held(tmp_path: Path) -> None:
    # train holds the board for 12 of 24 hours on 2 days: 24 h x $1. By day two slices of 3/7 serve, 24 h x 6/7, and
    # 1/7 is nobody's.
    work = {POWER: 390, ENGINE: 1.0, DRAM: 0.3, TENSOR: 0.9, CLOCK: 1410, MEMORY: 30000}
    serve = {"namespace": "serve", POWER: 200, ENGINE: 0.2, DRAM: 0.1, TENSOR: 0.1, CLOCK: 1410, MEMORY: 9000}
    rows = samples(hours(*range(8), *range(20, 24)), namespace="train", **work)
    for slot in ("1", "2"):
        rows += samples(hours(*range(8, 20)), **mig(slot, "3g.20gb"), **serve)
    made = bill(lake_of(tmp_path, rows))
    assert owed(made) == pytest.approx({"train": 24, "serve": 24 * 6 / 7, UNALLOCATED: 24 / 7})
    assert made.paid_usd == 48
    shares = {g.gpu_instance_id: g.board_share for g in made.by_gpu}
    assert shares == pytest.approx({None: 1, "1": 3 / 7, "2": 3 / 7}, abs=1e-6)


@pytest.mark.parametrize("half_h", [24, 12, 5.5])  # at midnight, at noon, within an hour
def test_a_slice_that_is_resized_pays_the_share_it_held_at_the_time(tmp_path: Path, half_h: float) -> None:
    # 24 h x 3/7 + 24 h x 1/7 = $13.71; the rest of the board is nobody's.
    half = round(half_h * 60)
    use = {"namespace": "serve", ENGINE: 0.5, MEMORY: 3000}
    rows = samples(range(half), **mig("1", "3g.20gb"), **use)
    rows += samples(range(half, 2 * half), **mig("1", "1g.5gb"), **use)
    made = bill(lake_of(tmp_path, rows))
    assert owed(made) == pytest.approx({"serve": half_h * 4 / 7, UNALLOCATED: half_h * 10 / 7})
    # Over its time the slice held 2/7 of the board on average, and cost that part of the board's price.
    (own,) = (g for g in made.by_gpu if g.gpu_instance_id == "1")
    assert own.board_share == pytest.approx(2 / 7, abs=1e-6)
    assert float(own.usd_per_h) == pytest.approx(2 / 7, abs=1e-6)  # type: ignore[arg-type]


def test_seven_slices_pay_a_seventh_each_and_leave_nothing(tmp_path: Path) -> None:
    rows = []
    for slot in range(7):
        rows += samples(
            range(120), **mig(str(slot + 1), "1g.5gb"), namespace=f"ns{slot}", **{ENGINE: 0.9, MEMORY: 3000}
        )
    made = bill(lake_of(tmp_path, rows))
    assert UNALLOCATED not in owed(made)
    assert list(owed(made).values()) == pytest.approx([2 / 7] * 7, abs=1e-11)
    assert made.paid_usd == 2


def test_slices_that_repeat_their_boards_power_are_counted_once(tmp_path: Path) -> None:
    # 400 W for 121 minutes: 0.8067 kWh, not seven times that.
    rows = []
    for minute in range(121):
        for slot in range(7):
            use = {POWER: 400, ENERGY: minute * 60 * 400 * 1000, ENGINE: 0.9, DRAM: 0.5, TENSOR: 0.4, CLOCK: 1410}
            rows += samples([minute], **mig(str(slot + 1), "1g.5gb"), namespace=f"ns{slot}", **use, **{MEMORY: 3000})
    lake = lake_of(tmp_path, rows)
    found, kwh = analyze(lake), 0.4 * 121 / 60
    assert found["energy_kwh"] == pytest.approx(kwh, rel=1e-5)
    assert found["fleet"]["power_w"] == pytest.approx(400)
    assert [hour["power_kw"] for hour in found["hours"]] == pytest.approx([0.4] * 3, rel=1e-5)
    assert sum(row["means"]["energy_kwh"] for row in found["per_gpu"]) == pytest.approx(kwh, rel=1e-5)
    made = bill(lake, usd_per_kwh="0.1")
    assert not isinstance(made.energy_kwh, Unknown)
    assert made.energy_kwh == pytest.approx(kwh, rel=1e-5)
    assert made.times.paid_ms == 121 * MS_PER_HOUR // 60
