"""How do a command line's prices, files and windows become an audit, of a lake or of one run?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from gpuledger.advice.build import audit_statement
from gpuledger.advice.limits import Limits, load_limits
from gpuledger.advice.statement import AuditStatement
from gpuledger.catalog.prices.offers import Offer
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cli.analysis import post, since_ms
from gpuledger.cli.figures import count
from gpuledger.cli.options import Chosen
from gpuledger.cli.price_options import price_of, usd_of
from gpuledger.cli.screen import Stages
from gpuledger.cost.inventory import Inventory, read_inventory
from gpuledger.cost.pricing import PriceChoice, load_own
from gpuledger.cost.showback import Config, load_config
from gpuledger.cost.user_settings import Price, budgets_of, set_teams, with_set_prices
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.recording.runs import RunNotes
from gpuledger.settings import changed, in_force

LEAST_SAMPLES = 2


@dataclass(frozen=True)
class Wanted:
    """What an audit is made with; every file is read and every name checked before anything runs."""

    inventory: Inventory | None
    price: Price
    instance: str | None
    region: str | None
    teams: Config | None
    limits: Limits
    usd_per_kwh: Decimal | None
    previous: bool
    own: tuple[Offer, ...] = ()
    price_from: str = "--price"


def wanted(
    *,
    inventory: Path | None,
    prices: Sequence[str],
    instance: str | None,
    region: str | None,
    teams: Path | None,
    limits: Path | None,
    usd_per_kwh: str | None,
    previous: bool,
    lake: Path,
) -> Wanted:
    """The options of a command line, checked; with the rates of the user's own that are kept in the lake."""
    price = price_of(prices)
    if price is not None and instance:
        raise InputError("--price and --instance both say what a GPU-hour costs", hint="give one of them")
    own, typed = load_own(lake), price is not None
    price = price if instance else with_set_prices(price)
    PriceChoice(price, instance, region, own)  # an unknown GPU, instance or region fails here, before a job has run
    return Wanted(
        read_inventory(inventory) if inventory else None,
        price,
        instance,
        region,
        load_config(teams) if teams else set_teams(),
        load_limits(limits),
        None if usd_per_kwh is None else usd_of(usd_per_kwh, "--usd-per-kwh"),
        previous,
        own,
        "--price" if typed else "[prices]",
    )


def audit_lake(lake: Lake, chosen: Chosen, asked: Wanted, stages: Stages) -> AuditStatement:
    """The audit of a window of the lake; what is stale is posted first."""
    post(lake, load_thresholds(), stages)
    tick = stages.start("auditing")
    scope = Scope(since_ms(lake, chosen), chosen.until_ms, chosen.clusters, chosen.namespaces, chosen.owners)
    made = _audit(lake, scope, asked)
    tick(1)
    return made


def audit_run(lake: Lake, notes: RunNotes, asked: Wanted, stages: Stages) -> AuditStatement:
    """The audit of one recording: its own time on its own devices."""
    _enough(notes)
    post(lake, load_thresholds(), stages)
    end = max(notes.ended_ms or notes.started_ms, notes.started_ms + 1)
    return _audit(lake, Scope(notes.started_ms, end, owners=(notes.run_id,)), asked)


def _enough(notes: RunNotes) -> None:
    if notes.devices and not any(d.owned for d in notes.devices):
        raise InputError(
            f"run {notes.run_id} held no GPU (of {len(notes.devices)} recorded), so no GPU time is its own",
            hint="was the GPU hidden from it (CUDA_VISIBLE_DEVICES)? audit the whole lake: gpuledger audit",
        )
    if notes.rows < LEAST_SAMPLES:
        words = f"the run left {notes.rows} sample{'s' * (notes.rows != 1)} in {notes.seconds:.1f} s"
        raise InputError(f"{words}: too short to audit", hint="audit something that runs for some seconds")


def _audit(lake: Lake, scope: Scope, asked: Wanted) -> AuditStatement:
    made = audit_statement(
        lake,
        scope,
        inventory=asked.inventory,
        price=asked.price,
        instance=asked.instance,
        region=asked.region,
        teams=asked.teams,
        previous=asked.previous,
        usd_per_kwh=asked.usd_per_kwh,
        calibration=load_calibration(lake),
        thresholds=asked.limits,
        own=asked.own,
    )
    budgets, note = budgets_of(made.cost), _price_note(made, asked)
    notes = (*([note] if note else []), *(b.words for b in budgets), *_settings(asked))
    return replace(made, assumptions=(*made.assumptions, *notes), budgets=budgets)


def _settings(asked: Wanted) -> Iterator[str]:
    """Which teams, prices and budgets come from the settings file."""
    settings = in_force()
    used = {
        "teams": asked.teams is not None and asked.teams == set_teams(settings),
        "prices": bool(settings.section("prices")) and isinstance(asked.price, Mapping),
        "budgets": bool(settings.section("budgets")),
    }
    return changed(**{name: str(settings.file) if of_file else "" for name, of_file in used.items()})


def _price_note(made: AuditStatement, asked: Wanted) -> str:
    """What became of a price on the command line next to an inventory, which comes first; empty without the two."""
    option, basis = (asked.price_from, "given") if asked.price is not None else ("--instance", "instance")
    if asked.inventory is None or (asked.price is None and asked.instance is None):
        return ""
    listed = asked.inventory.by_device
    names = ({r.gpu_uuid, f"{r.gpu_uuid}/{r.gpu_instance_id}"} for r in made.cost.by_gpu)
    others = sum(listed.keys().isdisjoint(either) for either in names)
    if not others:
        return f"{option} has no effect: every GPU is in the inventory, whose prices come first."
    used = any(p.basis == basis for p in made.cost.prices)
    what = "prices only" if used else "could price only"
    return f"{option} {what} the {count(others, 'GPU')} that the inventory does not list."
