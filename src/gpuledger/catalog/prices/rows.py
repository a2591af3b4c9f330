"""Which prices match what was asked for, and which of them is lowest: per GPU, instance, TFLOPS or GB?

A row is one instance type under one purchase option, at the cheapest of the places it is offered in (or place by
place). It always carries the price of one GPU and of the whole instance, and which of the two was published.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from gpuledger.catalog.gpus import Gpu, load_gpus
from gpuledger.catalog.prices import named, of_gpu
from gpuledger.catalog.prices.offers import Offer, PriceScope, Purchase, facts, load_offers, other_accelerators
from gpuledger.catalog.prices.own_rates import replaced
from gpuledger.errors import InputError
from gpuledger.units import MIB, Unknown

By = Literal["instance", "region", "zone"]
Order = Literal["gpu", "instance", "tflops", "gb"]
_PLACES: dict[By, tuple[str, ...]] = {"instance": (), "region": ("region",), "zone": ("region", "zone")}


@dataclass(frozen=True)
class Wanted:
    """What a price must match; None asks for nothing. `usd_per_gpu_h_max` is for one GPU with its share of the host."""

    gpu: str | None = None
    gpus: int | None = None
    cloud: str | None = None
    region: str | None = None
    zone: str | None = None
    instance: str | None = None
    purchase: Purchase | None = None
    usd_per_gpu_h_max: Decimal | None = None
    memory_gb_min: float | None = None

    def __post_init__(self) -> None:
        if self.gpus is not None and self.gpus < 1:
            raise InputError(f"{self.gpus} GPUs in an instance", hint="ask for 1 or more")
        if self.usd_per_gpu_h_max is not None and self.usd_per_gpu_h_max <= 0:
            raise InputError(f"a price of at most {self.usd_per_gpu_h_max}", hint="give dollars per GPU-hour above 0")


@dataclass(frozen=True)
class PriceRow:
    """One price. `usd_per_tflops_h` is per dense TFLOPS at bf16 (fp16 where a GPU has none), `usd_per_gb_h` per GB."""

    cloud: str
    instance: str
    region: str
    zone: str
    gpu: str | Unknown
    gpu_name: str
    gpus: Decimal
    memory_gb: float | Unknown
    purchase: Purchase
    usd_per_gpu_h: Decimal | Unknown
    usd_per_instance_h: Decimal | Unknown
    usd_per_tflops_h: Decimal | Unknown
    usd_per_gb_h: Decimal | Unknown
    price_scope: PriceScope
    as_of: dt.date
    age_days: int
    stale: bool
    yours: bool
    source: str
    places: int
    high_usd_per_gpu_h: Decimal | Unknown
    flags: tuple[str, ...]
    apart: str

    def as_json(self) -> dict[str, object]:
        """Its number of GPUs as a number, the way to buy as on a command line."""
        gpus = int(self.gpus) if self.gpus == int(self.gpus) else float(self.gpus)
        return {**vars(self), "gpus": gpus, "purchase": self.purchase.replace("_", "-")}


@dataclass(frozen=True)
class Prices:
    """The rows that match, the lowest first, and what was left out; `matched` counts rows that are not shown too."""

    matched: int
    rows: tuple[PriceRow, ...]
    offers: int
    stale_rows: int
    not_gpus: tuple[tuple[str, int], ...]
    replaced_by_yours: int
    stale_after_days: dict[Purchase, int]
    none_why: str = ""  # where another way to buy has rows

    def as_json(self) -> dict[str, object]:
        """With where the list prices come from."""
        about = {"stale_basis": facts().stale_basis, "source": facts().source}
        return {**vars(self), "not_gpus": dict(self.not_gpus), **about}


def price_rows(
    wanted: Wanted,
    today: dt.date,
    *,
    own: Sequence[Offer] = (),
    order: Order = "gpu",
    by: By = "instance",
    listed: Iterable[Offer] | None = None,
) -> Prices:
    """All prices that match, in order; one without a known figure comes last. A name that no offer has is an error."""
    matched, not_gpus, hidden = matching(wanted, own, listed)
    groups: dict[tuple[str, ...], list[Offer]] = {}
    for offer in matched:
        place = tuple(getattr(offer, part) for part in _PLACES[by])
        what = (offer.cloud, offer.instance, offer.accelerator, str(offer.gpus), offer.purchase, str(offer.yours))
        groups.setdefault((*what, *place), []).append(offer)
    rows = [_row(members, today) for members in groups.values()]
    rows.sort(key=lambda row: _lowest_first(row, order))
    stale = sum(row.stale for row in rows)
    counted = tuple(sorted(not_gpus.items()))
    why = "" if rows else _no_such_purchase(wanted, own, listed)
    return Prices(len(rows), tuple(rows), len(matched), stale, counted, hidden, facts().stale_after_days, why)


def _no_such_purchase(wanted: Wanted, own: Sequence[Offer], listed: Iterable[Offer] | None) -> str:
    if wanted.purchase is None:
        return ""
    others = len(matching(replace(wanted, purchase=None), own, listed)[0])
    if not others:
        return ""
    if wanted.purchase == "spot":
        return f"no spot offer: {others} on-demand only (a spot price of 0, none, or that of on-demand is not an offer)"
    return f"no on-demand offer: {others} on spot only"


def matching(
    wanted: Wanted, own: Sequence[Offer] = (), listed: Iterable[Offer] | None = None
) -> tuple[list[Offer], Counter[str], int]:
    """The offers that match; how many of each accelerator that is not a GPU were left out; how many rates replaced."""
    shipped = list(load_offers() if listed is None else listed)
    kept = [o for o in shipped if not replaced(o, own)]
    tests = list(_tests(wanted, [*own, *shipped]))
    found = [o for o in (*own, *kept) if all(test(o) for test in tests)]
    hidden = sum(1 for o in shipped if replaced(o, own) and all(test(o) for test in tests)) if own else 0
    if wanted.gpu or wanted.instance:
        return found, Counter(), hidden  # asked for by name, so shown
    others = other_accelerators()
    gpus = [o for o in found if o.accelerator not in others]
    return gpus, Counter(o.accelerator for o in found if o.accelerator in others), hidden


def _tests(wanted: Wanted, offers: Sequence[Offer]) -> Iterator[Callable[[Offer], bool]]:
    if wanted.gpu is not None:
        yield of_gpu(wanted.gpu)
    for field in ("cloud", "region", "zone", "instance"):
        name = getattr(wanted, field)
        if name is not None:
            yield named(field, name, {getattr(o, field) for o in offers})
    if wanted.gpus is not None:
        yield lambda o: o.gpus == wanted.gpus
    if wanted.purchase is not None:
        yield lambda o: o.purchase == wanted.purchase
    if (most := wanted.usd_per_gpu_h_max) is not None:
        yield lambda o: not isinstance(p := o.usd_per_gpu_h, Unknown) and p <= most
    if (least := wanted.memory_gb_min) is not None:
        yield lambda o: not isinstance(m := _memory_gb(o), Unknown) and m >= least


def _gpu(offer: Offer) -> Gpu | Unknown:
    return offer.gpu if isinstance(offer.gpu, Unknown) else load_gpus()[offer.gpu]


def _memory_gb(offer: Offer) -> float | Unknown:
    """Memory of one GPU: by the catalog, else by the price list."""
    gpu = _gpu(offer)
    if isinstance(gpu, Gpu):
        return gpu.memory_bytes.value / 1e9
    return offer.gpu_mem_mib * MIB / 1e9 if offer.gpu_mem_mib else Unknown("neither catalog nor price list give it")


def _row(members: Sequence[Offer], today: dt.date) -> PriceRow:
    priced = [(p, o) for o in members if not isinstance(p := o.usd_per_gpu_h, Unknown)]
    priced.sort(key=lambda pair: (pair[0], pair[1].region, pair[1].zone))
    best = priced[0][1] if priced else members[0]
    gpu, memory, as_of = _gpu(best), _memory_gb(best), dt.date.fromisoformat(best.dated)
    peak = gpu if isinstance(gpu, Unknown) else gpu.peak(gpu.reference_precision())
    age = (today - as_of).days
    return PriceRow(
        cloud=best.cloud,
        instance=best.instance,
        region=best.region,
        zone=best.zone,
        gpu=best.gpu,
        gpu_name=gpu.name if isinstance(gpu, Gpu) else best.accelerator,
        gpus=best.gpus,
        memory_gb=memory,
        purchase=best.purchase,
        usd_per_gpu_h=best.usd_per_gpu_h,
        usd_per_instance_h=best.usd_per_h,
        usd_per_tflops_h=_over(best.usd_per_gpu_h, peak),
        usd_per_gb_h=_over(best.usd_per_gpu_h, memory),
        price_scope=best.price_scope,
        as_of=as_of,
        age_days=age,
        stale=age > facts().stale_after_days[best.purchase],
        yours=best.yours,
        source=best.source,
        places=len({(o.region, o.zone) for o in members}),
        high_usd_per_gpu_h=priced[-1][0] if priced else best.usd_per_gpu_h,
        flags=tuple(dict.fromkeys(best.flags)),
        apart=best.apart,
    )


def _over(price: Decimal | Unknown, amount: float | Unknown) -> Decimal | Unknown:
    if isinstance(price, Unknown) or isinstance(amount, Unknown):
        return price if isinstance(price, Unknown) else Unknown(amount.why) if isinstance(amount, Unknown) else price
    return price / Decimal(str(amount))


def _lowest_first(row: PriceRow, order: Order) -> tuple[bool, bool, Decimal, bool, str, str, Decimal, str, str, str]:
    """Prices first, then what is set apart (bids, fractions of a GPU), then what is unknown."""
    figure = getattr(row, f"usd_per_{order}_h")
    unknown = isinstance(figure, Unknown)
    rest = (row.cloud, row.instance, row.gpus, row.region, row.zone, row.purchase)
    return unknown, bool(row.apart), Decimal(0) if unknown else figure, not row.yours, *rest
