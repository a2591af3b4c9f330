"""Which columns does a FOCUS file have, of which type, and which may be empty?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml

Type = Literal["String", "Decimal", "DateTime", "JSON", "Number"]
Level = Literal["Mandatory", "Conditional", "Recommended"]


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of the specification."""

    type: Type
    level: Level
    nulls: bool
    since: str
    allowed: tuple[str, ...] = ()


class Own(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of ours; every one of them may be empty."""

    type: Type
    meaning: str


class Older(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What files for older tools have on top: copies of columns under former names, and empty columns."""

    version: str
    same_as: dict[str, str]
    empty: tuple[str, ...]


class Specification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    version: str
    source: str
    as_of: str
    older: Older
    columns: dict[str, Column]
    own: dict[str, Own]

    def types(self, *, older: bool) -> Mapping[str, Type]:
        """Type by column of a file, in its order: those of the specification by letter, then ours."""
        found: dict[str, Type] = {name: self.columns[name].type for name in WRITTEN}
        if older:
            found |= dict.fromkeys((*self.older.same_as, *self.older.empty), "String")
        ours: dict[str, Type] = {name: own.type for name, own in self.own.items()}
        return dict(sorted(found.items())) | ours


# The columns that are written. Others are of concepts that a ledger of GPU time does not have: invoices, commitments,
# reservations, prices in other currencies.
WRITTEN = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "HostProviderName",
    "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit", "RegionId",
    "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "ServiceProviderName",
    "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName",
    "SubAccountType", "Tags",
)  # fmt: skip


@cache
def specification() -> Specification:
    """The newest version that is written."""
    return load_toml(data_dir("gpuledger.live", "data", "focus_1_4.toml"), Specification)
