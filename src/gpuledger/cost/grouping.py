"""What do charges come to by model, cluster, namespace, owner or team?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from operator import itemgetter

from gpuledger.cost.charges import NOTHING_PAID, Charge, grouped
from gpuledger.cost.money import ZERO, usd
from gpuledger.cost.projections import NO_MONTHS, Months
from gpuledger.cost.statement import CostRow, Dollars, Times
from gpuledger.units import MS_PER_HOUR, Unknown


@dataclass(frozen=True)
class Part:
    """Charges of one model and one owner, added up. `one` is any of them; `unknown`: the first without a price.

    `boards`: the GPUs; the slices of one board are one GPU. `month`: the dollars per month, exact.
    """

    one: Charge
    times: Times
    dollars: Dollars | None
    missing_ms: int
    unknown: tuple[int, Unknown] | None
    boards: frozenset[str]
    month: Fraction | Unknown


def parts_of(charges: Iterable[Charge], months: Months = NO_MONTHS) -> list[Part]:
    """The charges by all that bills are broken down by, so that each way of doing it need not add up all of them."""

    def alike(item: tuple[int, Charge]) -> tuple[str | bool | None, ...]:
        c = item[1]
        return c.device.gpu_model, c.cluster, c.namespace, c.workload, c.owned, *c.more.values()

    return [_part(members, months) for members in grouped(enumerate(charges), alike).values()]


def _part(numbered: Sequence[tuple[int, Charge]], months: Months) -> Part:
    members = [c for _, c in numbered]
    priced = [c.dollars for c in members if c.dollars is not None]
    return Part(
        one=members[0],
        times=Times.total(c.times for c in members),
        dollars=Dollars.total(priced) if priced else None,
        missing_ms=sum(c.times.paid_ms for c in members if c.dollars is None),
        unknown=next(((i, c.price) for i, c in numbered if isinstance(c.price, Unknown)), None),
        boards=frozenset(c.device.gpu_uuid for c in members),
        month=months.total((c.device.gpu_uuid, c.dollars.paid_usd) for c in members if c.dollars is not None),
    )


def group(parts: Iterable[Part], name: Callable[[Charge], str]) -> tuple[CostRow, ...]:
    """Charges by name, the most expensive first."""
    rows = [row_of(key, members) for key, members in grouped(parts, lambda part: name(part.one)).items()]
    return tuple(sorted(rows, key=lambda row: (-_paid(row), row.name)))


def row_of(name: str, parts: Sequence[Part]) -> CostRow:
    """Some charges as one row."""
    priced = [p.dollars for p in parts if p.dollars is not None]
    missing_ms = sum(p.missing_ms for p in parts)
    _, why = min((p.unknown for p in parts if p.unknown), key=itemgetter(0), default=(0, NOTHING_PAID))
    dollars = Dollars.total(priced) if priced else why
    boards = frozenset[str]().union(*(p.boards for p in parts))
    times = Times.total(p.times for p in parts)
    month = dollars if isinstance(dollars, Unknown) else _month([p.month for p in parts if p.dollars is not None])
    return CostRow(name, len(boards), times, dollars, missing_ms / MS_PER_HOUR, month)


def _month(parts: Sequence[Fraction | Unknown]) -> Decimal | Unknown:
    """Dollars per month of what can be carried that far; the reason where nothing can."""
    known = [part for part in parts if not isinstance(part, Unknown)]
    return usd(sum(known, Fraction(0))) if known else next(part for part in parts if isinstance(part, Unknown))


def _paid(row: CostRow) -> Decimal:
    return ZERO if isinstance(row.dollars, Unknown) else row.dollars.paid_usd
