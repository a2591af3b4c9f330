"""Azure cost and usage details: what did each virtual machine cost per day?"""

from __future__ import annotations

import re
from decimal import Decimal

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import Fields, billed, gpus_in, has_gpus
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Spent
from gpuledger.errors import FileFault
from gpuledger.telemetry.date_order import Order, order_of

_COSTS = ("cost_in_billing_currency", "cost_in_usd", "pre_tax_cost", "cost")
_DAYS = ("date", "usage_date_time", "usage_date")
_MACHINES = "virtual machines"
_VM = re.compile(r"/virtualMachines/([^/]+)$", re.IGNORECASE)
_SCALE_SET = re.compile(r"/virtualMachineScaleSets/([^/]+)(?:/virtualMachines/(\d+))?$", re.IGNORECASE)


class Azure:
    """Exports of enterprise, customer and pay-as-you-go agreements; camelCase and PascalCase."""

    def read(self, content: Content) -> Found:
        """The rows of virtual machines with GPUs."""
        found = billed(content, "azure", {"meter_category"}, self._row, self._cost)
        other = [text for text in sorted(content.written.dates) if order_of(text) is Order.DAY_FIRST]
        if other:
            problem = f"its dates have the day first ({other[0]!r}); Azure writes the month first"
            raise FileFault(content.path, problem, hint="export it again, or write dates as 2026-01-20")
        return found

    def _row(self, row: Fields) -> Spent | Skipped:
        row.content.written.dates.add(row.text(*_DAYS))
        if row.text("meter_category").casefold() != _MACHINES:
            return Skipped.NOT_COMPUTE
        more = row.object_in("additional_info")
        names = machine_names(row.text("resource_id", "instance_id"), str(more.get("VMName") or ""))
        if not names:
            return Skipped.NO_MACHINE
        instance = str(more.get("ServiceType") or row.text("service_type"))
        series = row.text("meter_sub_category")
        if has_gpus(instance) is False or (not instance and series and not series.upper().startswith("N")):
            return Skipped.NO_GPU
        cost = self._cost(row)
        if cost is None:
            return Skipped.NO_COST
        start, end = row.period(_DAYS, ["end_date"], month_first=True)
        unit = row.text("unit_of_measure").casefold()
        hours = row.number_of("quantity", "usage_quantity") if not unit or unit in {"1 hour", "hours", "1"} else None
        return Spent(
            row.path, row.number, names, start, end, cost, hours, instance=instance,
            region=row.text("resource_location", "meter_region").casefold().replace(" ", ""),
            purchase_option=_bought(row), gpus=gpus_in(instance),
        )  # fmt: skip

    def _cost(self, row: Fields) -> Decimal | None:
        """In dollars: the dollar column where the bill has one."""
        usd = row.number_of("cost_in_usd")
        if usd is not None:
            return usd
        amount = row.number_of(*_COSTS)
        currency = row.text("billing_currency_code", "billing_currency", "currency")
        return None if amount is None else row.dollars(amount, currency)


def machine_names(resource: str, vm_name: str = "") -> tuple[str, ...]:
    """The names of a machine by its Azure resource ID; a scale set is named as a whole."""
    names = [vm_name] if vm_name else []
    if found := _SCALE_SET.search(resource):
        names.append(f"{found[1]}_{found[2]}" if found[2] else found[1])
    elif found := _VM.search(resource):
        names.append(found[1])
    return tuple(dict.fromkeys(names))


def _bought(row: Fields) -> str:
    model = row.text("pricing_model").casefold()
    if model in {"reservation", "savingsplan"}:
        return "reserved"
    return "spot" if model == "spot" or " spot" in row.text("meter_name").casefold() else "on_demand"


KINDS.register("azure")(Azure())
