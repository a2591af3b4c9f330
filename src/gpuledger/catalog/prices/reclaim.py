"""How often does a cloud take spot instances back? Published bands, and what turns a band into a rate per hour.

A band is the share of instances that were reclaimed in a month. It does not say how long those instances ran. If each
had run the whole month, the rate would be -ln(1 - p) / 720 per hour. If most ran for a few hours only, it is
p / ((1 - p) L) with their mean run L: reclaim and stop compete. The first reading with the lower end of the band gives
the low end of the rate, the second with the upper end and L from probed instances its high end, and the geometric mean
of both readings at the middle of the band is what is expected.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import msgspec

from gpuledger.catalog.files import Fact, data_dir, load_toml, read_text
from gpuledger.catalog.gpus import load_gpus
from gpuledger.errors import FactError
from gpuledger.units import Range, Unknown

HOURS_PER_MONTH = 720.0


class Band(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of instances reclaimed in a month, from low to high."""

    low_ratio: float
    high_ratio: float
    name: str


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure with its range."""

    low: float
    middle: float
    high: float
    source: str
    as_of: str


class Correlation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far zones lose capacity together."""

    same_region: float
    other_region: float
    source: str
    as_of: str


class Instance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The GPUs of an instance type."""

    gpu: str
    gpus: int


class SpotFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the spot facts come from, and what turns a band into a rate."""

    version: int
    history: str
    history_source: str
    bands: str
    bands_dated: str
    bands_source: str
    carry_hours: float
    open_band_high_ratio: float
    band: tuple[Band, ...]
    mean_run: Fact
    outage_hours: Spread
    correlation: Correlation
    instances: dict[str, Instance]


def folder() -> Path:
    """Where the price facts are."""
    return data_dir("gpuledger.catalog", "data", "prices")


@cache
def facts() -> SpotFacts:
    """The shipped spot facts."""
    file = folder().joinpath("spot.toml")
    found = load_toml(file, SpotFacts)
    for name, instance in found.instances.items():
        if instance.gpu not in load_gpus():
            problem = f"{instance.gpu!r} is not a key of the catalog"
            raise FactError(str(file), f"instances.{name}", problem, hint="gpuledger catalog shows all")
    return found


@cache
def bands() -> Mapping[tuple[str, str], Band]:
    """The band of each instance type and region that has one."""
    lines = read_text(folder().joinpath(facts().bands), "read the reclaim bands").splitlines()
    rows = csv.DictReader(lines)
    return MappingProxyType({(r["instance"], r["region"]): facts().band[int(r["band"])] for r in rows})


def reclaims_per_h(instance: str, region: str) -> Range | Unknown:
    """How often an instance is reclaimed per hour of running, as a range."""
    band = bands().get((instance, region))
    if band is None:
        return Unknown(f"the Spot Advisor of {facts().bands_dated} has no band for {instance} in {region}")
    return rate_of(band)


def rate_of(band: Band) -> Range:
    """The rate of a band; see the top of this module."""
    middle = (band.low_ratio + band.high_ratio) / 2
    expected = math.sqrt(_whole_month(middle) * _short_runs(middle))
    return Range(_whole_month(band.low_ratio), expected, _short_runs(band.high_ratio), "band", band.name)


def _whole_month(share: float) -> float:
    return -math.log1p(-share) / HOURS_PER_MONTH


def _short_runs(share: float) -> float:
    return share / (1 - share) / facts().mean_run.value
