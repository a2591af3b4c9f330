from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.billing import Plan, Stay, Window
from gpuledger.cost.inventory import Inventory, Paid
from gpuledger.cost.pieces import Device
from gpuledger.cost.pricing import PriceChoice

WINDOW = Window(0, 1000)
CHOICE = PriceChoice(Decimal(7))


def device(name: str = "GPU-a", instance: str | None = None, at: tuple[int, int] = (0, 1000)) -> Device:
    return Device(name, instance, "NVIDIA H100 80GB HBM3", "c1", "us-east-1", *at)


def paid(name: str, start: int | None, end: int | None, price: str | None = "2", row: int = 2) -> Paid:
    usd = None if price is None else Decimal(price)
    return Paid(row, name, start, end, "p5.48xlarge", "us-east-1", "on_demand", usd)


def plan(*devices: Device, rows: tuple[Paid, ...] = (), window: Window = WINDOW) -> list[Stay]:
    return Plan(window, Inventory("inventory.csv", rows) if rows else None, CHOICE).make(devices)


def short(stays: list[Stay]) -> list[tuple[str, int, int, int, Fraction | None]]:
    return [(s.device.name, s.segment.start_ms, s.segment.end_ms, s.length_ms, s.usd_per_h) for s in stays]


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


def test_slices_are_paid_for_with_their_board() -> None:
    stays = plan(device(instance="1"), device(instance="2", at=(0, 400)))
    assert short(stays) == [("GPU-a", 0, 1000, 1000, 7)]


def test_a_board_cut_into_slices_half_way_is_paid_for_once() -> None:
    stays = plan(device(at=(0, 1000)), device(instance="1", at=(600, 1200)), window=Window(0, 1200))
    assert short(stays) == [("GPU-a", 0, 1200, 1200, 7)]


def test_a_slice_with_a_row_of_its_own_is_apart_from_its_board() -> None:
    (stay,) = plan(device(instance="1"), rows=(paid("GPU-a/1", None, None, "0.9"),))
    assert (stay.device.name, stay.usd_per_h, stay.length_ms, stay.own_rate) == ("GPU-a/1", Fraction("0.9"), 1000, True)
    # A price looked up is the board's: the slice pays its share of it.
    (looked_up,) = plan(device(instance="1"), rows=(paid("GPU-a/1", None, None, None),))
    assert (looked_up.usd_per_h, looked_up.own_rate) == (Fraction("6.88"), False)
    own, rest = plan(device(instance="1"), device(instance="2"), rows=(paid("GPU-a/1", None, None, "0.9"),))
    assert (own.device.name, rest.device.name, rest.usd_per_h) == ("GPU-a/1", "GPU-a", 7)


SLICES = st.lists(st.tuples(st.integers(0, 999), st.integers(1, 1000)), min_size=1, max_size=8)


@given(SLICES, st.integers(0, 1000))
def test_a_board_costs_the_same_however_it_is_sliced_and_cut(made: list[tuple[int, int]], cut: int) -> None:
    slices = [device(instance=str(i), at=(s, min(s + n, 1000))) for i, (s, n) in enumerate(made)]
    start, end = min(d.first_ms for d in slices), max(d.last_ms for d in slices)
    windows = [Window(0, 1000)], [Window(0, cut), Window(cut, 1000)]
    for parts in windows:
        stays = [s for window in parts for s in plan(*slices, window=window)]
        assert sum(s.length_ms for s in stays) == end - start
        assert sum(s.usd_per_h * s.length_ms for s in stays if s.usd_per_h) == 7 * (end - start)
