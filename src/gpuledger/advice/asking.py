"""What is an audit made with: arguments, the files they name, and the settings? The same for every way to ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from gpuledger.advice.build import audit_statement
from gpuledger.advice.limits import Limits, load_limits
from gpuledger.advice.statement import AuditStatement
from gpuledger.arguments import one_of
from gpuledger.cost.billing import SingleSamples
from gpuledger.cost.build import Money, Paying, Terms, energy_price, prices_of
from gpuledger.cost.inventories.settling import Given, stock_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.pricing import PriceChoice, load_own
from gpuledger.cost.snapshot import with_prices
from gpuledger.cost.teams import load_config, set_teams
from gpuledger.cost.user_settings import budgets_of, with_set_prices
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.snapshot import Snapshot, snapshot_of
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.owners import dimension
from gpuledger.ledger.read.scope import Scope
from gpuledger.settings import changed, in_force
from gpuledger.units import count

File = str | Path


@dataclass(frozen=True)
class Asked:
    """What an audit is made with; every file is read and every name checked before anything runs.

    `price_named`: what a note calls the source of the price.
    """

    terms: Terms
    limits: Limits
    price_named: str


def paying(
    lake: File,
    *,
    price: Money | Mapping[str, Money] | None = None,
    prices: Money | Mapping[str, Money] | None = None,
    instance: str | None = None,
    region: str | None = None,
    inventory: Given | None = None,
) -> Paying:
    """What is paid now: the inventory, prices as given or as set, and the user's own rates; unknown names fail here."""
    given, own = prices_of(one_of(price=price, prices=prices)), load_own(lake)
    chosen = PriceChoice(given if instance else with_set_prices(given), instance, region, own)
    stock = inventory if isinstance(inventory, Inventory) else stock_of(inventory) if inventory else None
    return Paying(inventory=stock, price=chosen.price, instance=instance, region=region, own=own)


def asked(
    lake: File,
    *,
    price: Money | Mapping[str, Money] | None = None,
    prices: Money | Mapping[str, Money] | None = None,
    instance: str | None = None,
    region: str | None = None,
    inventory: Given | None = None,
    teams: File | None = None,
    limits: File | None = None,
    usd_per_kwh: Money | None = None,
    previous: bool = False,
    by: str | None = None,
    dash: str = "",
) -> Asked:
    """The arguments, checked, with the settings for what is not given. `dash`: what precedes their names in words."""
    price = one_of(price=price, prices=prices)
    if price is not None and instance:
        words = f"{dash}price and {dash}instance both say what a GPU-hour costs"
        raise InputError(words, hint="give one of them")
    terms = cast("Terms", paying(lake, price=price, instance=instance, region=region, inventory=inventory))
    terms["teams"] = load_config(Path(teams)) if teams else set_teams()
    terms["usd_per_kwh"] = None if usd_per_kwh is None else energy_price(usd_per_kwh)
    terms["previous"] = previous
    terms["by"] = None if by is None else dimension(by)
    named = f"{dash}instance" if instance else "[prices]" if price is None else f"{dash}price"
    return Asked(terms, load_limits(Path(limits) if limits else None), named)


def audit(lake: Lake, scope: Scope, asked: Asked) -> AuditStatement:
    """The audit of a window, with the budgets that were set; the ledger must be posted."""
    terms: Terms = {**asked.terms, "calibration": load_calibration(lake)}
    made = audit_statement(lake, scope, thresholds=asked.limits, **terms)
    budgets = budgets_of(made.cost)
    notes = (*_price_note(made, asked), *(b.words for b in budgets), *_settings(asked.terms))
    return replace(made, assumptions=(*made.assumptions, *notes), budgets=budgets)


def audit_or_snapshot(lake: Lake, scope: Scope, asked: Asked) -> AuditStatement | Snapshot:
    """The audit; where each GPU was seen at one instant only, what it read there and what an hour of it costs."""
    try:
        return audit(lake, scope, asked)
    except SingleSamples:
        found = snapshot_of(lake, scope)
        if found is None:  # the samples are gone
            raise
        return with_prices(found, lake, scope, cast("Paying", asked.terms))


def _settings(terms: Terms) -> Iterator[str]:
    """Which teams, prices and budgets come from the settings file."""
    settings = in_force()
    used = {
        "teams": terms["teams"] is not None and terms["teams"] == set_teams(settings),
        "prices": bool(settings.section("prices")) and isinstance(terms["price"], Mapping),
        "budgets": bool(settings.section("budgets")),
    }
    return changed(**{name: str(settings.file) if of_file else "" for name, of_file in used.items()})


def _price_note(made: AuditStatement, asked: Asked) -> Iterator[str]:
    """What became of a price next to an inventory, which comes first; nothing without the two."""
    stock, priced = made.cost.inventory, asked.terms["price"] is not None
    if stock is None or not (priced or asked.terms["instance"]):
        return
    others = stock.gpus_unpriced
    if not others:
        yield f"{asked.price_named} has no effect: every GPU is priced by the inventory, whose prices come first."
        return
    used = sum(p.gpus for p in made.cost.prices if p.basis == ("given" if priced else "instance"))
    prices = "prices" if used else "could price"
    some = f"{used} of the" if 0 < used < others else "only the"
    yield f"{asked.price_named} {prices} {some} {count(others, 'GPU')} that the inventory does not price."
