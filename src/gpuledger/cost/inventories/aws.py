"""AWS Cost and Usage Report: what did each instance cost, hour by hour or day by day?

A Savings Plan or a reservation is counted at its effective (amortized) cost, so that an instance it covers does not
look free; the rows that cancel the list price out again are passed over. Data transfer, volumes and fees are not the
price of a GPU.
"""

from __future__ import annotations

import re
from decimal import Decimal

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import Fields, billed, gpus_in, has_gpus
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Spent

_NEEDED = {"line_item_unblended_cost", "line_item_usage_start_date", "line_item_resource_id"}
_RUNS = re.compile(r"(Box|Spot|Dedicated|HostBox|Reserved|UnusedBox|CapacityBlock\w*)Usage|UnusedBox", re.IGNORECASE)
_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")
_COVERED = {
    "SavingsPlanCoveredUsage": "savings_plan_savings_plan_effective_cost",
    "DiscountedUsage": "reservation_effective_cost",
}
_USAGE = {"Usage", *_COVERED}
# What a Savings Plan takes back of the list price, and taxes, which name the instance they are for at times.
_NOT_A_PRICE = {"SavingsPlanNegation", "Tax"}
_OF_COMMITMENTS = {"SavingsPlanNegation", "SavingsPlanRecurringFee", "SavingsPlanUpfrontFee", "RIFee"}


class Aws:
    """Legacy (lineItem/ResourceId) and 2.0 (line_item_resource_id)."""

    def read(self, content: Content) -> Found:
        """The rows of instances with GPUs."""
        return billed(content, "aws", _NEEDED, self._row, self._passed_over)

    def _row(self, row: Fields) -> Spent | Skipped:
        resource, kind = row.text("line_item_resource_id"), row.text("line_item_line_item_type")
        usage, instance = row.text("line_item_usage_type"), row.text("product_instance_type")
        names = _INSTANCE.findall(resource)
        if kind in _NOT_A_PRICE or (usage and not _RUNS.search(usage)):
            return Skipped.NOT_COMPUTE
        if not names:
            return Skipped.NO_MACHINE
        instance = instance or usage.rpartition(":")[2]
        if not int(row.number_of("product_gpu") or 0) and has_gpus(instance) is False:
            return Skipped.NO_GPU
        cost = self._cost(row, kind)
        if cost is None:
            return Skipped.NO_COST
        start, end = row.period(["line_item_usage_start_date"], ["line_item_usage_end_date"])
        hours = row.number_of("line_item_usage_amount") if kind in _USAGE or not kind else Decimal(0)
        return Spent(
            row.path, row.number, (names[0],), start, end,
            row.dollars(cost, row.text("line_item_currency_code", "pricing_currency")), hours,
            instance=instance, region=row.text("product_region_code", "product_region"),
            purchase_option=_bought(kind, usage), gpus=gpus_in(instance),
        )  # fmt: skip

    def _passed_over(self, row: Fields) -> Decimal | None:
        """What a row cost that does not count; a commitment's own rows are in the effective cost of what it covers."""
        if row.text("line_item_line_item_type") in _OF_COMMITMENTS:
            return None
        amount = row.number_of("line_item_unblended_cost")
        return row.dollars(amount, row.text("line_item_currency_code", "pricing_currency")) if amount else None

    def _cost(self, row: Fields, kind: str) -> Decimal | None:
        """What the row really cost; None where a commitment covers it and the report does not say at which cost."""
        if kind in _COVERED:
            return row.number_of(_COVERED[kind])
        return row.number_of("line_item_unblended_cost")


def _bought(kind: str, usage: str) -> str:
    if kind in _COVERED:
        return "reserved"
    return "spot" if "spot" in usage.casefold() else "on_demand"


KINDS.register("aws")(Aws())
