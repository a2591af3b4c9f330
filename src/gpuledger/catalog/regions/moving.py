"""What does it cost to move data out of a region, by the month's amount and by where it goes?

Data that comes in is free at every cloud in the facts. Amounts are GB as the clouds bill them.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gpuledger.catalog.regions import Moving, Place, Tier, Way, facts
from gpuledger.units import Unknown

ZERO = Decimal(0)
Money = tuple[Decimal, Decimal, Decimal]


def path_between(source: Place, cloud: str, continent: str | None) -> Way:
    """The way data takes from a region to another; `continent` None where the other's place is unknown."""
    if source.cloud.casefold() != cloud.casefold():
        return "internet"
    return "continent" if continent == source.country.continent else "world"


def moving_price(source: Place, path: Way) -> Moving | Unknown:
    """What the cloud of a region charges on a way."""
    for one in facts().moving:
        if one.cloud == source.cloud.casefold() and one.path == path and source.country.continent in one.sources:
            return one
    ways = {"internet": "to another cloud", "continent": "to its regions on the same continent",
            "world": "to its regions on other continents"}  # fmt: skip
    return Unknown(f"the price facts have no price for data from {source.name} {ways[path]}")


def month_usd(tiers: Sequence[Tier], gb: Decimal) -> Money:
    """Dollars for an amount moved within one month: low, middle, high. Each GB pays the price of its own tier."""
    low = middle = high = begun = ZERO
    for tier in tiers:
        end = gb if tier.up_to_gb is None else min(gb, Decimal(tier.up_to_gb))
        part, price = max(end - begun, ZERO), Decimal(tier.usd_per_gb)
        low += part * Decimal(tier.low_usd_per_gb or price)
        middle += part * price
        high += part * Decimal(tier.high_usd_per_gb or price)
        begun = max(begun, end)
    return low, middle, high
