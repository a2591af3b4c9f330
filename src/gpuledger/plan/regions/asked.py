"""What is asked of a plan of regions? Everything is checked here, before prices are read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.catalog.regions import Place, get_area, get_place
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.market import Purchase

MONTH_H = 720
MOST_GPUS = 1_000_000
MOST_HOURS = 876_000
MOST_BYTES = 10**18
_BYTES = {"mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15, "gib": 2**30, "tib": 2**40, "pib": 2**50}
_SIZE = re.compile(r"(\d[\d_,]*(?:\.\d+)?)\s*([a-zA-Z]*)")
Moves = Literal["once", "monthly"]
# Share of the board power that GPUs draw while they work: assumed, with its range.
USUAL_LOAD = (0.5, 0.8, 1.0)


@dataclass(frozen=True)
class Residency:
    """Where the job and its data may be: in any of the areas (countries, unions, continents); empty: anywhere."""

    areas: tuple[str, ...] = ()
    regions: tuple[Place, ...] = ()
    clouds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """The question. `billed_gb`: the data as clouds bill it, in units of 2^30 bytes."""

    gpus: tuple[Gpu, ...]
    count: int
    hours: Decimal
    purchase: Purchase = "on-demand"
    billed_gb: Decimal = Decimal(0)
    data_at: Place | None = None
    moves: Moves = "once"
    residency: Residency = Residency()
    min_zones: int = 1
    per_instance: int = 1
    load: tuple[float, float, float] = USUAL_LOAD
    load_given: bool = False
    moving_usd_per_gb: Decimal | None = None
    storage_usd_per_gb_month: Decimal = Decimal(0)

    @property
    def months(self) -> int:
        """Months begun, of 720 hours."""
        return math.ceil(self.hours / MONTH_H)


def number(name: str, value: float, *, least: float = 0.0, most: float = math.inf, above: bool = False) -> Decimal:
    """A number a person gave as an exact decimal: finite, and within its bounds."""
    if not math.isfinite(value) or value < least or (above and value == least) or value > most:
        bound = f"above {least:g}" if above else f"{least:g} or more"
        upto = f", up to {most:,.0f}" if math.isfinite(most) else ""
        raise InputError(f"{name}={value:g} is not possible", hint=f"give {name}={bound}{upto}")
    return Decimal(str(value))


def data_bytes(text: str) -> int:
    """An amount of data such as "2 TB" or "500GiB"; only 0 needs no unit."""
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    if found is not None and not unit:
        if not Decimal(re.sub("[_,]", "", found[1])):
            return 0
        raise InputError(f"data={text!r} has no unit", hint=f'write data="{found[1]} GB" or "{found[1]} TB"')
    if found is None or unit not in _BYTES:
        raise InputError(f"data={text!r} is not an amount of data", hint='write data="500 GB", "2 TB" or "1.5 TiB"')
    amount = int(Decimal(re.sub("[_,]", "", found[1])) * _BYTES[unit])
    if amount > MOST_BYTES:
        raise InputError(f"data={text!r} is more than 1,000 PB", hint='check the unit: data="500 GB", "2 TB"')
    return amount


def hours_of(hours: float | None, months: float | None) -> Decimal:
    """Hours the job runs, from hours or months of 720 hours; a month where neither is given."""
    if hours is not None and months is not None:
        raise InputError(f"hours={hours:g} and months={months:g} are both given", hint="give one of the two")
    if hours is not None:
        return number("hours", hours, above=True, most=MOST_HOURS)
    given = number("months", 1.0 if months is None else months, above=True, most=MOST_HOURS / MONTH_H)
    return given * MONTH_H


def gpus_of(names: Sequence[str]) -> tuple[Gpu, ...]:
    """The GPUs of the catalog by name, each once."""
    found = {gpu.key: gpu for gpu in map(get_gpu, names)}
    return tuple(found.values())


def residency_of(
    within: Iterable[str] = (), country: Iterable[str] = (), region: Iterable[str] = (), cloud: Iterable[str] = ()
) -> Residency:
    """Where it may be, each name checked."""
    known = {o.cloud for o in load_offers()}
    clouds = []
    for name in cloud:
        if name.casefold() not in known:
            raise UnknownName("cloud", name, known)
        clouds.append(name.casefold())
    return Residency(tuple(map(get_area, (*within, *country))), tuple(map(get_place, region)), tuple(clouds))


def load_of(load_pct: float | None) -> tuple[float, float, float]:
    """The share of its board power a GPU draws: as given, else the usual one with its range."""
    if load_pct is None:
        return USUAL_LOAD
    share = float(number("load_pct", load_pct, above=True, most=100)) / 100
    return share, share, share


def asked_of(options: Mapping[str, Any]) -> Asked:
    """The question that the options of the planner ask."""
    if not options["gpu"]:
        raise InputError("gpu is not given", hint="give a GPU such as gpu=h100-sxm")
    if not 1 <= options["gpus"] <= MOST_GPUS:
        raise InputError(f"gpus={options['gpus']} is not possible", hint=f"give gpus=1 or more, up to {MOST_GPUS:,}")
    for name in ("min_zones", "per_instance"):
        if options[name] < 1:
            raise InputError(f"{name}={options[name]} is below 1", hint=f"give {name}=1 or more")
    price = options["moving_usd_per_gb"]
    asked = Asked(
        gpus=gpus_of(options["gpu"]),
        count=options["gpus"],
        hours=hours_of(options["hours"], options["months"]),
        purchase=options["purchase"],
        billed_gb=Decimal(data_bytes(options["data"])) / 2**30,
        data_at=get_place(options["data_at"]) if options["data_at"] else None,
        moves=options["moves"],
        residency=residency_of(options["within"], options["country"], options["region"], options["cloud"]),
        min_zones=options["min_zones"],
        per_instance=options["per_instance"],
        load=load_of(options["load_pct"]),
        load_given=options["load_pct"] is not None,
        moving_usd_per_gb=None if price is None else number("moving_usd_per_gb", price),
        storage_usd_per_gb_month=number("storage_usd_per_gb_month", options["storage_usd_per_gb_month"]),
    )
    if asked.data_at is not None and not asked.billed_gb:
        raise InputError(f"data_at={options['data_at']} is given without data", hint='give data="2 TB" too')
    return asked
