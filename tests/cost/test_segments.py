from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.buckets import Device
from gpuledger.cost.inventory import Inventory, Paid
from gpuledger.cost.pricing import PriceChoice
from gpuledger.cost.segments import Plan, Stay, Window
from gpuledger.units import Unknown

WINDOW = Window(0, 1000)
CHOICE = PriceChoice(Decimal(7))


def device(
    name: str = "GPU-a", instance: str | None = None, ppm: int | None = None, at: tuple[int, int] = (0, 1000)
) -> Device:
    return Device(name, instance, "NVIDIA H100 80GB HBM3", "c1", "us-east-1", ppm, *at)


def paid(name: str, start: int | None, end: int | None, price: str | None = "2", row: int = 2) -> Paid:
    usd = None if price is None else Decimal(price)
    return Paid(row, name, start, end, "p5.48xlarge", "us-east-1", "on_demand", usd)


def plan(*devices: Device, rows: tuple[Paid, ...] = (), window: Window = WINDOW) -> list[Stay]:
    return Plan(window, Inventory("inventory.csv", rows) if rows else None, CHOICE).make(devices)


def short(stays: list[Stay]) -> list[tuple[str, int, int, int, Fraction | None]]:
    return [(s.device.name, s.segment.start_ms, s.segment.end_ms, s.board_ms, s.usd_per_device_h) for s in stays]


def test_without_an_inventory_from_first_to_last_sample() -> None:
    assert short(plan(device(at=(100, 900)))) == [("GPU-a", 100, 900, 800, 7)]
    assert short(plan(device(at=(100, 900)), window=Window(200, 300))) == [("GPU-a", 200, 300, 100, 7)]


def test_an_inventory_says_when_and_for_how_much() -> None:
    rows = (paid("GPU-a", 100, 400, "2"), paid("GPU-a", 400, 700, "3"))
    assert short(plan(device(), rows=rows)) == [
        ("GPU-a", 100, 400, 300, 2),
        ("GPU-a", 400, 700, 300, 3),
        ("GPU-a", 0, 100, 100, None),
        ("GPU-a", 700, 1000, 300, None),
    ]


def test_a_device_that_is_not_in_the_inventory_is_paid_while_seen() -> None:
    stays = plan(device(), device("GPU-b", at=(0, 500)), rows=(paid("GPU-a", None, None),))
    assert short(stays) == [("GPU-a", 0, 1000, 1000, 2), ("GPU-b", 0, 500, 500, 7)]


def test_a_device_that_was_never_seen_is_paid_all_the_same() -> None:
    stays = plan(device(), rows=(paid("GPU-a", None, None), paid("GPU-z", 500, None, None)))
    assert short(stays)[1] == ("GPU-z", 500, 1000, 500, Fraction("6.88"))
    assert stays[1].seen is False
    assert stays[1].device.gpu_model == "H100-SXM5-80GB"


def test_a_slice_costs_its_share_and_the_board_keeps_the_rest() -> None:
    stays = plan(device(instance="1", ppm=500_000), device(instance="2", ppm=250_000, at=(0, 400)))
    assert short(stays) == [
        ("GPU-a/1", 0, 1000, 500, Fraction(7, 2)),
        ("GPU-a/2", 0, 400, 100, Fraction(7, 4)),
        ("GPU-a", 0, 1000, 400, Fraction(14, 5)),
    ]
    assert [s.seen for s in stays] == [True, True, False]


def test_a_board_cut_into_slices_half_way() -> None:
    stays = plan(device(at=(0, 1000)), device(instance="1", ppm=1_000_000, at=(600, 1000)))
    # The board's own samples while it is sliced are a second view of the same silicon: not paid twice.
    assert short(stays) == [
        ("GPU-a", 0, 600, 600, 7),
        ("GPU-a", 600, 1000, 400, None),
        ("GPU-a/1", 600, 1000, 400, 7),
    ]


def test_a_slice_of_unknown_size_has_no_price() -> None:
    (stay,) = plan(device(instance="1"))
    assert isinstance(stay.price, Unknown)
    assert "slice 1" in stay.price.why


def test_a_slice_with_a_row_of_its_own_pays_what_the_row_says() -> None:
    (stay,) = plan(device(instance="1", ppm=250_000), rows=(paid("GPU-a/1", None, None, "0.9"),))
    assert (stay.usd_per_device_h, stay.board_ms) == (Fraction("0.9"), 250)
    (looked_up,) = plan(device(instance="1", ppm=250_000), rows=(paid("GPU-a/1", None, None, None),))
    assert looked_up.usd_per_device_h == Fraction("6.88") / 4
    (unknown,) = plan(device(instance="1"), rows=(paid("GPU-a/1", None, None, None),))
    assert isinstance(unknown.price, Unknown)


SLICES = st.lists(
    st.tuples(st.integers(1, 1_000_000), st.integers(0, 999), st.integers(1, 1000)), min_size=1, max_size=8
)


@given(SLICES)
def test_a_board_costs_the_same_however_it_is_sliced(made: list[tuple[int, int, int]]) -> None:
    slices = [device(instance=str(i), ppm=p, at=(s, min(s + n, 1000))) for i, (p, s, n) in enumerate(made)]
    stays = plan(*slices)
    start = min(d.first_ms for d in slices)
    end = max(d.last_ms for d in slices)
    # A slice's share of the time is rounded to a millisecond.
    assert sum(s.board_ms for s in stays) == pytest.approx(end - start, abs=len(slices))
    cost = sum(s.usd_per_device_h * (s.segment.end_ms - s.segment.start_ms) for s in stays if s.usd_per_device_h)
    assert float(cost) == pytest.approx(7 * (end - start), abs=7 * len(slices))
