"""Is a board paid for once, and its power counted once, however it is sliced and resliced?"""

from __future__ import annotations

from collections.abc import Sequence
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
    Row,
    analyze,
    bill,
    lake_of,
    mig,
    owed,
    samples,
)  # fmt: skip

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
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
    assert found["energy_kwh"] == pytest.approx(kwh, rel=1e-8)
    assert found["fleet"]["power_w"] == pytest.approx(400)
    assert [hour["power_kw"] for hour in found["hours"]] == pytest.approx([0.4] * 3)
    assert sum(row["means"]["energy_kwh"] for row in found["per_gpu"]) == pytest.approx(kwh, rel=1e-8)
    made = bill(lake, usd_per_kwh="0.1")
    assert not isinstance(made.energy_kwh, Unknown)
    assert made.energy_kwh == pytest.approx(kwh, rel=1e-8)
    assert made.times.paid_ms == 121 * MS_PER_HOUR // 60


def powered(minutes: Sequence[int], watts: int, **labels: str) -> list[Row]:
    """Samples of a board at a constant power, as its slices repeat it."""
    return samples(minutes, **labels, **{POWER: watts, ENGINE: 0.9, TENSOR: 0.4, CLOCK: 1410, MEMORY: 3000})


def energies(lake: Lake, scope: Scope | None = None) -> tuple[float, float]:
    """kWh by analyze and by audit."""
    made = bill(lake, scope).energy_kwh
    assert not isinstance(made, Unknown)
    return analyze(lake)["energy_kwh"], made


@pytest.mark.parametrize("slices", [1, 3, 7])
def test_a_board_draws_its_power_however_much_of_it_is_sliced(tmp_path: Path, slices: int) -> None:
    # 300 W for 61 minutes, with one, three or seven slices of a seventh: 0.305 kWh.
    rows = [r for s in range(slices) for r in powered(range(61), 300, **mig(str(s + 1), "1g.5gb"), namespace=f"ns{s}")]
    lake = lake_of(tmp_path, rows)
    assert energies(lake) == pytest.approx((0.305, 0.305), rel=1e-8)
    found = analyze(lake)
    assert found["fleet"]["power_w"] == pytest.approx(300)
    assert [hour["power_kw"] for hour in found["hours"]] == pytest.approx([0.3] * 2)
    assert found["capacity"]["fleet"]["peak_tflops"] == pytest.approx(312 * slices / 7)


def test_an_owner_of_one_slice_has_its_part_of_the_energy_in_any_scope(tmp_path: Path) -> None:
    # 300 W for 61 minutes over three slices of equal size: a third of 0.305 kWh each.
    rows = [r for s in range(3) for r in powered(range(61), 300, **mig(str(s + 1), "1g.5gb"), namespace=f"ns{s}")]
    lake = lake_of(tmp_path, rows)
    mine = bill(lake, Scope(namespaces=("ns1",))).energy_kwh
    assert mine == pytest.approx(0.305 / 3, rel=1e-6)
    assert efficiency_statement(lake, Scope(namespaces=("ns1",))).fleet.energy_kwh == pytest.approx(0.305 / 3, rel=1e-6)


def test_energy_of_a_board_whole_by_night_and_sliced_by_day(tmp_path: Path) -> None:
    # 24 h at 390 W whole, 24 h at 200 W as two slices of 3/7: 9.36 + 4.8 kWh, a mean of 295 W.
    # TFLOPS: half of the time 312, half of it 6/7 of 312.
    rows = powered(hours(*range(8), *range(20, 24)), 390, namespace="train")
    for slot in ("1", "2"):
        rows += powered(hours(*range(8, 20)), 200, **mig(slot, "3g.20gb"), namespace="serve")
    lake = lake_of(tmp_path, rows)
    assert energies(lake) == pytest.approx((14.16, 14.16), rel=1e-8)
    found = analyze(lake)
    assert found["fleet"]["power_w"] == pytest.approx(295)
    by_hour = [0.39] * 8 + [0.2] * 12 + [0.39] * 4
    assert [hour["power_kw"] for hour in found["hours"]] == pytest.approx(by_hour * DAYS)
    assert found["capacity"]["fleet"]["peak_tflops"] == pytest.approx(312 / 2 + 312 / 2 * 6 / 7)
    # By the hour a device has all it holds then: the whole board at 390 of 400 W by night.
    assert found["hours"][0]["realized_power_tflops"] == pytest.approx(102 * 390 / 400)


def test_a_board_sliced_anew_counts_once(tmp_path: Path) -> None:
    # Seven slices for an hour, then two of 3/7 under other numbers: at most one board, at least what the slices held.
    rows = [r for s in range(7) for r in powered(range(60), 300, **mig(str(s + 7), "1g.5gb"))]
    rows += [r for s in range(2) for r in powered(range(60, 120), 300, **mig(str(s + 1), "3g.20gb"))]
    found = analyze(lake_of(tmp_path, rows))
    assert found["capacity"]["fleet"]["peak_tflops"] == pytest.approx(312)
    assert found["energy_kwh"] == pytest.approx(0.3 * (1 + 6 / 7))


def test_a_resized_slice_has_the_tflops_of_its_mean_share(tmp_path: Path) -> None:
    # 3/7 for a day, 1/7 for another: 2/7 of 312.
    use = {"namespace": "serve", ENGINE: 0.5, MEMORY: 3000}
    rows = samples(range(1440), **mig("1", "3g.20gb"), **use) + samples(range(1440, 2880), **mig("1", "1g.5gb"), **use)
    found = analyze(lake_of(tmp_path, rows))
    assert found["capacity"]["fleet"]["peak_tflops"] == pytest.approx(312 * 2 / 7, rel=1e-3)


def unshared(instance: str) -> Row:
    """The labels of a slice that does not say how large it is."""
    return {"GPU_I_ID": instance}


def test_a_slice_of_unknown_share_has_no_known_energy_and_says_why(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, powered(range(61), 300, **unshared("1"), namespace="ns"))
    found = efficiency_statement(lake)
    for figure in (found.fleet.energy_kwh, found.fleet.power_w, *(hour.power_kw for hour in found.hours)):
        assert isinstance(figure, Unknown)
        assert "share of its board" in figure.why
    made = bill(lake, usd_per_kwh="0.1")
    for figure in (made.energy_kwh, made.energy_usd):
        assert isinstance(figure, Unknown)
        assert "share of its board" in figure.why


def test_energy_without_slices_of_unknown_share_says_that_it_is_a_part(tmp_path: Path) -> None:
    # The first board draws 300 W for 61 minutes: 0.305 kWh. What the slice of the second has of it is not known.
    rows = powered(range(61), 300, UUID="GPU-first", namespace="ns")
    rows += powered(range(61), 300, UUID="GPU-second", **unshared("1"), namespace="ns")
    lake = lake_of(tmp_path, rows)
    assert energies(lake) == pytest.approx((0.305, 0.305), rel=1e-8)
    (note,) = (n for n in efficiency_statement(lake).not_known if n.figure == "fleet.energy_kwh for all devices")
    assert note.why.startswith("known in part")
    assert any("share of the board is not recorded" in said for said in bill(lake).assumptions)
