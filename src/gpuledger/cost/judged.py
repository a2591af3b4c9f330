"""Which hours and dollars of a bill are known bucket by bucket, and where is a figure only a least?

Unrated time may have done work or not; unobserved time was not seen. Where no busy time is rated, neither the
productive nor the stalled part is known; where nothing was seen, no bucket but the unobserved one is. A bill that has
nothing else does not show what was wasted, and one that has some of it shows a least. A bucket whose time has no price
has no dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from gpuledger.encode import Json
from gpuledger.units import MS_PER_HOUR, Unknown

if TYPE_CHECKING:
    from gpuledger.cost.statement import Bucket, ByBucket, Dollars, Times

N = TypeVar("N", int, Decimal)
# Open time up to this share of the bill does not move a figure that a reader sees.
NOTHING_RATIO = Decimal("0.01")
# Paid time of which it is not known whether it was wasted.
OPEN: tuple[Bucket, ...] = ("unrated", "unobserved")
# What unrated time may be: put to use or stalled.
RATED: tuple[Bucket, ...] = ("productive", "stalled")
NOT_SEEN = Unknown("no sample shows whether the paid time did work")
NOT_RATED = Unknown("the busy time is unrated: neither its counters nor its power show whether it did work")
NO_PRICE = Unknown("the GPUs with this time have no known price")


def known_waste(amounts: ByBucket[N] | Unknown) -> N | Unknown:
    """Time or dollars seen to be wasted; unknown where all that was paid for is unrated or unobserved."""
    if isinstance(amounts, Unknown):
        return amounts
    paid = amounts.paid
    if paid and _open(amounts) == paid:
        return NOT_RATED if amounts.each()["unrated"] else NOT_SEEN
    return amounts.waste


def known_productive(dollars: Dollars | Unknown) -> Decimal | Unknown:
    """Dollars seen to do work; unknown where no busy time is rated, or nothing was seen at all."""
    return dollars if isinstance(dollars, Unknown) else known_parts(dollars)["productive"]


def known_parts(amounts: ByBucket[N]) -> dict[Bucket, N | Unknown]:
    """Hours or dollars by bucket; unknown where no sample shows how they divide. The known ones are the whole."""
    each, paid = amounts.each(), amounts.paid
    if paid and each["unobserved"] == paid:
        return {bucket: amount or NOT_SEEN for bucket, amount in each.items()}
    if each["unrated"] and not each["productive"] and not each["stalled"]:
        return {**each, **dict.fromkeys(RATED, NOT_RATED)}
    return {**each}


def open_usd(dollars: Dollars) -> Decimal:
    """Dollars of which it is not known whether they were wasted."""
    return _open(dollars)


def _open(amounts: ByBucket[N]) -> N:
    each = amounts.each()
    return each["unrated"] + each["unobserved"]


def at_least(dollars: Dollars | Unknown) -> bool:
    """Whether waste may be more than what is known of it."""
    return not isinstance(dollars, Unknown) and open_usd(dollars) > NOTHING_RATIO * dollars.paid_usd


def known_buckets(
    dollars: Dollars | Unknown, times: Times, unpriced_h: float = 0.0
) -> Mapping[Bucket, Decimal | Unknown]:
    """Dollars by bucket; unknown where time cannot be rated, or where a bucket has time and none of it has a price."""
    hours = times.each()
    if isinstance(dollars, Unknown):
        return dict.fromkeys(hours, dollars)
    parts = known_parts(dollars)
    if not unpriced_h:
        return parts
    return {bucket: NO_PRICE if hours[bucket] and not amount else amount for bucket, amount in parts.items()}


def unknown_why(buckets: Mapping[Bucket, Decimal | Unknown] | Unknown) -> str | None:
    """Why some buckets of a row are unknown; None where all are known."""
    if isinstance(buckets, Unknown):
        return buckets.why
    return "; ".join(dict.fromkeys(amount.why for amount in buckets.values() if isinstance(amount, Unknown))) or None


def bucket_h(times: Times) -> dict[Bucket, float | Unknown]:
    """Hours by bucket; unknown where time cannot be rated."""
    return {b: ms if isinstance(ms, Unknown) else ms / MS_PER_HOUR for b, ms in known_parts(times).items()}


def money_json(dollars: Dollars | Unknown, times: Times, unpriced_h: float = 0.0) -> Json:
    """What was paid and how much of it was waste, as JSON names it; all of it unknown without a price."""
    hours = {"paid_h": times.paid_h, "bucket_h": bucket_h(times)}
    if isinstance(dollars, Unknown):
        return dict.fromkeys(("paid_usd", "buckets", "bucket_pct", "waste_usd", "waste_pct"), dollars) | hours
    waste, each = known_waste(dollars), known_buckets(dollars, times, unpriced_h)
    shares = {b: v if isinstance(v, Unknown) else dollars.pct(v) for b, v in each.items()}
    money = {"paid_usd": dollars.paid_usd, "buckets": each, "bucket_pct": shares, "waste_usd": waste}
    return money | {"waste_pct": waste if isinstance(waste, Unknown) else dollars.pct(waste)} | hours
