"""How do dollars add up to the last digit?

Every amount is a whole number of the smallest unit (10^-12 USD) as soon as it is made. A total is split over parts by
largest remainder, so the parts always add up to it, in any grouping and any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from gpuledger.units import MS_PER_HOUR

K = TypeVar("K")

PLACES = 12
QUANTUM = Decimal(1).scaleb(-PLACES)
CENT = Decimal("0.01")
ZERO = Decimal(0)


def usd(amount: Fraction | Decimal) -> Decimal:
    """An exact amount as dollars, to the nearest smallest unit (ties to even)."""
    return usd_of(*amount.as_integer_ratio())


def usd_of(top: int, bottom: int) -> Decimal:
    """As `usd`, of a fraction that need not be in lowest terms; `bottom` is above 0."""
    units, rest = divmod(top * 10**PLACES, bottom)
    return Decimal(units + (2 * rest + units % 2 > bottom)).scaleb(-PLACES)


def cost_usd(duration_ms: int, usd_per_h: Decimal | Fraction) -> Decimal:
    """What a duration costs at a price per hour, to the nearest smallest unit."""
    top, bottom = usd_per_h.as_integer_ratio()
    return usd_of(top * duration_ms, bottom * MS_PER_HOUR)


def split(total: Decimal, weights: Mapping[K, int]) -> dict[K, Decimal]:
    """A total over parts in proportion to whole weights; the parts add up to the total to the last digit."""
    return dict(zip(weights, apportion_usd(total, list(weights.values())), strict=True))


def split_whole(total: int, weights: Mapping[K, int]) -> dict[K, int]:
    """As split, for whole numbers such as milliseconds."""
    return dict(zip(weights, apportion(total, list(weights.values())), strict=True))


def apportion_usd(total: Decimal, weights: Sequence[int]) -> list[Decimal]:
    """As split, for parts in order."""
    units = apportion(int(total.scaleb(PLACES)), weights)
    return [Decimal(n).scaleb(-PLACES) if n else ZERO for n in units]


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of a whole total, largest remainder first; of equal remainders the earlier part."""
    whole = sum(weights)
    if whole == total:
        return list(weights)
    if not whole:
        # Nothing to go by: all of it stays with the first part rather than being lost.
        return [total if i == 0 else 0 for i in range(len(weights))]
    parts = [total * w // whole if w else 0 for w in weights]
    if missing := total - sum(parts):
        rest = [total * w % whole if w else 0 for w in weights]
        for i in sorted(range(len(weights)), key=rest.__getitem__, reverse=True)[:missing]:
            parts[i] += 1
    return parts


def rounded(values: Mapping[K, Decimal], places: int = 2) -> dict[K, Decimal]:
    """Values for a table: rounded so that the column adds up to its rounded total."""
    scaled = {key: value.scaleb(places) for key, value in values.items()}
    floors = {key: int(value // 1) for key, value in scaled.items()}
    # Decimal's // cuts towards zero; a negative amount needs the whole number below it.
    floors = {key: n - 1 if Decimal(n) > scaled[key] else n for key, n in floors.items()}
    goal = round(sum(scaled.values(), ZERO))
    order = sorted(scaled, key=lambda key: floors[key] - scaled[key])
    for key in order[: goal - sum(floors.values())]:
        floors[key] += 1
    return {key: Decimal(n).scaleb(-places) for key, n in floors.items()}
