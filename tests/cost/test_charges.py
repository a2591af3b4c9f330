from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.billing import Stay
from gpuledger.cost.charges import Charge, make_charges
from gpuledger.cost.grouping import Part, group, parts_of, row_of
from gpuledger.cost.money import cost_usd
from gpuledger.cost.pieces import Device, Piece, Segment
from gpuledger.cost.pricing import Price
from gpuledger.cost.statement import BUCKETS
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
from gpuledger.units import MS_PER_HOUR, PPM, Unknown

NAMES = ("productive", "stalled", "unrated", "underused", "idle", "idle_held", "unstated")


def stay(number: int, length_ms: int, price: str) -> Stay:
    """A board paid for at one price."""
    device = Device(f"GPU-{number % 3}", None, "m", f"c{number % 2}", None, 0, length_ms)
    paid = Price(Decimal(price), "given", "as given", Decimal(price), Decimal(price))
    segment = Segment(number, device.gpu_uuid, None, 0, length_ms)
    return Stay(device, segment, paid, length_ms, Fraction(paid.usd_per_h))


def piece(
    number: int,
    namespace: str | None,
    *ms: int,
    wanted: bool = True,
    instance: str | None = None,
    ppm: int | None = PPM,
) -> Piece:
    """Milliseconds in the order of NAMES."""
    sums = {f"{n}_ms": v for n, v in zip(NAMES, ms, strict=True)}
    device = (f"GPU-{number % 3}", instance)
    return Piece(number, device, ppm, "c", namespace, None, wanted, sums | {"observed_ms": sum(ms)})


def test_one_hour_by_pencil() -> None:
    # An hour at $6: 20 minutes productive, 5 stalled, 5 unrated, 10 idle, 5 unstated; 15 nobody saw.
    minute = MS_PER_HOUR // 60
    seen = piece(0, "n", *(n * minute for n in (20, 5, 5, 0, 10, 0, 5)))
    made, unpaid = make_charges([stay(0, MS_PER_HOUR, "6")], [seen], Scope())
    own, nobody = made
    assert own.dollars is not None
    assert own.dollars.each() == dict(
        zip(BUCKETS, map(Decimal, ("2", "0.5", "0.5", "0", "1", "0", "0.5")), strict=True)
    )
    assert nobody.namespace is None
    assert nobody.dollars is not None
    assert nobody.dollars.unobserved_usd == Decimal("1.5")
    assert unpaid == 0


def test_lines_that_hold_more_than_was_paid_shrink_to_it() -> None:
    made, _ = make_charges([stay(0, 1000, "3.6")], [piece(0, "n", 1500, 500, 0, 0, 0, 0, 0)], Scope())
    row = row_of("all", parts_of(made))
    assert row.times.each()["productive"] == 750
    assert row.times.paid_ms == 1000
    assert not isinstance(row.dollars, Unknown)
    assert row.dollars.paid_usd == Decimal("0.001")


def test_time_without_a_price_has_no_dollars_and_is_counted_apart() -> None:
    unknown = Stay(stay(0, 1000, "1").device, Segment(0, "GPU-0", None, 0, 1000), Unknown("nobody knows"), 1000)
    made, _ = make_charges([unknown, stay(1, 1000, "3.6")], [], Scope())
    rows = {row.name: row for row in group(_one_by_one(made), lambda c: c.device.gpu_uuid)}
    assert isinstance(rows["GPU-0"].dollars, Unknown)
    assert rows["GPU-0"].dollars.why == "nobody knows"
    whole = row_of("all", parts_of(made))
    assert not isinstance(whole.dollars, Unknown)
    assert whole.dollars.paid_usd == Decimal("0.001")
    assert whole.unpriced_h == 1000 / MS_PER_HOUR


def test_unowned_time_belongs_to_no_namespace() -> None:
    lines = [piece(0, "n", 100, 0, 0, 0, 0, 0, 0)]
    only, _ = make_charges([stay(0, 1000, "1")], lines, Scope(namespaces=("n",)))
    assert [c.namespace for c in only] == ["n"]
    nobody, _ = make_charges([stay(0, 1000, "1")], lines, Scope(namespaces=("n", UNALLOCATED)))
    assert [c.namespace for c in nobody] == ["n", None]
    elsewhere, _ = make_charges([stay(0, 1000, "1")], [], Scope(clusters=("c9",)))
    assert elsewhere == []


def test_slices_pay_by_the_share_they_hold_and_the_board_keeps_the_rest() -> None:
    # 1,000 ms of a board at $3.6/h ($0.001): half of it for 1,000 ms, a quarter for 400 ms; 400 ms are nobody's.
    rows = [
        piece(0, "a", 1000, 0, 0, 0, 0, 0, 0, instance="1", ppm=500_000),
        piece(0, "b", 400, 0, 0, 0, 0, 0, 0, instance="2", ppm=250_000),
    ]
    made, _ = make_charges([stay(0, 1000, "3.6")], rows, Scope())
    assert [(c.namespace, c.device.gpu_instance_id, c.times.paid_ms) for c in made] == [
        ("a", "1", 500), ("b", "2", 100), (None, None, 400),
    ]  # fmt: skip
    assert [c.dollars.paid_usd for c in made if c.dollars] == [Decimal(f"0.000{n}") for n in (5, 1, 4)]


def test_a_slice_that_is_resized_pays_each_share_for_its_time() -> None:
    # 3/7 of the board for half of the time, 1/7 for the other half: 2/7 of the dollars.
    shares = [round(PPM * n / 7) for n in (3, 1)]
    rows = [piece(0, "a", 700, 0, 0, 0, 0, 0, 0, instance="1", ppm=ppm) for ppm in shares]
    made, _ = make_charges([stay(0, 1400, "3.6")], rows, Scope())
    (row,) = (r for r in group(parts_of(made), _namespace) if r.name == "a")
    assert not isinstance(row.dollars, Unknown)
    assert float(row.dollars.paid_usd) == pytest.approx(0.0014 * 2 / 7, rel=2e-6)  # shares are whole ppm


def test_slices_next_to_samples_of_their_board_share_what_is_paid() -> None:
    # The board's own samples while it is sliced are a second view of the same silicon: the bill does not grow.
    whole = piece(0, "a", 1000, 0, 0, 0, 0, 0, 0)
    part = piece(0, "b", 1000, 0, 0, 0, 0, 0, 0, instance="1", ppm=PPM)
    made, _ = make_charges([stay(0, 1000, "3.6")], [whole, part], Scope())
    assert {c.namespace: c.times.paid_ms for c in made} == {"a": 500, "b": 500}
    assert sum(c.dollars.paid_usd for c in made if c.dollars) == Decimal("0.001")


def test_a_slice_of_unknown_size_has_time_and_no_dollars() -> None:
    rows = [
        piece(0, "a", 1000, 0, 0, 0, 0, 0, 0, instance="1", ppm=None),
        piece(0, "b", 1000, 0, 0, 0, 0, 0, 0, instance="2", ppm=250_000),
    ]
    made, _ = make_charges([stay(0, 1000, "3.6")], rows, Scope())
    unknown, known = made
    assert unknown.dollars is None
    assert isinstance(unknown.price, Unknown)
    assert "slice 1" in unknown.price.why
    assert unknown.times.paid_ms == 1000
    # What is left of the board is not known either: nobody is charged for it.
    assert known.dollars is not None
    assert known.dollars.paid_usd == Decimal("0.00025")


def test_a_slice_with_a_rate_of_its_own_pays_what_the_row_says() -> None:
    board = stay(0, MS_PER_HOUR, "0.9")
    device = replace(board.device, gpu_instance_id="1")
    own = replace(board, device=device, segment=replace(board.segment, gpu_instance_id="1"), own_rate=True)
    seen = piece(0, "a", MS_PER_HOUR, 0, 0, 0, 0, 0, 0, instance="1", ppm=250_000)
    (charge,), _ = make_charges([own], [seen], Scope())
    assert charge.dollars is not None
    assert (charge.dollars.paid_usd, charge.times.paid_ms) == (Decimal("0.9"), MS_PER_HOUR // 4)
    looked_up, _ = make_charges([replace(own, own_rate=False)], [seen], Scope())
    assert sum(c.dollars.paid_usd for c in looked_up if c.dollars) == Decimal("0.225")


ROWS = st.tuples(
    st.sampled_from(["a", "b", None]), st.sampled_from([None, "1", "2"]), st.integers(1, PPM),
    st.tuples(*(st.integers(0, 10**8) for _ in NAMES)),
)  # fmt: skip
STAYS = st.lists(
    st.tuples(st.integers(1, 10**9), st.decimals("0.0001", "99", places=8), st.lists(ROWS, max_size=4)),
    min_size=1, max_size=6,
)  # fmt: skip


@given(STAYS)
def test_paid_is_the_sum_of_its_buckets_at_every_grouping(made: list[tuple[int, Decimal, list[Any]]]) -> None:
    stays, pieces, paid_ms, paid_usd = [], [], 0, Decimal(0)
    for i, (length, price, rows) in enumerate(made):
        stays.append(stay(i, length, str(price)))
        pieces += [piece(i, name, *ms, instance=s, ppm=ppm if s else PPM) for name, s, ppm, ms in rows]
        paid_ms += length
        paid_usd += cost_usd(length, Fraction(price))
    charges, _ = make_charges(stays, pieces, Scope())
    ways = (_namespace, _device, lambda c: c.cluster or "", lambda _: "fleet", lambda c: str(c.stay.segment.number))
    for way in ways:
        rows = group(_one_by_one(charges), way)
        assert sum(r.times.paid_ms for r in rows) == paid_ms
        assert sum((v for r in rows for v in r.dollars.each().values()), Decimal(0)) == paid_usd  # type: ignore[union-attr]
    for way in (_namespace, lambda c: c.cluster or "", lambda _: "fleet"):
        assert group(parts_of(charges), way) == group(_one_by_one(charges), way)
    assert all(v >= 0 for c in charges for v in c.dollars.parts())  # type: ignore[union-attr]


def _one_by_one(charges: list[Charge]) -> list[Part]:
    """Each charge as a part of its own, which may be grouped in any way."""
    return [part for charge in charges for part in parts_of([charge])]


def _namespace(charge: Charge) -> str:
    return charge.namespace or UNALLOCATED


def _device(charge: Charge) -> str:
    return charge.device.name
