"""What did a window cost, what does that come to per month, and what does the bill assume?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypedDict, Unpack

from gpuledger.arguments import one_of, takes
from gpuledger.catalog.prices import source
from gpuledger.catalog.prices.offers import Offer
from gpuledger.cost import figures
from gpuledger.cost.billing import Asked, Charged, charge_window
from gpuledger.cost.charges import Charge
from gpuledger.cost.grouping import Part, group, parts_of, row_of
from gpuledger.cost.inventories.settling import Given, inventory_of
from gpuledger.cost.inventory_use import priced_use, use_notes
from gpuledger.cost.judged import known_waste
from gpuledger.cost.money import ZERO, rounded, usd
from gpuledger.cost.periods import Comparison
from gpuledger.cost.pricing import Price, PriceChoice
from gpuledger.cost.projections import Quarter, months_of, project
from gpuledger.cost.rating import Along
from gpuledger.cost.statement import ALWAYS, BUCKETS, NOT_ASKED, WASTE, Bucket, CostRow, CostStatement
from gpuledger.cost.teams import Config
from gpuledger.errors import InputError
from gpuledger.lake.layout import AnyLake, Lake, posted_lake
from gpuledger.ledger.jobs.counts import words_of
from gpuledger.ledger.read.doubts import doubts
from gpuledger.ledger.read.owners import By, dimension, named_by, space_name
from gpuledger.ledger.read.scope import Scope, owner_name
from gpuledger.numerals import number_given
from gpuledger.physics.calibration import Calibration
from gpuledger.physics.evidence import ModelFacts, PipeRates
from gpuledger.units import MS_PER_HOUR, Unknown, count, some, utc

Money = Decimal | float | int | str
# Below this many samples per device, one reading more or less moves a share by 10 % or more.
FEW_SAMPLES = 10
_NOTES = {
    "by_power_ms": "have no pipe counters: the productive share is power above idle power, so any hot work counts",
    "by_none_ms": (
        "cannot be rated: no pipe counters of a GPU that the catalog can rate, and no power with a known idle power; "
        "their busy part is unrated"
    ),
    "tensor_only_ms": "do not have all compute pipes recorded: what they do beyond the recorded ones is unrated",
    "unshared_ms": "are of MIG slices whose share of the board is not recorded: the energy leaves them out",
    "unclocked_ms": "have pipe counters but no SM clock recorded: the rated clock is assumed",
    "capped_ms": "ran at a power limit below the board's own: all of their busy part counts as productive",
    "stateless_ms": (
        "were posted by version 1 of the ledger, by hour averages, and their samples are gone: mixed work is rated too "
        "low there"
    ),
    "idle_unknown_ms": "without work have no memory use recorded: whether memory was held is unknown; counted as idle",
}


@dataclass(frozen=True)
class CostReport:
    """The bill as a rate: what it comes to, and the buckets of one month; those known add up to it to the cent."""

    hourly_usd: Decimal
    monthly_usd: Decimal | Unknown
    yearly_usd: Decimal | Unknown
    quarter: Quarter | Unknown
    buckets_monthly_usd: Mapping[Bucket, Decimal | Unknown]
    waste_monthly_usd: Decimal | Unknown


class Paying(TypedDict, total=False):
    """What is paid for, and at which prices. `price` and `prices` are the same; `own`: the user's rates, used before
    list prices."""

    inventory: Given | None
    price: Money | Mapping[str, Money] | None
    prices: Money | Mapping[str, Money] | None
    instance: str | None
    region: str | None
    own: Sequence[Offer]


class Terms(Paying, total=False):
    """How a window is billed: what is paid for, at which prices, and who it is shown to.

    `as_of_ms`: today, else the end of the window. `previous`: compare with the period before. `by`: the dimension of
    ownership to break the bill down by, besides those it always has.
    """

    teams: Config | None
    as_of_ms: int | None
    previous: bool
    usd_per_kwh: Money | None
    calibration: Calibration | None
    by: By | str | None


@takes(Terms)
def cost_statement(lake: AnyLake, scope: Scope | None = None, **terms: Unpack[Terms]) -> CostStatement:
    """What the devices in scope cost; the ledger must be posted. Keywords: see `Terms`."""
    return statement_and_bill(lake, scope, **terms)[0]


@takes(Terms)
def cost_report(lake: AnyLake, scope: Scope | None = None, **terms: Unpack[Terms]) -> CostReport | Unknown:
    """Hourly, monthly, yearly and next quarter's dollars of a lake, and the month's buckets. Keywords: see `Terms`."""
    return report_of(cost_statement(lake, scope, **terms))


@takes(Paying)
def statement_and_bill(
    lake: AnyLake,
    scope: Scope | None = None,
    *,
    teams: Config | None = None,
    as_of_ms: int | None = None,
    previous: bool = False,
    usd_per_kwh: Money | None = None,
    calibration: Calibration | None = None,
    by: By | str | None = None,
    along: Along | None = None,
    **paying: Unpack[Paying],
) -> tuple[CostStatement, Charged]:
    """The cost statement with the charges it is made of, device by device. `along`: another reader of the lines."""
    choice, per_kwh = choice_of(paying), None if usd_per_kwh is None else energy_price(usd_per_kwh)
    books = posted_lake(lake)
    stock = inventory_of(books, paying.get("inventory"))
    asked = Asked(scope or Scope(), stock, choice, calibration, None if by is None else dimension(by))
    bill = charge_window(books, asked, along)
    today_ms = bill.window.end_ms if as_of_ms is None else as_of_ms
    before = _previous(books, asked, bill) if previous else Unknown(NOT_ASKED)
    made = _statement(bill, asked, teams or Config(), today_ms, per_kwh, before)
    return replace(made, assumptions=(*made.assumptions, *doubts(books, asked.scope))), bill


def _statement(
    bill: Charged, asked: Asked, config: Config, today_ms: int, usd_per_kwh: Decimal | None,
    before: Comparison | Unknown,
) -> CostStatement:  # fmt: skip
    charges, window, length_ms = bill.charges, bill.window, bill.window.end_ms - bill.window.start_ms
    boards = figures.paid_boards(bill, asked)
    months = months_of(length_ms, boards)
    parts = parts_of(charges, months)
    fleet, devices = row_of("fleet", parts), figures.by_device(charges)
    paid = fleet.dollars if isinstance(fleet.dollars, Unknown) else fleet.dollars.paid_usd
    return CostStatement(
        start_ms=window.start_ms,
        end_ms=window.end_ms,
        gpus=figures.boards(charges),
        times=fleet.times,
        dollars=fleet.dollars,
        paid_low_usd=figures.paid_at(charges, "low_usd"),
        paid_high_usd=figures.paid_at(charges, "high_usd"),
        projection=paid if isinstance(paid, Unknown) else project(length_ms, today_ms, boards, months),
        phases_pct=figures.phases_pct(charges),
        evidence_pct=figures.evidence_pct(charges),
        work=figures.work(devices),
        energy_kwh=figures.energy_kwh(charges),
        energy_usd=figures.energy_usd(charges, usd_per_kwh),
        by_gpu=figures.by_gpu(devices),
        by_model=group(parts, lambda c: c.device.gpu_model or "no model name"),
        by_cluster=group(parts, lambda c: c.cluster or "no cluster"),
        by_namespace=group(parts, lambda c: space_name(c.namespace, owned=c.owned)),
        by_owner=group(parts, _owner),
        by_team=group(parts, lambda c: config.team(c.cluster, c.namespace, c.more.get("team"), owned=c.owned)),
        prices=figures.prices_used(charges, today_ms),
        unpriced=figures.unpriced(charges),
        previous=before,
        assumptions=(*filter(None, [months.note]), *_assumptions(bill, asked)),
        samples=bill.samples,
        by=asked.by,
        showback=_showback(parts, asked.by, config),
        inventory=priced_use(bill, asked),
        months=months,
    )


def _showback(parts: Iterable[Part], by: By | None, config: Config) -> tuple[CostRow, ...]:
    """The bill by one dimension of ownership; a part without that label has a row that says so."""
    if by is None or by in ALWAYS:
        return ()
    return group(parts, lambda c: named_by(by, c.labels, owned=c.owned, team_of=config.set_team))


def _owner(charge: Charge) -> str:
    space, job = charge.namespace, charge.workload
    return owner_name(space, job) if job else space_name(space, owned=charge.owned)


def _previous(lake: Lake, asked: Asked, now: Charged) -> Comparison | Unknown:
    start, length = now.window.start_ms, now.window.end_ms - now.window.start_ms
    earlier = replace(asked.scope, since_ms=start - length, until_ms=start)
    try:
        before = charge_window(lake, replace(asked, scope=earlier))
    except InputError as error:
        return Unknown(f"the period before has nothing to compare with: {error.message}")
    found = figures.compare(now.charges, before.charges, (start - length, start))
    if (seen_ms := before.window.end_ms - before.window.start_ms) >= length:
        return found
    short = f"the period before was seen for {seen_ms / MS_PER_HOUR:,.1f} of {length / MS_PER_HOUR:,.1f} h only"
    return replace(found, words=(*found.words, short))


def report_of(statement: CostStatement) -> CostReport | Unknown:
    """A statement as a rate of spending."""
    dollars, rate = statement.dollars, statement.projection
    if isinstance(dollars, Unknown):
        return dollars
    if isinstance(rate, Unknown):
        return rate
    month = rate.monthly_usd
    if isinstance(month, Unknown):
        none: dict[Bucket, Decimal | Unknown] = dict.fromkeys(BUCKETS, month)
        return CostReport(rate.hourly_usd, month, rate.yearly_usd, rate.quarter, none, month)
    parts = _monthly(statement)
    whole = sum(parts.values(), Fraction(0))
    cents = rounded({b: usd(Fraction(month) * v / whole) if whole else ZERO for b, v in parts.items()})
    each = {b: v if isinstance(v, Unknown) else cents[b] for b, v in statement.buckets.items()}
    lost, waste = known_waste(dollars), sum((cents[b] for b in WASTE), ZERO)
    shown = lost if isinstance(lost, Unknown) else waste
    return CostReport(rate.hourly_usd, month, rate.yearly_usd, rate.quarter, each, shown)


def _monthly(statement: CostStatement) -> dict[Bucket, Fraction]:
    """The dollars of each bucket per month, each GPU's by itself."""
    rows = [(row.gpu_uuid, row.dollars.each()) for row in statement.by_gpu if not isinstance(row.dollars, Unknown)]
    totals = {b: statement.months.total((uuid, each[b]) for uuid, each in rows) for b in BUCKETS}
    return {b: Fraction(0) if isinstance(v, Unknown) else v for b, v in totals.items()}


def choice_of(paying: Paying) -> PriceChoice:
    """The prices that were given; by GPU or for all, of an instance, the user's own."""
    price = prices_of(one_of(price=paying.get("price"), prices=paying.get("prices")))
    return PriceChoice(price, paying.get("instance"), paying.get("region"), tuple(paying.get("own", ())))


def prices_of(price: Money | Mapping[str, Money] | None) -> Decimal | Mapping[str, Decimal] | None:
    """Dollars per GPU-hour, for all GPUs or by name, in decimals."""
    if price is None:
        return None
    if price == {}:
        raise InputError("the prices name no GPU", hint="give dollars per GPU-hour, for all GPUs or by name")
    return {name: money_of(p) for name, p in price.items()} if isinstance(price, Mapping) else money_of(price)


def energy_price(value: Money) -> Decimal:
    """Dollars per kWh."""
    if (found := money_of(value)) < 0:
        raise InputError(f"{value} is not a price of energy", hint="give dollars per kWh, 0 or more: 0.12")
    return found


def money_of(value: Money) -> Decimal:
    """A number as the decimal it is written as."""
    hint = "give dollars as a plain number, for example 2.50"
    if isinstance(value, str):
        return number_given(value, "", "price", hint)
    with suppress(InvalidOperation):
        if (found := Decimal(str(value))).is_finite():
            return found
    raise InputError(f"{value!r} is not a price", hint=hint)


def _assumptions(bill: Charged, asked: Asked) -> Iterator[str]:
    """Every choice that moves a dollar, one sentence each."""
    if bill.samples < FEW_SAMPLES * (devices := len(bill.devices)):
        few = f"only {bill.samples} samples of {count(devices, 'device')}"
        yield f"{few}: too few to tell what the GPUs did; shares and dollars are rough"
    yield from _paid_time(bill, asked)
    if bill.cut_by_share:
        yield "samples of an hour or day that the window cuts are gone: its part is taken in proportion to time"
    since, until, start, end = asked.scope.since_ms, asked.scope.until_ms, bill.window.start_ms, bill.window.end_ms
    if (since is not None and since < start) or (until is not None and until > end):
        reach = f"samples reach from {utc(start):%Y-%m-%d %H:%M} to {utc(end):%Y-%m-%d %H:%M} UTC"
        yield f"{reach}, less than was asked for: hourly figures are over that time"
    yield from (f"on the days of this window, {words}" for words in words_of(bill.joined))
    yield from _price_notes(bill)
    yield from _bucket_notes(bill)


def _paid_time(bill: Charged, asked: Asked) -> Iterator[str]:
    if asked.inventory is None:
        yield "no inventory was given: each GPU counts as paid for from its first to its last sample"
    else:
        rows, seen = asked.inventory.by_device, {d.name for d in bill.devices} | {d.gpu_uuid for d in bill.devices}
        outside = sorted(d.name for d in bill.devices if d.name not in rows and d.gpu_uuid not in rows)
        unseen = sorted(name for name in rows if name not in seen)
        yield f"paid time comes from {asked.inventory.path}"
        yield from use_notes(asked)
        if outside:
            yield f"{_some(outside)} not in the inventory: paid for from first to last sample"
        if unseen:
            yield f"{_some(unseen)} in the inventory but in no sample: all of that time is unobserved"
    if bill.unpaid_ms:
        yield f"{bill.unpaid_ms / MS_PER_HOUR:,.1f} h were seen while not paid for, and cost nothing here"
    if any(d.gpu_instance_id for d in bill.devices):
        yield "a MIG slice pays its share of the board; hours are hours of a whole board"


def _price_notes(bill: Charged) -> Iterator[str]:
    bases = Counter(c.price.basis for c in bill.charges if isinstance(c.price, Price))
    if bases["market"] or bases["instance"]:
        yield f"list prices: {source()}"
    if bases["yours"]:
        yield "rates of your own are used before list prices"
    if bases["market"]:
        yield "where no price was given, the market median of the GPU is used; its range is shown next to it"
    boards = {c.device.gpu_uuid for c in bill.charges if isinstance(c.price, Unknown)}
    if boards:
        has = "has" if len(boards) == 1 else "have"
        yield f"{count(len(boards), 'GPU')} {has} no known price: no dollar figure holds any of that time"


def _bucket_notes(bill: Charged) -> Iterator[str]:
    totals = {n: figures.summed(bill.charges, n) for n in ("unstated_ms", "by_counters_ms", *_NOTES)}
    if ms := totals["unstated_ms"]:
        yield f"{ms / MS_PER_HOUR:,.1f} h have samples without activity or utilization: counted as unobserved"
    for name, what in _NOTES.items():
        if ms := totals[name]:
            yield f"{ms / MS_PER_HOUR:,.1f} h {what}"
    if not totals["by_counters_ms"]:
        return
    # What had to be assumed to rate the pipes of each model.
    found: dict[str, dict[str, None]] = {}
    for model, precision in bill.worked:
        rates = ModelFacts(model).rates(precision)
        for note in rates.notes if isinstance(rates, PipeRates) else ():
            found.setdefault(note, {})[model or ""] = None
    for note, models in found.items():
        yield f"{', '.join(models)}: {note}"


def _some(names: list[str]) -> str:
    return f"{some(names, 2)} {'is' if len(names) == 1 else 'are'}"
