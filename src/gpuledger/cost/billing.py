"""Who is charged for which time of which device, in one window?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.cost.buckets import Device, Lines
from gpuledger.cost.charges import Charge, make_charges
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.pricing import PriceChoice
from gpuledger.cost.segments import Plan, Stay, Window
from gpuledger.efficiency.calibration import Calibration
from gpuledger.efficiency.scope import Scope, nothing_found
from gpuledger.lake.layout import Lake


@dataclass(frozen=True)
class Asked:
    """What a bill is made from, but the lines themselves."""

    scope: Scope
    inventory: Inventory | None = None
    choice: PriceChoice = PriceChoice()  # noqa: RUF009  (frozen, so one for all is safe)
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Charged:
    """The charges of one window; `unpaid_ms` was seen of devices at times nobody pays for them, `told` are the models
    whose tensor pipe worked, with each precision told."""

    window: Window
    devices: tuple[Device, ...]
    stays: tuple[Stay, ...]
    charges: tuple[Charge, ...]
    unpaid_ms: int
    told: tuple[tuple[str | None, str | None], ...] = ()


def charge_window(lake: Lake, asked: Asked) -> Charged:
    """The charges of everyone in scope; an error where there is not one."""
    with Lines(lake, asked.scope) as lines:
        devices = lines.devices()
        if not devices:
            raise nothing_found(lake, asked.scope)
        window = _window(asked, devices)
        stays = Plan(window, asked.inventory, asked.choice).make(devices)
        pieces = lines.pieces([s.segment for s in stays if s.seen], asked.calibration)
        told = lines.told()
    charges, unpaid_ms = make_charges(stays, pieces, asked.scope)
    if not charges and asked.scope.names_owners:
        raise nothing_found(lake, asked.scope)
    return Charged(window, tuple(devices), tuple(stays), tuple(charges), unpaid_ms, tuple(told))


def _window(asked: Asked, devices: Sequence[Device]) -> Window:
    """As asked for. Without an inventory nothing is known to be paid before the first or after the last sample."""
    first, last = min(d.first_ms for d in devices), max(d.last_ms for d in devices)
    start = first if asked.scope.since_ms is None else asked.scope.since_ms
    end = last if asked.scope.until_ms is None else asked.scope.until_ms
    return Window(start, end) if asked.inventory else Window(max(start, first), min(end, last))
