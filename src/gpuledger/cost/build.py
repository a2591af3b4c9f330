"""Lake, prices and inventory in: what did the window cost, and what does that come to?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from gpuledger.catalog.prices.offers import Offer
from gpuledger.cost import figures, words
from gpuledger.cost.billing import Asked, Charged, charge_window
from gpuledger.cost.charges import group, row_of
from gpuledger.cost.compare import compare
from gpuledger.cost.inventory import Inventory, read_inventory
from gpuledger.cost.money import ZERO, rounded
from gpuledger.cost.pricing import PriceChoice
from gpuledger.cost.projections import Projection, Quarter, project
from gpuledger.cost.savings import Bill
from gpuledger.cost.showback import Config
from gpuledger.cost.spending import paid_boards
from gpuledger.cost.statement import NOT_ASKED, WASTE, Bucket, Comparison, CostStatement, Dollars
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope, namespace_name, owner_name
from gpuledger.physics.calibration import Calibration
from gpuledger.units import MS_PER_HOUR, Unknown

Money = Decimal | float | int | str


@dataclass(frozen=True)
class CostReport:
    """The bill as a rate: what it comes to, and the buckets of one month, which add up to it to the cent."""

    hourly_usd: Decimal
    monthly_usd: Decimal
    yearly_usd: Decimal
    quarter: Quarter
    buckets_monthly_usd: Mapping[Bucket, Decimal]
    waste_monthly_usd: Decimal


def cost_statement(
    lake: Lake | str | Path,
    scope: Scope | None = None,
    *,
    inventory: Inventory | str | Path | None = None,
    price: Money | Mapping[str, Money] | None = None,
    instance: str | None = None,
    region: str | None = None,
    teams: Config | None = None,
    as_of_ms: int | None = None,
    previous: bool = False,
    usd_per_kwh: Money | None = None,
    calibration: Calibration | None = None,
    own: Sequence[Offer] = (),
) -> CostStatement:
    """What the devices in scope cost; the books must be posted. `as_of_ms`: today, else the end of the window."""
    return statement_and_bill(
        lake,
        scope,
        inventory=inventory,
        price=price,
        instance=instance,
        region=region,
        teams=teams,
        as_of_ms=as_of_ms,
        previous=previous,
        usd_per_kwh=usd_per_kwh,
        calibration=calibration,
        own=own,
    )[0]


def statement_and_bill(
    lake: Lake | str | Path,
    scope: Scope | None = None,
    *,
    inventory: Inventory | str | Path | None = None,
    price: Money | Mapping[str, Money] | None = None,
    instance: str | None = None,
    region: str | None = None,
    teams: Config | None = None,
    as_of_ms: int | None = None,
    previous: bool = False,
    usd_per_kwh: Money | None = None,
    calibration: Calibration | None = None,
    own: Sequence[Offer] = (),
) -> tuple[CostStatement, Charged]:
    """As cost_statement, with the charges it is made of: who owes what, device by device. `own`: the user's rates."""
    books = lake if isinstance(lake, Lake) else Lake(lake)
    stock = read_inventory(inventory) if isinstance(inventory, str | Path) else inventory
    asked = Asked(scope or Scope(), stock, PriceChoice(_prices(price), instance, region, tuple(own)), calibration)
    bill = charge_window(books, asked)
    today_ms = bill.window.end_ms if as_of_ms is None else as_of_ms
    per_kwh = None if usd_per_kwh is None else _money(usd_per_kwh)
    before = _previous(books, asked, bill) if previous else Unknown(NOT_ASKED)
    return _statement(bill, asked, teams or Config(), today_ms, per_kwh, before), bill


def _statement(
    bill: Charged,
    asked: Asked,
    config: Config,
    today_ms: int,
    usd_per_kwh: Decimal | None,
    before: Comparison | Unknown,
) -> CostStatement:
    charges, fleet = bill.charges, row_of("fleet", bill.charges)
    return CostStatement(
        start_ms=bill.window.start_ms,
        end_ms=bill.window.end_ms,
        gpus=figures.boards(charges),
        times=fleet.times,
        dollars=fleet.dollars,
        paid_low_usd=figures.paid_at(charges, "low_usd"),
        paid_high_usd=figures.paid_at(charges, "high_usd"),
        projection=_projection(fleet.dollars, bill, asked, today_ms),
        phases_pct=figures.phases_pct(charges),
        evidence_pct=figures.evidence_pct(charges),
        work=figures.work(charges),
        energy_kwh=figures.energy_kwh(charges),
        energy_usd=figures.energy_usd(charges, usd_per_kwh),
        by_gpu=figures.by_gpu(charges),
        by_model=group(charges, lambda c: c.device.gpu_model or "no model name"),
        by_cluster=group(charges, lambda c: c.cluster or "no cluster"),
        by_namespace=group(charges, lambda c: namespace_name(c.namespace)),
        by_owner=group(charges, lambda c: owner_name(c.namespace, c.workload)),
        by_team=group(charges, lambda c: config.team(c.cluster, c.namespace)),
        prices=figures.prices_used(charges, today_ms),
        unpriced=figures.unpriced(charges),
        previous=before,
        assumptions=words.assumptions(bill, asked),
        samples=bill.samples,
    )


def _projection(dollars: Dollars | Unknown, bill: Charged, asked: Asked, today_ms: int) -> Projection | Unknown:
    if isinstance(dollars, Unknown):
        return dollars
    return project(dollars.paid_usd, bill.window.end_ms - bill.window.start_ms, today_ms, paid_boards(bill, asked))


def _previous(lake: Lake, asked: Asked, now: Charged) -> Comparison | Unknown:
    start, length = now.window.start_ms, now.window.end_ms - now.window.start_ms
    earlier = replace(asked.scope, since_ms=start - length, until_ms=start)
    try:
        before = charge_window(lake, replace(asked, scope=earlier))
    except InputError as error:
        return Unknown(f"the period before has nothing to compare with: {error.message}")
    found = compare(now.charges, before.charges, (start - length, start))
    seen_ms = before.window.end_ms - before.window.start_ms
    if seen_ms >= length:
        return found
    short = f"the period before was seen for {seen_ms / MS_PER_HOUR:,.1f} of {length / MS_PER_HOUR:,.1f} h only"
    return replace(found, words=(*found.words, short))


def bill_by_namespace(statement: CostStatement) -> Bill:
    """What levers can act on: the priced buckets of each namespace."""
    rows = [(row.name, row.dollars) for row in statement.by_namespace]
    return Bill({name: dollars.each() for name, dollars in rows if not isinstance(dollars, Unknown)})


def cost_report(
    lake: Lake | str | Path,
    scope: Scope | None = None,
    *,
    inventory: Inventory | str | Path | None = None,
    price: Money | Mapping[str, Money] | None = None,
    instance: str | None = None,
    region: str | None = None,
    as_of_ms: int | None = None,
) -> CostReport | Unknown:
    """Hourly, monthly, yearly and next quarter's dollars of a lake, and the month's buckets."""
    made = cost_statement(
        lake, scope, inventory=inventory, price=price, instance=instance, region=region, as_of_ms=as_of_ms
    )
    return report_of(made)


def report_of(statement: CostStatement) -> CostReport | Unknown:
    """A statement as a rate of spending."""
    dollars, rate = statement.dollars, statement.projection
    if isinstance(dollars, Unknown):
        return dollars
    if isinstance(rate, Unknown):
        return rate
    paid = dollars.paid_usd
    monthly = {b: rate.monthly_usd * v / paid if paid else ZERO for b, v in dollars.each().items()}
    cents = rounded(monthly)
    waste = sum((cents[b] for b in WASTE), ZERO)
    return CostReport(rate.hourly_usd, rate.monthly_usd, rate.yearly_usd, rate.quarter, cents, waste)


def _prices(price: Money | Mapping[str, Money] | None) -> Decimal | Mapping[str, Decimal] | None:
    if price is None:
        return None
    return {name: _money(p) for name, p in price.items()} if isinstance(price, Mapping) else _money(price)


def _money(value: Money) -> Decimal:
    """A number as the decimal it is written as."""
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise InputError(f"{value!r} is not a price", hint="give dollars as a plain number, for example 2.50") from None
