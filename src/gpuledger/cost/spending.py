"""For how long was each GPU of a bill paid for, and does an inventory say so?"""

from __future__ import annotations

from decimal import Decimal

from gpuledger.cost.billing import Asked, Charged
from gpuledger.cost.money import ZERO
from gpuledger.cost.projections import PaidBoard


def paid_boards(bill: Charged, asked: Asked) -> tuple[PaidBoard, ...]:
    """Each GPU with a price: dollars and time paid in the window. The slices of one board are one GPU.

    Where only some owners are asked for, their part of a GPU's time is known and is not stretched: it counts as listed.
    """
    rows = asked.inventory.by_device if asked.inventory else {}
    usd: dict[str, Decimal] = {}
    stays: dict[str, dict[int, int]] = {}
    unobserved: dict[str, int] = {}
    listed = set()
    for charge in bill.charges:
        if charge.dollars is None:
            continue
        uuid = charge.device.gpu_uuid
        usd[uuid] = usd.get(uuid, ZERO) + charge.dollars.paid_usd
        stays.setdefault(uuid, {})[charge.stay.segment.number] = charge.stay.length_ms
        unobserved[uuid] = unobserved.get(uuid, 0) + charge.times.unobserved_ms
        if asked.scope.names_owners or uuid in rows or charge.device.name in rows:
            listed.add(uuid)
    return tuple(
        PaidBoard(usd[uuid], sum(stays[uuid].values()), unobserved[uuid], listed=uuid in listed) for uuid in sorted(usd)
    )
