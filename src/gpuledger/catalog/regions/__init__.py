"""Where is a region of a cloud, which grid feeds it, and in which countries and unions is that?

A region is named `cloud:region`, as in aws:eu-west-1. Files in data/regions, each row with its source; a region that is
not listed there is unknown, not guessed from its name.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, fold, load_toml, read_text
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown

FOLDER = data_dir("gpuledger.catalog", "data", "regions")
Way = Literal["internet", "continent", "world"]


@dataclass(frozen=True)
class Country:
    """A country by its ISO 3166 code, and the unions it is in."""

    code: str
    name: str
    continent: str
    groups: tuple[str, ...]

    def within(self, area: str) -> bool:
        """Whether it is the area, or in it: a code, a name, a continent or a union, folded."""
        return area in {fold(self.code), fold(self.name), self.continent, *self.groups}


@dataclass(frozen=True)
class Place:
    """Where a region is. `basis`: how that is known."""

    cloud: str
    region: str
    country: Country
    grid: str
    basis: str
    as_of: str

    @property
    def name(self) -> str:
        """As it is written on a command line."""
        return f"{self.cloud}:{self.region}"


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who published a figure, where it was read, and when."""

    words: str
    where: str
    as_of: str


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars per GB of the data up to a monthly amount; the last tier has no end."""

    usd_per_gb: str
    low_usd_per_gb: str = ""
    high_usd_per_gb: str = ""
    up_to_gb: int | None = None


class Moving(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"sources": "from"}):
    """What a cloud charges for data that leaves a region on these continents; `verified`: not second-hand."""

    cloud: str
    sources: tuple[str, ...]
    path: Way
    tiers: tuple[Tier, ...]
    source: str
    as_of: str
    verified: bool = True
    note: str = ""


class Pue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Power usage effectiveness of a cloud's sites."""

    low: float
    middle: float
    high: float
    source: str
    as_of: str


class RegionFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The facts file."""

    version: int
    sources: dict[str, Source]
    moving: tuple[Moving, ...]
    pue: dict[str, Pue]


@cache
def facts() -> RegionFacts:
    """The shipped facts file."""
    return load_toml(FOLDER.joinpath("facts.toml"), RegionFacts)


def read_rows(name: str) -> list[dict[str, str]]:
    """The rows of one of the shipped CSV files."""
    return list(csv.DictReader(io.StringIO(read_text(FOLDER.joinpath(name), "read region facts"))))


@cache
def countries() -> Mapping[str, Country]:
    """All countries by code."""
    rows = read_rows("countries.csv")
    made = {r["country"]: Country(r["country"], r["name"], r["continent"], tuple(r["groups"].split())) for r in rows}
    return MappingProxyType(made)


@cache
def places() -> Mapping[tuple[str, str], Place]:
    """All regions whose place is known, by folded cloud and region."""
    rows = read_rows("places.csv")
    return MappingProxyType(
        {
            (fold(r["cloud"]), fold(r["region"])): Place(
                r["cloud"], r["region"], countries()[r["country"]], r["grid"], r["basis"], r["as_of"]
            )
            for r in rows
        }
    )


def find_place(cloud: str, region: str) -> Place | Unknown:
    """Where a region is; unknown where no source names its country."""
    found = places().get((fold(cloud), fold(region)))
    return found or Unknown(f"no source names the country of {cloud}:{region}")


def get_place(name: str) -> Place:
    """The place a person typed as cloud:region; an error with the nearest names where there is none."""
    cloud, colon, region = name.partition(":")
    if not colon:
        same = sorted(p.name for p in places().values() if fold(p.region) == fold(name))
        hint = f"did you mean {' or '.join(same[:3])}?" if same else "write cloud:region, such as aws:eu-west-1"
        raise InputError(f"{name!r} does not name a cloud and a region", hint=hint)
    found = places().get((fold(cloud), fold(region)))
    if found is None:
        mine = [p.name for p in places().values() if fold(p.cloud) == fold(cloud)]
        raise UnknownName("region", name, mine or [p.name for p in places().values()])
    return found


def areas() -> Collection[str]:
    """Everything that a region can be within: unions, continents, country codes and names."""
    all_of = countries().values()
    return {*(g for c in all_of for g in c.groups), *(c.continent for c in all_of), *map(fold, countries()),
            *(fold(c.name) for c in all_of)}  # fmt: skip


SAME = {"uk": "gb", "usa": "us", "european union": "eu", "holland": "nl", "korea": "kr"}


def get_area(name: str) -> str:
    """An area a person typed, folded; an error with the nearest names where there is none."""
    wanted = SAME.get(fold(name), fold(name).replace(" ", "-") if fold(name) not in areas() else fold(name))
    if wanted not in areas():
        raise UnknownName("country, union or continent", name, areas())
    return wanted
