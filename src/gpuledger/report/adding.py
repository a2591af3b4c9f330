"""How are a table's dollars and shares rounded so that its columns add up?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from gpuledger.cost.money import ZERO, rounded

K = TypeVar("K")
CENTS = 2
TENTHS = 1
LEAST_DIGITS = 3
MOST_PLACES = 8


def places_for(total: Decimal | float) -> int:
    """Places after the point: cents, or as many as it takes for three digits of a small bill."""
    places = CENTS
    while total and places < MOST_PLACES and abs(total) * 10**places < 10 ** (LEAST_DIGITS - 1):
        places += 1
    return places


def shares_adding_up(shares_pct: Mapping[K, float]) -> dict[K, float]:
    """Percentages to the tenth they are written with, by largest remainder: all parts of a whole make 100.0."""
    return {key: float(v) for key, v in rounded({k: Decimal(str(v)) for k, v in shares_pct.items()}, TENTHS).items()}


def add_up(values: Mapping[K, Decimal], goal: Decimal, places: int) -> dict[K, Decimal]:
    """Values rounded by largest remainder to add up to a rounded goal, itself at most one unit from their sum."""
    if not values:
        return {}
    found = rounded(values, places)
    unit = Decimal(1).scaleb(-places)
    missing = int((goal - sum(found.values(), ZERO)) / unit)
    step = unit if missing > 0 else -unit
    # Where the whole table rounds this column the other way, the cell nearest to that gives.
    order = sorted(values, key=lambda key: (found[key] - values[key]) * (1 if missing > 0 else -1))
    for key in order[: abs(missing)]:
        found[key] += step
    return found


def add_up_columns(
    columns: Mapping[K, Sequence[Decimal | None]], whole: K | None, places: int
) -> tuple[dict[K, list[Decimal | None]], dict[K, Decimal]]:
    """Each column rounded to add up to its total; where one is the `whole` of the others, their totals add up to its.

    None is a cell that is not known; it adds nothing.
    """
    sums = {name: sum((v for v in column if v is not None), ZERO) for name, column in columns.items()}
    totals = {name: round(total, places) for name, total in sums.items()}
    if whole is not None:
        totals |= add_up({name: total for name, total in sums.items() if name != whole}, totals[whole], places)
    out: dict[K, list[Decimal | None]] = {}
    for name, column in columns.items():
        known = {i: v for i, v in enumerate(column) if v is not None}
        cells = add_up(known, totals[name], places)
        out[name] = [cells.get(i) for i in range(len(column))]
    return out, totals
