"""Which unit is a number in, and what is it in the unit of the schema?"""

from __future__ import annotations

import re
from functools import cache, lru_cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.telemetry import schema

# "power.draw [W]", "GPU use (%)", "temp_in [°C]"
_HEADER = re.compile(r"^(?P<name>.*\S)\s*[\[(](?P<unit>[^\[\]()]{1,16})[\])]$", re.DOTALL)


class Factor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From a number to the schema's unit: (number + offset) x multiply / divide."""

    multiply: float = 1.0
    divide: float = 1.0
    offset: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.offset:+g}"] if self.offset else []
        parts += [f"x {_short(self.multiply)}"] if self.multiply != 1 else []
        parts += [f"/ {_short(self.divide)}"] if self.divide != 1 else []
        return " ".join(parts)

    def of(self, number: float) -> float:
        """One number in the schema's unit."""
        return (number + self.offset) * self.multiply / self.divide


SAME = Factor()


class _Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    measures: tuple[str, ...]
    units: dict[str, Factor]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    quantities: tuple[_Quantity, ...]


class HeaderUnit(msgspec.Struct, frozen=True):
    """A column name that ends in a unit, taken apart."""

    name: str
    unit: str


@cache
def _quantities() -> tuple[_Quantity, ...]:
    return load_toml(data_dir("gpuledger.telemetry", "units.toml"), _File).quantities


@cache
def units_of(column: str) -> dict[str, Factor]:
    """The units a reading may come in, by name; none for counts, codes and bit masks."""
    measure = schema.columns()[column].unit
    return next((q.units for q in _quantities() if measure in q.measures), {})


@cache
def every_unit() -> frozenset[str]:
    """All units of all readings."""
    return frozenset(name for q in _quantities() for name in q.units)


@lru_cache(maxsize=4096)
def factor_of(unit: str, column: str) -> Factor | None:
    """What one of a unit is in the unit of a reading; None where it is not a unit of that reading."""
    known = units_of(column)
    if unit in known:
        return known[unit]
    found = _folded(column).get(unit.casefold(), set())
    return next(iter(found)) if len(found) == 1 else None


def unit_of(factor: Factor, column: str) -> str:
    """The name of the unit with this factor; the schema's own unit for factor 1, empty where no unit has it."""
    own = schema.columns()[column].unit
    return own if factor == SAME else next((name for name, f in units_of(column).items() if f == factor), "")


@cache
def _folded(column: str) -> dict[str, set[Factor]]:
    out: dict[str, set[Factor]] = {}
    for name, factor in units_of(column).items():
        out.setdefault(name.casefold(), set()).add(factor)
    return out


def header_unit(name: str) -> HeaderUnit | None:
    """The unit a column name ends in, in brackets; None without one, also where the brackets hold something else."""
    found = _HEADER.match(name)
    if found is None or not is_unit(found["unit"].strip()):
        return None
    return HeaderUnit(found["name"], found["unit"].strip())


@lru_cache(maxsize=4096)
def is_unit(text: str) -> bool:
    """Whether this is a unit of any reading, in any letter case."""
    return text.casefold() in {u.casefold() for u in every_unit()}


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:g}"
