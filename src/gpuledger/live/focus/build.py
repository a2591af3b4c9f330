"""Which FOCUS rows does a window have, and what had to be left out?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from gpuledger.arguments import takes
from gpuledger.cost.billing import Asked
from gpuledger.cost.build import Terms, choice_of, statement_and_bill
from gpuledger.cost.charges import Charge
from gpuledger.cost.emissions.build import Placing, emitted
from gpuledger.cost.emissions.readings import read_readings
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.pricing import Price
from gpuledger.cost.statement import CostStatement
from gpuledger.cost.teams import Config
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.owners import By
from gpuledger.ledger.read.scope import Scope
from gpuledger.live.focus.days import DayCharge, day_charges
from gpuledger.live.focus.rows import Making, Naming, Row
from gpuledger.units import MS_PER_HOUR, PPM, Unknown


@dataclass(frozen=True)
class LeftOut:
    """Rows without a price: FOCUS does not allow an unknown cost, and none is made up."""

    why: str
    gpus: int
    rows: int
    paid_h: float


@dataclass(frozen=True)
class FocusExport:
    """The rows of a window, and the statement that they add up to."""

    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    statement: CostStatement


@takes(Terms)
def focus_export(
    lake: Lake,
    scope: Scope | None = None,
    naming: Naming | None = None,
    placing: Placing | None = None,
    **terms: Unpack[Terms],
) -> FocusExport:
    """One row per day, device and owner; the ledger must be posted. Keywords: see `Terms`."""
    wanted = scope or Scope()
    stock = inventory_of(lake, terms.get("inventory"))
    terms["inventory"], terms["by"], terms["previous"] = stock, By.USER, False
    statement, bill = statement_and_bill(lake, wanted, **terms)
    asked = Asked(wanted, stock, choice_of(terms), terms.get("calibration"), By.USER)
    readings = read_readings(Books(lake, wanted), hourly=False)
    making = Making(
        naming or Naming(), terms.get("teams") or Config(), stock, emitted(lake, wanted, stock, placing or Placing()),
        readings, _rests(bill.charges),
    )  # fmt: skip
    rows: list[Row] = []
    unpriced: list[DayCharge] = []
    for day in day_charges(lake, asked, bill):
        if day.dollars is None or not isinstance(day.of.price, Price):
            unpriced.append(day)
        else:
            rows.append(making.row(day, day.dollars, day.of.price))
    return FocusExport(tuple(rows), _left_out(unpriced), statement)


def _rests(charges: Sequence[Charge]) -> dict[str, int]:
    """By board that is cut the share that its slices leave."""
    slices: dict[str, dict[str, int]] = {}
    for charge in charges:
        if charge.device.gpu_instance_id:
            slices.setdefault(charge.device.gpu_uuid, {})[charge.device.gpu_instance_id] = charge.share_ppm
    return {uuid: max(0, PPM - sum(own.values())) for uuid, own in slices.items()}


def _left_out(unpriced: Sequence[DayCharge]) -> tuple[LeftOut, ...]:
    by_reason: dict[str, list[DayCharge]] = {}
    for day in unpriced:
        price = day.of.price
        by_reason.setdefault(price.why if isinstance(price, Unknown) else "no price", []).append(day)
    return tuple(
        LeftOut(
            why, len({d.of.device.gpu_uuid for d in days}), len(days),
            sum(d.times.paid_ms for d in days) / MS_PER_HOUR,
        )
        for why, days in by_reason.items()
    )  # fmt: skip
