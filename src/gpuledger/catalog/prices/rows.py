"""Which prices match what was asked for, and which of them is lowest: per GPU, instance, TFLOPS or GB?

A row is one instance type under one purchase option, at the cheapest of the places it is offered in (or place by
place). It always carries the price of one GPU and of the whole instance, and which of the two was published.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import Wanted, aged, gpu_of, lowest_first, memory_gb, priced, tests_of
from gpuledger.catalog.prices.offers import Offer, PriceScope, Purchase, facts, load_offers, other_accelerators
from gpuledger.catalog.prices.own_rates import replaced
from gpuledger.units import Unknown

__all__ = ["By", "Order", "PriceRow", "Prices", "Wanted", "matching", "price_rows"]

By = Literal["instance", "region", "zone"]
Order = Literal["gpu", "instance", "tflops", "gb"]
_PLACES: dict[By, tuple[str, ...]] = {"instance": (), "region": ("region",), "zone": ("region", "zone")}


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
    tests = list(tests_of(wanted, [*own, *shipped]))
    found = [o for o in (*own, *kept) if all(test(o) for test in tests)]
    hidden = sum(1 for o in shipped if replaced(o, own) and all(test(o) for test in tests)) if own else 0
    if wanted.gpu or wanted.instance:
        return found, Counter(), hidden  # asked for by name, so shown
    others = other_accelerators()
    gpus = [o for o in found if o.accelerator not in others]
    return gpus, Counter(o.accelerator for o in found if o.accelerator in others), hidden


def _row(members: Sequence[Offer], today: dt.date) -> PriceRow:
    known = priced(members)
    best = known[0][1] if known else members[0]
    gpu, memory = gpu_of(best), memory_gb(best)
    peak = gpu if isinstance(gpu, Unknown) else gpu.peak(gpu.reference_precision())
    age, stale = aged(best.dated, best.purchase, today)
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
        as_of=dt.date.fromisoformat(best.dated),
        age_days=age,
        stale=stale,
        yours=best.yours,
        source=best.source,
        places=len({(o.region, o.zone) for o in members}),
        high_usd_per_gpu_h=known[-1][0] if known else best.usd_per_gpu_h,
        flags=tuple(dict.fromkeys(best.flags)),
        apart=best.apart,
    )


def _over(price: Decimal | Unknown, amount: float | Unknown) -> Decimal | Unknown:
    if isinstance(price, Unknown):
        return price
    return amount if isinstance(amount, Unknown) else price / Decimal(str(amount))


def _lowest_first(row: PriceRow, order: Order) -> tuple[bool, bool, Decimal, bool, str, str, Decimal, str, str, str]:
    """Prices first, then what is set apart (bids, fractions of a GPU), then what is unknown."""
    unknown, figure = lowest_first(getattr(row, f"usd_per_{order}_h"))
    rest = (row.cloud, row.instance, row.gpus, row.region, row.zone, row.purchase)
    return unknown, bool(row.apart), figure, not row.yours, *rest
