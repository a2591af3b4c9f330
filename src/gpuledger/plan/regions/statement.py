"""What is a plan of regions made of?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.units import Range, Unknown


class Reason(StrEnum):
    """Why a region was refused."""

    NO_OFFER = "no offer"
    RESIDENCY = "outside the places allowed"
    PLACE_UNKNOWN = "country unknown"
    PRICE_UNKNOWN = "price unknown"
    MOVING_UNKNOWN = "price of moving the data unknown"
    SMALL_INSTANCES = "instances too small"
    FEW_ZONES = "too few zones"


@dataclass(frozen=True)
class RefusedRegion:
    """One region that was refused, by cloud:region."""

    region: str
    country: str
    reason: Reason


@dataclass(frozen=True)
class RegionOption:
    """One GPU in one region: the cheapest instance type there for the whole job.

    `usd` is the job with its data; its range is from the cheapest to the most expensive zone. `dominated_by`: the
    region on the front that is at least as good in dollars, carbon and zones, and better in one; empty on the front.
    """

    cloud: str
    region: str
    country: str
    gpu: str
    instance: str
    instances: int
    usd: UsdRange
    compute_usd: Decimal
    moving_usd: Decimal
    storage_usd: Decimal
    kg_co2e: Range | Unknown
    g_per_kwh: Range | Unknown
    energy_kwh: float
    pue: float
    pue_own: bool
    zones: int
    spot_zones: int
    as_of: dt.date
    stale: bool
    flags: tuple[str, ...] = ()
    on_front: bool = False
    dominated_by: str = ""

    @property
    def name(self) -> str:
        """As it is written on a command line."""
        return f"{self.cloud}:{self.region}"


@dataclass(frozen=True)
class RegionsPlan:
    """The plan: the front, cheapest first; what it beats; what was refused, by reason and region by region.

    `warnings`: what a reader of the short answer must not overlook; `allowed`: the countries, unions and continents.
    """

    headline: str
    gpus: int
    gpu_names: tuple[str, ...]
    hours: Decimal
    purchase: str
    data_gib: Decimal
    data_at: str
    chosen: Sequence[RegionOption]
    runners_up: Sequence[RegionOption]
    refused: Sequence[Refused]
    refused_regions: Sequence[RefusedRegion]
    assumptions: Sequence[str]
    prices_dated: str
    price_source: str
    carbon_unknown: int
    warnings: Sequence[str]
    allowed: tuple[str, ...]
    next_to_audit: str
