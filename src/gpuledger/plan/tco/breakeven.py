"""From which month, above which utilization and below which purchase price does owning cost less than renting?

Owning less renting is a straight line in utilization and in the purchase price, so two points give the root exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from gpuledger.plan.tco.model import ZERO, Fleet, Own, Values
from gpuledger.units import Unknown

Difference = Callable[[Values], Decimal]
WORN_OUT = "owned GPUs have to be replaced before their cash is paid back"
EVERY_MONTH = "running owned GPUs costs more per month than this path, before their price"


def month(fleet: Fleet, own: Own, rent_usd: Decimal) -> Decimal | Unknown:
    """The month from which on the cash spent on owning stays below that spent on renting; resale is not counted.

    It may lie after the horizon, if owning went on as it does within it, but not after the life of the hardware.
    """
    saved_per_month = (rent_usd - own.running_usd) / fleet.months
    if saved_per_month <= 0:
        return Unknown(EVERY_MONTH)
    # From the last purchase back: the first one that is not yet paid back when it is made decides.
    starts = (ZERO, *own.bought_again)
    sets = next(n for n in range(own.sets, 0, -1) if n * own.set_usd / saved_per_month > starts[n - 1])
    found = sets * own.set_usd / saved_per_month
    if own.set_months is not None and found > sets * own.set_months:
        return Unknown(WORN_OUT)
    return found


def root(difference: Difference, values: Values, name: str, low: Decimal, high: Decimal) -> Decimal:
    """Where a straight line through two points is zero; the difference must not be the same at both."""
    at_low, at_high = difference({**values, name: low}), difference({**values, name: high})
    return low + (high - low) * at_low / (at_low - at_high)


def utilization_pct(difference: Difference, values: Values) -> Decimal | Unknown:
    """The utilization above which owning costs less."""
    name, none, full = "utilization_pct", ZERO, Decimal(100)
    at_none, at_full = difference({**values, name: none}), difference({**values, name: full})
    if at_full > 0 and at_none > 0:
        return Unknown("owning costs more at any utilization")
    if at_full <= 0 and at_none <= 0:
        return Unknown("owning costs less at any utilization")
    if at_full > at_none:
        return Unknown("owning costs less only at low utilization: this path is paid used or not")
    return root(difference, values, name, none, full)


def purchase_usd(difference: Difference, values: Values) -> Decimal | Unknown:
    """The purchase price of a GPU below which owning costs less."""
    name = "purchase_usd"
    now = values[name]
    if difference({**values, name: ZERO}) >= 0:
        return Unknown("owning costs more even if the GPUs are free")
    return root(difference, values, name, ZERO, now)
