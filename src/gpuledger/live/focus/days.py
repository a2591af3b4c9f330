"""What does each device cost each owner on each day of a window?

The bill of the whole window is spread over its days in proportion to the bills of the days, by largest remainder. So
rows add up to the bill to the last digit, by device, owner and bucket, also where rounding or a resliced board makes
the bills of single days add up to something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.cost.billing import Asked, Charged, Plan, Window
from gpuledger.cost.charges import Charge, grouped, make_charges
from gpuledger.cost.money import PLACES, split, split_whole
from gpuledger.cost.pieces import read_pieces
from gpuledger.cost.statement import BUCKETS, Bucket, Dollars, Times
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.units import MS_PER_DAY

Key = tuple[object, ...]
_ENERGY = ("energy_mj", "energy_ms")


@dataclass(frozen=True)
class DayCharge:
    """What one owner owes for one device on one day. `of`: a charge of the same device, owner and price.

    `dollars` is None where the price is unknown.
    """

    start_ms: int
    end_ms: int
    of: Charge
    times: Times
    dollars: Dollars | None
    sums: Mapping[str, int]


def day_charges(lake: Lake, asked: Asked, bill: Charged) -> Iterator[DayCharge]:
    """The charges of a bill by day, in order of day, device and owner."""
    days = list(_days(bill.window))
    found: dict[Key, dict[int, list[Charge]]] = {}
    for number, day in enumerate(days):
        for key, members in grouped(_charges_of(lake, asked, bill, day), _key).items():
            found.setdefault(key, {})[number] = members
    whole = grouped(bill.charges, _key)
    made = [made for key, members in whole.items() for made in _spread(members, found.get(key, {}), days)]
    yield from sorted(made, key=_order)


def _days(window: Window) -> Iterator[Window]:
    """The UTC days of a window, cut to it."""
    start = window.start_ms
    while start < window.end_ms:
        end = min(window.end_ms, start // MS_PER_DAY * MS_PER_DAY + MS_PER_DAY)
        yield Window(start, end)
        start = end


def _charges_of(lake: Lake, asked: Asked, bill: Charged, day: Window) -> Sequence[Charge]:
    """The charges of one day; a day without samples is paid for too."""
    scope = replace(asked.scope, since_ms=day.start_ms, until_ms=day.end_ms)
    # All devices of the window: one that comes later in it may be paid for before it is seen.
    stays = Plan(day, asked.inventory, asked.choice).make(bill.devices)
    segments = [s.segment for s in stays if s.seen]
    pieces, _ = read_pieces(Books(lake, scope), segments, asked.calibration, asked.by)
    return make_charges(stays, pieces, asked.scope)[0]


def _key(charge: Charge) -> Key:
    labels = tuple(sorted(charge.labels.items()))
    return charge.device.name, charge.owned, labels, charge.price, charge.dollars is None


def _spread(
    whole: Sequence[Charge], by_day: Mapping[int, Sequence[Charge]], days: Sequence[Window]
) -> Iterator[DayCharge]:
    """The charges of one device, owner and price over the days they are of."""
    weights = by_day or {_first_day(whole[0], days): whole}
    times = {n: Times.total(c.times for c in members) for n, members in weights.items()}
    total = Times.total(c.times for c in whole)
    ms = {b: split_whole(total.each()[b], {n: t.each()[b] for n, t in times.items()}) for b in BUCKETS}
    sums = _spread_sums(whole, weights)
    owed = _spread_dollars(whole, weights)
    for n in weights:
        mine = Times.of({b: ms[b][n] for b in BUCKETS})
        paid = None if owed is None else Dollars.of({b: owed[b][n] for b in BUCKETS})
        if mine.paid_ms or (paid is not None and paid.paid_usd):
            yield DayCharge(days[n].start_ms, days[n].end_ms, whole[0], mine, paid, sums[n])


def _first_day(charge: Charge, days: Sequence[Window]) -> int:
    return next((n for n, day in enumerate(days) if charge.stay.segment.start_ms < day.end_ms), 0)


def _spread_dollars(
    whole: Sequence[Charge], weights: Mapping[int, Sequence[Charge]]
) -> dict[Bucket, dict[int, Decimal]] | None:
    if any(c.dollars is None for c in whole):
        return None
    total: Dollars = Dollars.total(c.dollars for c in whole if c.dollars)
    each = {n: Dollars.total([Dollars(), *(c.dollars for c in m if c.dollars)]).each() for n, m in weights.items()}
    return {b: split(total.each()[b], {n: int(e[b].scaleb(PLACES)) for n, e in each.items()}) for b in BUCKETS}


def _spread_sums(whole: Sequence[Charge], weights: Mapping[int, Sequence[Charge]]) -> dict[int, dict[str, int]]:
    """The sums of each day; those of energy add up to the window's, whose MIG slices count their board once."""
    out = {n: _added(members) for n, members in weights.items()}
    total = _added(whole)
    for name in _ENERGY:
        for n, part in split_whole(total.get(name, 0), {n: s.get(name, 0) for n, s in out.items()}).items():
            out[n][name] = part
    return out


def _added(members: Sequence[Charge]) -> dict[str, int]:
    found = Counter[str]()
    for charge in members:
        found.update(charge.sums)
    return dict(found)


def _order(made: DayCharge) -> tuple[object, ...]:
    return made.start_ms, made.of.device.name, *(text or "" for _, text in sorted(made.of.labels.items()))
