"""FOCUS 1.x: what did each machine cost, whichever provider wrote the file?"""

from __future__ import annotations

import re
from decimal import Decimal

from gpuledger.cost.inventories.azure import machine_names
from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import Fields, billed, gpus_in, has_gpus
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Spent

_NEEDED = {"billed_cost", "charge_period_start"}
_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")
_TYPES = ("x_sku_instance_type", "x_instance_type", "x_sku_type", "x_resource_instance_type")
_HOURS = re.compile(r"(1 )?hours?|hrs?", re.IGNORECASE)
_BOUGHT = {"dynamic": "spot", "committed": "reserved"}


class Focus:
    """The FinOps Open Cost and Usage Specification."""

    def read(self, content: Content) -> Found:
        """The rows of machines; those without GPUs are passed over where their type says so."""
        return billed(content, "focus", _NEEDED, self._row, _cost)

    def _row(self, row: Fields) -> Spent | Skipped:
        category, service = row.text("charge_category"), row.text("service_category")
        if category in {"Purchase", "Tax"} or (service and service != "Compute"):
            return Skipped.NOT_COMPUTE
        names = _names(row)
        if not names:
            return Skipped.NO_MACHINE
        instance = _type(row)
        if has_gpus(instance) is False:
            return Skipped.NO_GPU
        cost = _cost(row)
        if cost is None:
            return Skipped.NO_COST
        start, end = row.period(["charge_period_start"], ["charge_period_end"])
        hourly = _HOURS.fullmatch(row.text("consumed_unit", "pricing_unit"))
        hours = row.number_of("consumed_quantity", "pricing_quantity") if hourly else None
        return Spent(
            row.path, row.number, names, start, end, cost, hours,
            instance=instance, region=row.text("region_id", "region_name"),
            purchase_option=_BOUGHT.get(row.text("pricing_category").casefold(), "on_demand"), gpus=gpus_in(instance),
        )  # fmt: skip


def _cost(row: Fields) -> Decimal | None:
    """In dollars, a commitment spread over what it covers."""
    amount = row.number_of("effective_cost", "billed_cost")
    return None if amount is None else row.dollars(amount, row.text("billing_currency"))


def _names(row: Fields) -> tuple[str, ...]:
    resource, name = row.text("resource_id"), row.text("resource_name")
    found = (*_INSTANCE.findall(resource), *machine_names(resource), resource.rpartition("/")[2], name)
    return tuple(dict.fromkeys(text for text in found if text))


def _type(row: Fields) -> str:
    """The type of the machine: SkuPriceDetails since 1.1, columns of the provider before."""
    details = row.object_in("sku_price_details")
    named = details.get("InstanceType") or details.get("x_InstanceType")
    nested = row.text("sku_price_details_instance_type", "sku_price_details_x_instance_type")
    return str(named or nested or row.text(*_TYPES))


KINDS.register("focus")(Focus())
