"""How do price and utilization compare with what others call usual? For orientation: nothing is calculated from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import find_gpu
from gpuledger.cost.statement import CostRow, CostStatement
from gpuledger.units import Unknown

# Where each utilization band begins and ends, in percent.
BAND_ENDS = {"idle": (0, 10), "underutilized": (10, 70), "productive": (70, 90), "compute_bound": (90, 100)}


class _Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: str
    words: str
    low_usd: float
    high_usd: float


class _Utilization(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    low_pct: float
    high_pct: float


class Usual(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shipped file."""

    version: Literal[1]
    source: str
    price: tuple[_Price, ...]
    utilization: _Utilization


@cache
def usual() -> Usual:
    """What others call usual."""
    return load_toml(data_dir("gpuledger.advice", "data", "orientation.toml"), Usual)


@dataclass(frozen=True)
class Orientation:
    """One figure that is called usual, as a range, and this fleet's; `unit` is usd_per_gpu_h or pct."""

    name: str
    unit: Literal["usd_per_gpu_h", "pct"]
    low: float
    high: float
    here_low: float | Unknown
    here_high: float | Unknown


def orientation_of(cost: CostStatement) -> tuple[Orientation, ...]:
    """Prices of the models that have a usual one, and the mean utilization."""
    return (*_prices(cost.by_model), _utilization(cost.phases_pct))


def _prices(rows: tuple[CostRow, ...]) -> Iterator[Orientation]:
    for band in usual().price:
        found = [paid for row in rows if _is(row.name, band.gpu) and (paid := _paid(row)) is not None]
        if found:
            price = float(sum(p for p, _ in found) / sum(h for _, h in found))
            yield Orientation(band.words, "usd_per_gpu_h", band.low_usd, band.high_usd, price, price)


def _is(model: str, key: str) -> bool:
    gpu = find_gpu(model)
    return not isinstance(gpu, Unknown) and gpu.key.split("-")[0] == key


def _paid(row: CostRow) -> tuple[Decimal, Decimal] | None:
    """Dollars and GPU-hours with a price; None without any."""
    hours = Decimal(str(row.times.paid_h)) - Decimal(str(row.unpriced_h))
    return None if isinstance(row.dollars, Unknown) or hours <= 0 else (row.dollars.paid_usd, hours)


def _utilization(shares: Mapping[str, float] | Unknown) -> Orientation:
    """The mean lies between those of a fleet at the lower and at the upper end of each band."""
    ends = usual().utilization
    here: list[float | Unknown] = [shares, shares] if isinstance(shares, Unknown) else []
    if not isinstance(shares, Unknown):
        here = [sum(shares[band] * BAND_ENDS[band][end] for band in shares) / 100 for end in (0, 1)]
    return Orientation("Mean GPU utilization of fleets", "pct", ends.low_pct, ends.high_pct, here[0], here[1])
