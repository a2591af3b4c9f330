"""What was paid for a case, and how was its time bought?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuledger.advice.case import Case
from gpuledger.cost.charges import Charge, row_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.pricing import Price


def with_money(case: Case, charges: Sequence[Charge], inventory: Inventory | None) -> Case:
    """The case with the dollars of its charges, and the way most of its time was bought."""
    if not charges:
        return case
    row = row_of(case.name, charges)
    options, instances = Counter[str](), Counter[str]()
    for charge in charges:
        option, instance = _bought(charge, inventory)
        options[option] += charge.times.paid_ms
        instances[instance or ""] += charge.times.paid_ms
    option, instance = options.most_common(1)[0][0], instances.most_common(1)[0][0]
    return replace(case, times=row.times, dollars=row.dollars, purchase=option, instance=instance or None)


def _bought(charge: Charge, inventory: Inventory | None) -> tuple[str, str]:
    """How the time was bought: as the inventory says, else as the list price it was priced by."""
    price, segment = charge.price, charge.stay.segment
    if inventory is not None and isinstance(price, Price) and price.basis in {"inventory", "yours", "instance"}:
        rows = inventory.by_device.get(charge.device.name) or inventory.by_device.get(charge.device.gpu_uuid) or ()
        for row in rows:
            if row.within(segment.start_ms, segment.end_ms):
                return row.purchase_option, row.instance
    if isinstance(price, Price) and price.basis in {"market", "yours", "instance"}:
        return "on_demand", ""
    return "not said", ""
