"""Which of two prices for one GPU at the same time is used, and how far apart are they?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.inventories.findings import PriceConflict, Source
from gpuledger.cost.inventories.matching import Presence
from gpuledger.cost.inventory import Paid
from gpuledger.cost.money import usd
from gpuledger.units import MS_PER_HOUR

OPEN_MS = 1 << 62
# Prices that agree to this many dollars per hour do not contradict each other.
SAME_USD = Decimal("0.0005")


@dataclass
class _Clash:
    """Time of one model at two prices."""

    gpus: set[str]
    ms: int = 0
    used: Fraction = Fraction(0)
    other: Fraction = Fraction(0)


def layered(layers: Iterable[Sequence[Paid]], presences: Sequence[Presence]) -> tuple[list[Paid], list[PriceConflict]]:
    """Rows of earlier layers first, of later ones what is left of their time; differing prices are conflicts."""
    models = {p.gpu_uuid: p.gpu_model for p in sorted(presences, key=lambda p: p.last_ms)}
    kept: dict[str, list[Paid]] = {}
    clashes: dict[tuple[str | None, Source, str, Source, str], _Clash] = {}
    for layer in layers:
        new: dict[str, list[Paid]] = {}
        for row in layer:
            left = [row]
            for first in kept.get(row.device, ()):
                if common := _common(first, row):
                    _note(first, row, common, clashes, models)
                    left = [part for one in left for part in _without(one, common)]
            new.setdefault(row.device, []).extend(left)
        for device, rows in new.items():
            kept.setdefault(device, []).extend(rows)
    rows = [row for device in sorted(kept) for row in kept[device]]
    return rows, [_conflict(key, clashes[key]) for key in sorted(clashes, key=str)]


def ends_of(row: Paid) -> tuple[int, int]:
    """From when to when a row counts; an open end is far away."""
    return -OPEN_MS if row.from_ms is None else row.from_ms, OPEN_MS if row.to_ms is None else row.to_ms


def _common(one: Paid, other: Paid) -> tuple[int, int] | None:
    (a, b), (c, d) = ends_of(one), ends_of(other)
    low, high = max(a, c), min(b, d)
    return (low, high) if low < high else None


def _without(row: Paid, cut: tuple[int, int]) -> list[Paid]:
    low, high = ends_of(row)
    before = replace(row, to_ms=cut[0]) if low < cut[0] else None
    after = replace(row, from_ms=cut[1]) if cut[1] < high else None
    if min(high, cut[1]) <= max(low, cut[0]):
        return [row]
    return [part for part in (before, after) if part]


def _note(
    used: Paid,
    other: Paid,
    common: tuple[int, int],
    clashes: dict[tuple[str | None, Source, str, Source, str], _Clash],
    models: dict[str, str | None],
) -> None:
    if used.usd_per_h is None or other.usd_per_h is None or abs(used.usd_per_h - other.usd_per_h) < SAME_USD:
        return
    ms = common[1] - common[0]
    key = (models.get(used.device), used.source, used.file, other.source, other.file)
    clash = clashes.setdefault(key, _Clash(set()))
    clash.gpus.add(used.device)
    clash.ms += ms
    clash.used += Fraction(used.usd_per_h) * ms
    clash.other += Fraction(other.usd_per_h) * ms


def _conflict(key: tuple[str | None, Source, str, Source, str], clash: _Clash) -> PriceConflict:
    model, used, used_from, other, other_from = key
    rates = [usd(total / clash.ms) for total in (clash.used, clash.other)]
    sizes = (model, len(clash.gpus), clash.ms / MS_PER_HOUR)
    return PriceConflict(*sizes, used, used_from, rates[0], other, other_from, rates[1])
