"""What does one hour of this device cost, and what does that figure rest on?

Inventory first (a price of your own, the dollars of a bill, or the list price of the instance your own row names),
else the price that was given, else a rate of the user's own ("yours"), else the instance that was given, else the
instance a list of nodes names, else the dated market median of its GPU with its range. A rate of the user's own is also
used before the list price where the inventory or the request names an instance. No price is assumed: where none of
these is known, the price is unknown, with the reason.

LAKE/prices/yours.json holds the user's own rates; a new file replaces all of it, whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec

from gpuledger.catalog.gpus import find_gpu, get_gpu
from gpuledger.catalog.prices import MarketPrice, find_offers, instance_price, market_price, price_over
from gpuledger.catalog.prices.offers import PRICE_RANGE, Offer, Purchase, plausible_usd_per_h
from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.cost.inventories.findings import Source
from gpuledger.cost.inventory import Paid
from gpuledger.encode import as_text
from gpuledger.errors import InputError, LakeError, UnknownName, map_os_error
from gpuledger.lake.json_files import read_json, write_json
from gpuledger.lake.layout import AnyLake, lake_of
from gpuledger.units import Unknown

Basis = Literal["inventory", "given", "yours", "instance", "market"]
_FROM = {Source.GPU_ROW: "inventory", Source.HOST_ROW: "inventory, price of the machine", Source.BILL: "bill"}


@dataclass(frozen=True)
class Price:
    """Dollars for one GPU-hour, what they rest on, and how far they may be off."""

    usd_per_h: Decimal
    basis: Basis
    words: str
    low_usd: Decimal
    high_usd: Decimal
    oldest: str | None = None
    newest: str | None = None
    gpu: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PriceUsed:
    """One price, what it rests on, how old it is (below zero: listed later), and how much was priced by it."""

    gpu_model: str | None
    usd_per_h: Decimal
    low_usd_per_h: Decimal
    high_usd_per_h: Decimal
    basis: str
    words: str
    oldest: str | None
    newest: str | None
    age_days: int | None
    gpus: int
    paid_h: float


@dataclass(frozen=True)
class Unpriced:
    """Devices whose price is unknown, and why; none of their time is in any dollar figure."""

    gpu_model: str | None
    gpus: int
    paid_h: float
    why: str


@dataclass(frozen=True)
class PriceChoice:
    """How to price what the inventory does not: one price for all GPUs, prices by GPU, or the price of an instance.

    `own` are rates of the user's own.
    """

    price: Decimal | Mapping[str, Decimal] | None = None
    instance: str | None = None
    region: str | None = None
    own: tuple[Offer, ...] = ()
    by_key: Mapping[str, Decimal] = field(init=False)

    def __post_init__(self) -> None:
        given = self.price if isinstance(self.price, Mapping) else {}
        prices = given.values() if given else [self.price] if isinstance(self.price, Decimal) else []
        for price in prices:
            if not plausible_usd_per_h(price):
                raise InputError(f"{price} is not a price for a GPU", hint=f"give dollars above 0, {PRICE_RANGE}: 2.50")
        object.__setattr__(self, "by_key", {get_gpu(name).key: price for name, price in given.items()})
        if self.region and not self.instance:
            raise InputError(
                f"region {self.region!r} needs an instance", hint="name its instance, or leave the region out"
            )
        if self.instance and not any(_same(o.instance, self.instance) for o in self.own):
            find_offers(instance=self.instance)
            if self.region:
                find_offers(region=self.region)

    def given_for(self, gpu: str | None) -> Decimal | None:
        """The price that was given for a GPU of the catalog; None where none was."""
        given = self.by_key.get(gpu or "", self.price)
        return given if isinstance(given, Decimal) else None


def price_for(model: str | None, choice: PriceChoice, row: Paid | None = None) -> Price | Unknown:
    """The price of one whole GPU of a model: of its inventory row, else as chosen, else of the market."""
    found = find_gpu(model) if model else Unknown("no model name")
    gpu = None if isinstance(found, Unknown) else found.key
    if row is not None and row.source is not Source.LIST:
        return _of_row(row, gpu, choice.own)
    given = choice.given_for(gpu)
    if given is not None:
        return Price(given, "given", f"as given: ${given} per GPU-hour", given, given, gpu=gpu)
    mine = _of_own(choice.own, gpu, choice.instance, choice.region)
    if mine is not None:
        return mine
    notes: tuple[str, ...] = ()
    for listed in _listed(choice, gpu, row):
        if not isinstance(listed, Unknown):
            return listed
        notes = (*notes, listed.why)
    if isinstance(found, Unknown):
        return Unknown(f"no price for {model}: {found.why}" if model else "no price for a GPU without a model name")
    market = market_price(found.key)
    return Unknown(market.why) if isinstance(market, Unknown) else _of_market(market, "market", gpu, notes)


def _listed(choice: PriceChoice, gpu: str | None, row: Paid | None) -> Iterator[Price | Unknown]:
    """The prices of the instances that are named: as given, then as the node's."""
    if choice.instance:
        yield _of_instance(choice.instance, choice.region, gpu)
    if row is not None and row.instance:
        yield _of_row(row, gpu, choice.own)


def _of_own(
    own: Sequence[Offer], gpu: str | None, instance: str | None, region: str | None, purchase: Purchase = "on_demand"
) -> Price | None:
    """The user's own rate: of that instance in that region where one is named, else of all their rates for the GPU."""
    found = [o for o in own if o.gpu == gpu and o.purchase == purchase]
    if instance:
        found = [o for o in found if _same(o.instance, instance) and (not o.region or _same(o.region, region or ""))]
        found = [o for o in found if o.region] or found  # the rate of that region before the rate of all
    if not found:
        return None
    what = found[0].instance or found[0].accelerator
    price = price_over(f"yours: {what if len(found) == 1 else found[0].accelerator}", purchase, found)
    return None if isinstance(price, Unknown) else _of_market(price, "yours", gpu)


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


def _of_row(row: Paid, gpu: str | None, own: Sequence[Offer] = ()) -> Price | Unknown:
    """The price of an inventory row, or by its instance, region and purchase option where it leaves that to us."""
    if row.usd_per_h is not None:
        price = as_text(round(row.usd_per_h, 6)) if row.source is not Source.GPU_ROW else row.usd_per_h
        words = f"{_FROM[row.source]}: ${price} per GPU-hour ({row.purchase_option.replace('_', '-')})"
        return Price(row.usd_per_h, "inventory", words, row.usd_per_h, row.usd_per_h, gpu=gpu)
    purchase: Purchase = "spot" if row.purchase_option == "spot" else "on_demand"
    mine = _of_own(own, gpu, row.instance, row.region, purchase)
    if mine is not None:
        return mine
    try:
        found = instance_price(row.instance, row.region or None, purchase)
    except InputError as error:
        # Private instance names are usual here, and a list of all others would not help.
        hint = error.hint if isinstance(error, UnknownName) and error.nearest else "write usd_per_h into that row"
        return Unknown(f"inventory row {row.row}: {error.message}; {hint}")
    if isinstance(found, Unknown):
        return Unknown(f"inventory row {row.row}: {found.why}")
    return _of_market(found, "instance", gpu)


def _of_instance(instance: str, region: str | None, gpu: str | None) -> Price | Unknown:
    """The price in an instance, for the GPU that instance has and no other; Unknown where only own rates name it."""
    try:
        sold = {o.gpu for o in find_offers(instance=instance) if isinstance(o.gpu, str)}
    except InputError as error:
        return Unknown(error.message)
    if gpu is None or gpu not in sold:
        holds = ", ".join(sorted(sold)) or "no GPU of the catalog"
        return Unknown(f"{instance} has {holds}, not {gpu or 'an unknown GPU'}")
    found = instance_price(instance, region)
    return found if isinstance(found, Unknown) else _of_market(found, "instance", gpu)


def _of_market(found: MarketPrice, basis: Basis, gpu: str | None, notes: tuple[str, ...] = ()) -> Price:
    exact = found.low_usd == found.high_usd
    words = f"{found.what}: ${found.usd_per_gpu_h:.4f} per GPU-hour, listed {found.newest}" if exact else found.words
    return Price(
        found.usd_per_gpu_h, basis, words, found.low_usd, found.high_usd, found.oldest, found.newest, gpu, notes
    )


FILE_VERSION = 1
FOLDER, NAME = "prices", "yours.json"


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    version: int = FILE_VERSION
    taken_from: str = ""
    rates: tuple[Rate, ...] = ()


def own_file(lake: AnyLake) -> Path:
    """The file with the user's rates of a lake."""
    return lake_of(lake).root / FOLDER / NAME


def load_rates(lake: AnyLake) -> tuple[Rate, ...]:
    """The user's stored rates; empty where none were given."""
    file, hint = own_file(lake), "give them again: gpuledger prices update FILE, or remove the file"
    found = read_json(file, _Stored, FILE_VERSION, "a file of rates", hint).rates if file.exists() else ()
    for number, rate in enumerate(found, start=1):
        if problem := rate.problem():
            raise LakeError(f"{file}: rate {number}: {problem}", hint=hint)
    return found


def load_own(lake: AnyLake) -> tuple[Offer, ...]:
    """The stored rates as offers, as statements and planners take them."""
    return tuple(rate.offer for rate in load_rates(lake))


def store_rates(lake: AnyLake, rates: Sequence[Rate], taken_from: str) -> Path:
    """Replace the stored rates."""
    return write_json(own_file(lake), _Stored(taken_from=taken_from, rates=tuple(rates)), "your rates")


def drop_rates(lake: AnyLake) -> bool:
    """Remove the stored rates; False where there were none."""
    file = own_file(lake)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise map_os_error(error, file, "remove your rates") from error
    return True
