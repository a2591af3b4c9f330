"""What do the clouds offer, at which price, as of which day?

An offer is one instance type in one zone under one purchase option. Its price is for the whole instance; the price of
one GPU is that over the number of GPUs. What the price lists get wrong is corrected here, by rules in data/prices.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import load_gpus
from gpuledger.errors import FactError, map_os_error
from gpuledger.units import Unknown

Purchase = Literal["on_demand", "spot"]
# What the published figure is the price of. Whatever it is, `usd_per_h` of an offer is for the whole instance.
PriceScope = Literal["instance", "gpu", "accelerator"]


# Outside of this a price is a typing error, and sums of it would not keep their cents.
LEAST_USD_PER_H, MOST_USD_PER_H = Decimal("0.000001"), Decimal(1_000_000)
PRICE_RANGE = f"between ${LEAST_USD_PER_H} and ${MOST_USD_PER_H:,} per hour"


def plausible_usd_per_h(price: Decimal) -> bool:
    """Whether a price is one that is really paid."""
    return price.is_finite() and LEAST_USD_PER_H <= price <= MOST_USD_PER_H


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One instance type in one zone under one purchase option; `usd_per_h` is for the whole instance, host included."""

    cloud: str
    instance: str
    accelerator: str
    gpu: str | Unknown
    gpus: Decimal
    region: str
    zone: str
    purchase: Purchase
    usd_per_h: Decimal | Unknown
    dated: str
    gpu_mem_mib: int | None = None
    flags: tuple[str, ...] = ()
    apart: str = ""
    price_scope: PriceScope = "instance"
    source: str = ""
    yours: bool = False

    @property
    def usd_per_gpu_h(self) -> Decimal | Unknown:
        """The price of one GPU with its share of the host."""
        return self.usd_per_h if isinstance(self.usd_per_h, Unknown) else self.usd_per_h / self.gpus


class _Count(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cloud: str
    instance: str
    listed: str
    gpus: str
    why: str
    source: str
    as_of: str


class _Apart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cloud: str
    why: str


class _Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    low_ratio: float
    high_ratio: float
    source: str


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the price facts come from, and the rules that correct and complete them."""

    version: int
    offers: str
    hosts: str
    hosts_dated: str
    source: str
    stale_after_days: dict[Purchase, int]
    stale_basis: str
    spot_claim: _Claim
    own_far_ratio: float
    memory_is_total: tuple[str, ...]
    counts: tuple[_Count, ...]
    apart: tuple[_Apart, ...]
    gcp_hosts: dict[str, dict[str, tuple[str, ...]]]


class _Meaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: str = ""
    why: str = ""
    other: bool = False  # Inferentia, Trainium, Gaudi, FPGAs: not a GPU


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    accelerator: str
    gpu: str
    clouds: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    gpu_mem_mib: int | None = None

    def narrowness(self, cloud: str, instance: str, gpu_mem_mib: int | None) -> int:
        """How many of its conditions name this offer; -1 where one does not hold."""
        tests = (
            (bool(self.clouds), cloud in self.clouds),
            (bool(self.instances), instance in self.instances),
            (self.gpu_mem_mib is not None, gpu_mem_mib == self.gpu_mem_mib),
        )
        return -1 if any(asked and not holds for asked, holds in tests) else sum(asked for asked, _ in tests)


class _Aliases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    accelerators: dict[str, _Meaning]
    rules: tuple[_Rule, ...]


def _folder() -> Path:
    return data_dir("gpuledger.catalog", "data", "prices")


@cache
def facts() -> Facts:
    """The shipped facts file."""
    return load_toml(_folder().joinpath("facts.toml"), Facts)


@cache
def accelerators() -> Mapping[str, str | Unknown]:
    """Every spelling in the price facts, and the GPU it means where it means one by itself."""
    found = _aliases().accelerators.items()
    return MappingProxyType({name: meaning.gpu or Unknown(meaning.why) for name, meaning in found})


@cache
def other_accelerators() -> frozenset[str]:
    """Spellings of accelerators that are not GPUs."""
    return frozenset(name for name, meaning in _aliases().accelerators.items() if meaning.other)


@cache
def _aliases() -> _Aliases:
    file = data_dir("gpuledger.catalog", "data", "accelerator_aliases.toml")
    aliases = load_toml(file, _Aliases)
    known = load_gpus()
    for name, meaning in aliases.accelerators.items():
        if bool(meaning.gpu) == bool(meaning.why):
            raise FactError(str(file), f"accelerators.{name}", "needs either gpu or why", hint="give one of the two")
    keys = {name: meaning.gpu for name, meaning in aliases.accelerators.items() if meaning.gpu}
    for name, key in (*keys.items(), *((f"rules.{rule.accelerator}", rule.gpu) for rule in aliases.rules)):
        if key not in known:
            raise FactError(str(file), name, f"{key!r} is not a key of the catalog", hint="gpuledger catalog shows all")
    return aliases


@cache
def gpu_meant(accelerator: str, cloud: str, instance: str, gpu_mem_mib: int | None) -> str | Unknown:
    """The catalog key an offer means: by its narrowest rule, else by its spelling alone."""
    rules = [r for r in _aliases().rules if r.accelerator == accelerator]
    best = max(rules, key=lambda r: r.narrowness(cloud, instance, gpu_mem_mib), default=None)
    if best is not None and best.narrowness(cloud, instance, gpu_mem_mib) > 0:
        return best.gpu
    return accelerators().get(accelerator, Unknown(f"{accelerator!r} is not in accelerator_aliases.toml"))


@cache
def load_offers() -> tuple[Offer, ...]:
    """All offers with a purchase option that really is one."""
    return tuple(offer for row in _rows(facts().offers) for offer in _offers(row))


def _rows(name: str) -> Iterator[dict[str, str]]:
    file = _folder().joinpath(name)
    try:
        text = gzip.decompress(file.read_bytes()).decode("utf-8")
    except OSError as error:
        raise map_os_error(error, str(file), "read prices") from error
    yield from csv.DictReader(io.StringIO(text))


def _offers(row: dict[str, str]) -> Iterator[Offer]:
    cloud, instance, accelerator = row["cloud"], row["instance_type"], row["accelerator"]
    gpus, flags = _gpus(row)
    memory = int(row["gpu_mem_mib_each"] or 0) or None
    if memory is not None and cloud in facts().memory_is_total:
        memory = int(memory / gpus)
    gpu = gpu_meant(accelerator, cloud, instance, memory)
    dated = dt.date.fromisoformat(row["catalog_date"]).isoformat()
    apart = next((a.why for a in facts().apart if a.cloud == cloud), "")
    whole = row["price_scope"] == "whole_instance"
    # The host VMs an accelerator comes with; one nameless host where the price is whole or the host is unknown.
    hosts = {} if whole else facts().gcp_hosts.get(accelerator, {})
    for host in hosts.get(row["accelerator_count"], ("",)):
        for purchase, usd_per_h, more in _prices(row, host):
            yield Offer(
                cloud=cloud,
                instance=host or instance,
                accelerator=accelerator,
                gpu=gpu,
                gpus=gpus,
                region=row["region"],
                zone=row["zone"],
                purchase=purchase,
                usd_per_h=usd_per_h,
                dated=dated,
                gpu_mem_mib=memory,
                flags=flags + more,
                apart=apart or ("a fraction of a GPU" if gpus < 1 else ""),
                price_scope="instance" if whole else "accelerator",
                source=facts().source,
            )


def _gpus(row: dict[str, str]) -> tuple[Decimal, tuple[str, ...]]:
    for fix in facts().counts:
        if (row["cloud"], row["instance_type"], row["accelerator_count"]) == (fix.cloud, fix.instance, fix.listed):
            return Decimal(fix.gpus), (f"{fix.gpus} GPUs, not {fix.listed}: {fix.why}",)
    return Decimal(row["accelerator_count"]), ()


def _prices(row: dict[str, str], host: str) -> Iterator[tuple[Purchase, Decimal | Unknown, tuple[str, ...]]]:
    """The purchase options of a row. A spot price of 0, a missing one or one equal to on-demand is not a spot offer."""
    on_demand, spot = _number(row["on_demand_usd_h"]), _number(row["spot_usd_h"])
    if on_demand:
        yield "on_demand", _whole(row, host, "on_demand", on_demand), ()
    if spot and spot != on_demand:
        flags = ("spot above on-demand",) if on_demand and spot > on_demand else ()
        yield "spot", _whole(row, host, "spot", spot), flags


def _whole(row: dict[str, str], host: str, purchase: Purchase, price: Decimal) -> Decimal | Unknown:
    """The price of the whole instance: the accelerator's, and its host's where that is sold apart."""
    if row["price_scope"] == "whole_instance":
        return price
    what = f"{row['accelerator_count']} x {row['accelerator']} in {row['zone']}"
    if not host:
        return Unknown(f"{row['cloud']} sells {what} apart from its host VM, and the host's price is unknown")
    extra = _host_prices().get((host, row["zone"]), {}).get(purchase)
    if not extra:
        return Unknown(f"the price list has no {purchase.replace('_', '-')} price for the host {host} of {what}")
    return price + extra


@cache
def _host_prices() -> dict[tuple[str, str], dict[str, Decimal | None]]:
    return {
        (row["instance_type"], row["zone"]): {
            "on_demand": _number(row["on_demand_usd_h"]),
            "spot": _number(row["spot_usd_h"]),
        }
        for row in _rows(facts().hosts)
    }


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text) if text else None
    except InvalidOperation:
        raise FactError(facts().offers, "price", f"{text!r} is not a number", hint="fix the price file") from None
