from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.buckets import Device, Piece, Segment
from gpuledger.cost.charges import Charge, group, make_charges, row_of
from gpuledger.cost.money import cost_usd
from gpuledger.cost.pricing import Price
from gpuledger.cost.segments import Stay
from gpuledger.cost.statement import BUCKETS
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
from gpuledger.units import MS_PER_HOUR, Unknown

NAMES = ("productive", "stalled", "underused", "idle", "idle_held", "unstated")


def stay(number: int, length_ms: int, price: str, share: Fraction = Fraction(1)) -> Stay:
    device = Device(f"GPU-{number % 3}", None, "m", f"c{number % 2}", None, None, 0, length_ms)
    paid = Price(Decimal(price), "given", "as given", Decimal(price), Decimal(price))
    segment = Segment(number, device.gpu_uuid, None, 0, length_ms)
    return Stay(device, segment, paid, round(length_ms * share), Fraction(paid.usd_per_h) * share)


def piece(number: int, namespace: str | None, *ms: int, wanted: bool = True) -> Piece:
    sums = {f"{n}_ms": v for n, v in zip(NAMES, ms, strict=True)}
    return Piece(number, "c", namespace, None, wanted, sums | {"observed_ms": sum(ms)})


def test_one_hour_by_pencil() -> None:
    # An hour at $6: 20 minutes productive, 10 stalled, 10 idle, 5 unstated; 15 nobody saw.
    minute = MS_PER_HOUR // 60
    made, unpaid = make_charges(
        [stay(0, MS_PER_HOUR, "6")], [piece(0, "n", 20 * minute, 10 * minute, 0, 10 * minute, 0, 5 * minute)], Scope()
    )
    own, nobody = made
    assert own.dollars is not None
    assert own.dollars.each() == dict(zip(BUCKETS, map(Decimal, (2, 1, 0, 1, 0, Decimal("0.5"))), strict=True))
    assert nobody.namespace is None
    assert nobody.dollars is not None
    assert nobody.dollars.unobserved_usd == Decimal("1.5")
    assert unpaid == 0


def test_lines_that_hold_more_than_was_paid_shrink_to_it() -> None:
    made, _ = make_charges([stay(0, 1000, "3.6")], [piece(0, "n", 1500, 500, 0, 0, 0, 0)], Scope())
    row = row_of("all", made)
    assert row.times.each()["productive"] == 750
    assert row.times.paid_ms == 1000
    assert not isinstance(row.dollars, Unknown)
    assert row.dollars.paid_usd == Decimal("0.001")


def test_time_without_a_price_has_no_dollars_and_is_counted_apart() -> None:
    unknown = Stay(stay(0, 1000, "1").device, Segment(0, "GPU-0", None, 0, 1000), Unknown("nobody knows"), 1000)
    made, _ = make_charges([unknown, stay(1, 1000, "3.6")], [], Scope())
    rows = {row.name: row for row in group(made, lambda c: c.device.gpu_uuid)}
    assert isinstance(rows["GPU-0"].dollars, Unknown)
    assert rows["GPU-0"].dollars.why == "nobody knows"
    whole = row_of("all", made)
    assert not isinstance(whole.dollars, Unknown)
    assert whole.dollars.paid_usd == Decimal("0.001")
    assert whole.unpriced_h == 1000 / MS_PER_HOUR


def test_unowned_time_belongs_to_no_namespace() -> None:
    lines = [piece(0, "n", 100, 0, 0, 0, 0, 0)]
    only, _ = make_charges([stay(0, 1000, "1")], lines, Scope(namespaces=("n",)))
    assert [c.namespace for c in only] == ["n"]
    nobody, _ = make_charges([stay(0, 1000, "1")], lines, Scope(namespaces=("n", UNALLOCATED)))
    assert [c.namespace for c in nobody] == ["n", None]
    elsewhere, _ = make_charges([stay(0, 1000, "1")], [], Scope(clusters=("c9",)))
    assert elsewhere == []


STAYS = st.lists(
    st.tuples(
        st.integers(1, 10**9), st.decimals("0.0001", "99", places=8), st.integers(1, 7),
        st.lists(st.tuples(st.sampled_from(["a", "b", None]), *(st.integers(0, 10**8) for _ in NAMES)), max_size=4),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(STAYS)
def test_paid_is_the_sum_of_its_buckets_at_every_grouping(
    made: list[tuple[int, Decimal, int, list[tuple[object, ...]]]],
) -> None:
    stays, pieces, paid_ms, paid_usd = [], [], 0, Decimal(0)
    for i, (length, price, sevenths, rows) in enumerate(made):
        stays.append(stay(i, length, str(price), Fraction(sevenths, 7)))
        pieces += [piece(i, *row) for row in rows]  # type: ignore[arg-type]
        paid_ms += stays[-1].board_ms
        paid_usd += cost_usd(length, Fraction(price) * Fraction(sevenths, 7))
    charges, _ = make_charges(stays, pieces, Scope())
    ways = (_namespace, _device, lambda c: c.cluster or "", lambda _: "fleet", lambda c: str(c.stay.segment.number))
    for way in ways:
        rows = group(charges, way)
        assert sum(r.times.paid_ms for r in rows) == paid_ms
        assert sum((v for r in rows for v in r.dollars.each().values()), Decimal(0)) == paid_usd  # type: ignore[union-attr]
    assert all(v >= 0 for c in charges for v in c.dollars.parts())  # type: ignore[union-attr]


def _namespace(charge: Charge) -> str:
    return charge.namespace or UNALLOCATED


def _device(charge: Charge) -> str:
    return charge.device.gpu_uuid
