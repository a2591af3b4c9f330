"""Which dollars of a bill are known bucket by bucket, and where is a figure only a least?

Unrated time may have done work or not; unobserved time was not seen. A bill that has nothing else does not show what
was wasted, and one that has some of it shows a least. A bucket whose time has no price has no dollars.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gpuledger.encode import Json
from gpuledger.units import MS_PER_HOUR, Unknown

if TYPE_CHECKING:
    from gpuledger.cost.statement import Bucket, Dollars, Times

# Open time up to this share of the bill does not move a figure that a reader sees.
NOTHING_RATIO = Decimal("0.01")
NOT_SEEN = Unknown("no sample shows whether the paid time did work")
NOT_RATED = Unknown("the busy time is unrated: neither its counters nor its power show whether it did work")
NO_PRICE = Unknown("the GPUs with this time have no known price")


def known_waste(dollars: Dollars | Unknown) -> Decimal | Unknown:
    """Dollars seen to be wasted; unknown where all that was paid for is unrated or unobserved."""
    if isinstance(dollars, Unknown):
        return dollars
    if dollars.paid_usd and open_usd(dollars) == dollars.paid_usd:
        return NOT_RATED if dollars.unrated_usd else NOT_SEEN
    return dollars.waste_usd


def known_productive(dollars: Dollars | Unknown) -> Decimal | Unknown:
    """Dollars seen to do work; unknown where no busy time is rated, or nothing was seen at all."""
    if isinstance(dollars, Unknown):
        return dollars
    if dollars.unrated_usd and not dollars.productive_usd and not dollars.stalled_usd:
        return NOT_RATED
    unseen = dollars.paid_usd and dollars.unobserved_usd == dollars.paid_usd
    return NOT_SEEN if unseen else dollars.productive_usd


def open_usd(dollars: Dollars) -> Decimal:
    """Dollars of which it is not known whether they were wasted."""
    return dollars.unrated_usd + dollars.unobserved_usd


def at_least(dollars: Dollars | Unknown) -> bool:
    """Whether waste may be more than what is known of it."""
    return not isinstance(dollars, Unknown) and open_usd(dollars) > NOTHING_RATIO * dollars.paid_usd


def bucket_usd(dollars: Dollars, times: Times, unpriced_h: float) -> dict[Bucket, Decimal | Unknown]:
    """Dollars by bucket; unknown where a bucket has time, and none of it has a price."""
    hours = times.each()
    return {
        bucket: NO_PRICE if unpriced_h and hours[bucket] and not amount else amount
        for bucket, amount in dollars.each().items()
    }


def money_json(dollars: Dollars | Unknown, times: Times, unpriced_h: float = 0.0) -> Json:
    """What was paid and how much of it was waste, as JSON names it; all of it unknown without a price."""
    hours = {"paid_h": times.paid_h, "bucket_h": {b: ms / MS_PER_HOUR for b, ms in times.each().items()}}
    if isinstance(dollars, Unknown):
        return dict.fromkeys(("paid_usd", "buckets", "bucket_pct", "waste_usd", "waste_pct"), dollars) | hours
    waste, each = known_waste(dollars), bucket_usd(dollars, times, unpriced_h)
    shares = {b: v if isinstance(v, Unknown) else dollars.pct(v) for b, v in each.items()}
    money = {"paid_usd": dollars.paid_usd, "buckets": each, "bucket_pct": shares, "waste_usd": waste}
    return money | {"waste_pct": waste if isinstance(waste, Unknown) else dollars.pct(waste)} | hours
