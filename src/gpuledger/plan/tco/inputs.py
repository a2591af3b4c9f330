"""Which figures does the comparison rest on, how sure is each, and where does it come from?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import InputError
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.catalog.gpus import Gpu

PERCENT = Decimal(100)
MOST = {"pue": 5, "utilization_pct": 100, "paid_idle_pct": 100, "busy_pct": 120, "spares_pct": 100, "decline_pct": 99,
        "residual_pct": 100, "capital_pct": 100, "maintenance_pct": 100, "failures_pct_year": 1000,
        "repair_days": 365, "life_years": 50}  # fmt: skip
LEAST = {"pue": 1, "life_years": 1}
# A comparison with nothing in them would divide by them.
ABOVE_ZERO = {"utilization_pct", "rent_usd", "one_year_usd", "three_year_usd", "spot_usd", "purchase_usd"}
MOST_OTHER = 1e9


class Basis(StrEnum):
    """Where a figure comes from."""

    GIVEN = "given"
    LEDGER = "ledger"
    SOURCE = "source"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Input:
    """One figure: what it is, its range, and where it comes from. A figure the user gave has no range."""

    name: str
    words: str
    unit: str
    low: Decimal
    middle: Decimal
    high: Decimal
    basis: Basis
    source: str = ""
    as_of: str = ""

    @property
    def ranged(self) -> bool:
        """Whether its ends differ."""
        return self.low != self.high


class _Default(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    words: str
    unit: str
    low: str
    middle: str
    high: str
    assumed: bool = False
    source: str = ""
    as_of: str = ""


class _Purchase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: str
    low: str
    middle: str
    high: str
    source: str
    as_of: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    input: tuple[_Default, ...]
    purchase: tuple[_Purchase, ...]


@cache
def _file() -> _File:
    return load_toml(data_dir("gpuledger.plan", "data", "tco.toml"), _File)


def defaults() -> Iterator[Input]:
    """The shipped figures."""
    for d in _file().input:
        basis = Basis.ASSUMED if d.assumed else Basis.SOURCE
        low, middle, high = map(Decimal, (d.low, d.middle, d.high))
        yield Input(d.name, d.words, d.unit, low, middle, high, basis, d.source, d.as_of)


def checked(name: str, value: float) -> Decimal:
    """A number the user gave, finite and within what is possible."""
    least, most = LEAST.get(name, 0), MOST.get(name, MOST_OTHER)
    low = value <= 0 if name in ABOVE_ZERO else value < least
    if not math.isfinite(value) or low or value > most:
        bound = "above 0" if name in ABOVE_ZERO else f"{least} or more"
        raise InputError(f"{name}={value:g} is not possible", hint=f"give {name}={bound}, up to {most:,.0f}")
    return Decimal(str(value))


def given(name: str, words: str, unit: str, value: float) -> Input:
    """A figure of the user."""
    exact = checked(name, value)
    return Input(name, words, unit, exact, exact, exact, Basis.GIVEN, "given")


def inputs_of(asked: Mapping[str, float | None]) -> dict[str, Input]:
    """All figures that have a default, with those of the user in their place."""
    out = {}
    for one in defaults():
        value = asked.get(one.name)
        out[one.name] = one if value is None else given(one.name, one.words, one.unit, value)
    return out


def measured(one: Input, value: Decimal, words: str) -> Input:
    """The same figure as the ledger has it."""
    return replace(one, low=value, middle=value, high=value, basis=Basis.LEDGER, source=words, as_of="")


def purchase_of(gpu: Gpu, usd: float | None) -> Input | Unknown:
    """The price of one GPU with its share of the server: the user's, else a citable one."""
    words, unit = "purchase price, with server share", "$ per GPU"
    if usd is not None:
        return given("purchase_usd", words, unit, usd)
    for p in _file().purchase:
        if p.gpu == gpu.key:
            low, middle, high = map(Decimal, (p.low, p.middle, p.high))
            return Input("purchase_usd", words, unit, low, middle, high, Basis.SOURCE, p.source, p.as_of)
    return Unknown(f"no citable purchase price of {gpu.name} is known")
