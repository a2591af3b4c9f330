"""How does a capacity plan come together: demand, forecast, need, right-sizing, dollars?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.errors import InputError
from gpuledger.lake.engines.mapping import mapped
from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.methods import has_smoothing
from gpuledger.plan.capacity.money import NOT_THERE, Rates, invest, spending
from gpuledger.plan.capacity.need import Asked, Load, day_points, month_needs, most_of, runs_out, tested_of
from gpuledger.plan.capacity.outlook import Outlook, look_ahead
from gpuledger.plan.capacity.series import DAY, WEEK, Series, quantile, usable
from gpuledger.plan.capacity.statement import Basis, CapacityPlan, GpuRange, Needs, PoolPlan, RightSize
from gpuledger.plan.capacity.words import headline, is_old
from gpuledger.plan.outcome import Refused
from gpuledger.units import MS_PER_DAY, Unknown, count, utc

MOST_WEEKS = 104
MOST_GAPS = 3  # pools whose gaps are listed
NOT_MEASURED = Unknown("a table of demand does not show what GPUs put to use")


@dataclass(frozen=True, eq=False)
class PoolDemand:
    """What a pool is planned from: its series by basis, and GPUs now; `unrated`: with unrated time as put to use.

    `shares`: the part of a GPU that can be used on the realized basis, without and with unrated time.
    """

    name: str
    main: Basis
    series: Mapping[Basis, Series | Unknown]
    gpus_now: int | None
    unrated: Series | None = None
    shares: tuple[float, float] | Unknown = NOT_MEASURED
    idle_gpus: float | Unknown = NOT_MEASURED


@dataclass(frozen=True)
class Context:
    """What a plan has besides demand: where it comes from, prices, budgets, right-sizing, and what was noted."""

    source: str
    rates: Rates
    budgets: Mapping[str, Decimal]
    buy_usd: Decimal | None = None
    idle_usd: Decimal | Unknown = NOT_MEASURED
    rightsize: tuple[RightSize, ...] = ()
    today_ms: int | None = None
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


def asked_of(weeks: int, cover_pct: float, target_pct: float, growth_pct: float | None) -> Asked:
    """The horizon and the shares, checked."""
    if not 1 <= weeks <= MOST_WEEKS:
        raise InputError(f"weeks={weeks} is not a horizon", hint=f"give 1 to {MOST_WEEKS} weeks")
    if not 50 <= cover_pct <= 100:
        raise InputError(f"cover={cover_pct:g} is not a share of hours to cover", hint="give 50 to 100 percent, as 95")
    if not 10 <= target_pct <= 100:
        raise InputError(f"target={target_pct:g} is not a share of GPUs", hint="give 10 to 100 percent, as 90")
    if growth_pct is not None and not -50 <= growth_pct <= 100:
        raise InputError(f"growth={growth_pct:g} is not a growth per month", hint="give -50 to 100 percent, as 5")
    growth = None if growth_pct is None else growth_pct / 100
    return Asked(weeks * WEEK, cover_pct / 100, target_pct / 100, growth)


def plan(
    demands: Sequence[PoolDemand], asked: Asked, context: Context, tick: Callable[[int], None] = lambda _n: None
) -> CapacityPlan:
    """The plan for some pools; those without enough history are refused, and all of them is an error."""
    pools: list[PoolPlan] = []
    refused: list[Refused] = []
    for demand, made in zip(demands, mapped(_pool, (asked, context.rates), demands, tick), strict=True):
        if isinstance(made, Unknown):
            refused.append(Refused(demand.name, made.why, "record it for longer, or give a longer window"))
        else:
            pools.append(made)
            refused += _refused_bases(made)
    if not pools:
        first = refused[0]
        raise InputError(f"no forecast for {first.what}: {first.why}", hint=first.instead)
    spent, lost = spending(pools, context.rates, context.budgets)
    refused += [Refused(f"budget of {n}", "no pool of this plan has that name", "ask by namespace") for n in lost]
    investment = invest(pools, context.rates, context.buy_usd, context.idle_usd)
    if context.buy_usd is None and not isinstance(investment, Unknown) and investment.short.middle:
        refused.append(
            Refused("buying the GPUs that are short", "no purchase price is given", "give the price of a GPU (buy)")
        )
    needs, main = _together(pools), pools[0].basis
    now = None if any(p.gpus_now is None for p in pools) else sum(p.gpus_now or 0 for p in pools)
    dates = [d.series[d.main] for d in demands]
    known = [s for s in dates if not isinstance(s, Unknown)]
    end_ms = max(s.end_ms for s in known)
    age = None if context.today_ms is None else max(0, (context.today_ms - end_ms) // MS_PER_DAY)
    made_plan = CapacityPlan(
        headline="",
        source=context.source,
        start_ms=min(s.start_ms for s in known),
        end_ms=end_ms,
        age_days=age,
        weeks=asked.hours // WEEK,
        cover_pct=100 * asked.cover,
        target_pct=100 * asked.target,
        growth_pct_per_month=None if asked.growth_ratio is None else 100 * asked.growth_ratio,
        chosen=main,
        gpus_now=now,
        needs=needs,
        pools=tuple(sorted(pools, key=_largest_first)),
        rightsize=context.rightsize,
        investment=investment,
        spending=spent,
        prices_dated=context.rates.dated,
        price_words=context.rates.words,
        next_to_audit=capacity_facts().next_to_audit,
        runners_up=tuple(b for b in needs if b != main),
        refused=tuple(refused),
        notes=(*context.notes, *_old(end_ms, age), *_gaps(pools)),
        assumptions=(*_assumptions(pools, asked), *context.assumptions),
    )
    return replace(made_plan, headline=headline(made_plan))


def _pool(common: tuple[Asked, Rates], demand: PoolDemand) -> PoolPlan | Unknown:
    """The forecast and the need of one pool; Unknown where its main series is too short."""
    asked, rates = common
    loads: dict[Basis, Load | Unknown] = {}
    for basis, series in demand.series.items():
        loads[basis] = _load(demand, basis, series, asked)
    main = loads[demand.main]
    if isinstance(main, Unknown):
        return main
    start = main.outlook.series.end_ms
    months = month_needs(loads, start, asked)
    seen = {b: s if isinstance(s, Unknown) else quantile(s.values, asked.cover) for b, s in demand.series.items()}
    out = NOT_THERE if demand.gpus_now is None else runs_out(main, demand.gpus_now, start, asked)
    return PoolPlan(
        name=demand.name,
        basis=demand.main,
        gpus_now=demand.gpus_now,
        demand_now=seen,
        idle_gpus=demand.idle_gpus,
        achievable_pct=demand.shares
        if isinstance(demand.shares, Unknown)
        else (100 * demand.shares[0], 100 * demand.shares[1]),
        needs=most_of(months),
        months=months,
        runs_out=out,
        tested={b: tested_of(load.outlook) for b, load in loads.items() if not isinstance(load, Unknown)},
        days_of=_shown(loads, main).basis,
        days=day_points(_shown(loads, main), asked),
        usd_per_gpu_h=rates.of(demand.name),
    )


def _shown(loads: Mapping[Basis, Load | Unknown], main: Load) -> Load:
    """The basis a chart shows: GPUs at work where they are known, for what owners hold hardly moves."""
    found = loads.get("working", main)
    return main if isinstance(found, Unknown) else found


def _load(demand: PoolDemand, basis: Basis, series: Series | Unknown, asked: Asked) -> Load | Unknown:
    if isinstance(series, Unknown):
        return series
    looked = _ahead(series, asked)
    if isinstance(looked, Unknown) or basis != "realized":
        return looked if isinstance(looked, Unknown) else Load(basis, looked)
    if isinstance(demand.shares, Unknown):
        return demand.shares
    upper = _ahead(demand.unrated, asked) if demand.unrated is not None else looked
    if isinstance(upper, Unknown):
        return upper
    return Load(basis, looked, demand.shares[0], upper, demand.shares[1])


def _ahead(series: Series, asked: Asked) -> Outlook | Unknown:
    found = usable(series)
    return found if isinstance(found, Unknown) else look_ahead(found, asked.hours, asked.growth_ratio)


def _together(pools: Sequence[PoolPlan]) -> Needs:
    """The sum over pools; unknown where one of them is."""
    out: dict[Basis, GpuRange | Unknown] = {}
    for basis in pools[0].needs:
        total: GpuRange | Unknown = GpuRange(0, 0, 0)
        for need in (p.needs[basis] for p in pools):
            total = need if isinstance(need, Unknown) else total if isinstance(total, Unknown) else total + need
        out[basis] = total
    return out


def _refused_bases(pool: PoolPlan) -> Iterator[Refused]:
    for basis, need in pool.needs.items():
        if isinstance(need, Unknown):
            instead = "set the share that can be reached (achievable)" if basis == "realized" else ""
            yield Refused(f"{pool.name} on the {basis} basis", need.why, instead)


def _old(end_ms: int, age_days: int | None) -> Iterator[str]:
    if is_old(age_days):
        ended = f"The history ended on {utc(end_ms):%Y-%m-%d}, {count(age_days or 0, 'day')} ago"
        yield f'{ended}: the plan starts there, and "now" is that day'


def _gaps(pools: Sequence[PoolPlan]) -> Iterator[str]:
    """How many hours are missing in which pools, the most first."""
    found = []
    for pool in pools:
        test = pool.tested[pool.basis]
        hours = round(test.history_days * DAY)
        if missing := round(test.gaps_pct / 100 * hours):
            found.append((missing, hours, pool.name))
    found.sort(key=lambda gap: (-gap[0], gap[2]))
    for missing, hours, name in found[:MOST_GAPS]:
        yield f"{name}: {missing:,} of {count(hours, 'hour')} were not observed: gaps, not zero"
    if found[MOST_GAPS:]:
        yield f"{count(len(found) - MOST_GAPS, 'more pool has', 'more pools have')} gaps"


def _largest_first(pool: PoolPlan) -> tuple[int, str]:
    need = pool.needs[pool.basis]
    return (-need.middle if isinstance(need, GpuRange) else 0), pool.name


def _assumptions(pools: Sequence[PoolPlan], asked: Asked) -> Iterator[str]:
    facts = capacity_facts()
    tested = [t for p in pools for t in p.tested.values()]
    ahead = max(t.ahead_days for t in tested)
    yield (
        f"need: the demand that is enough for {100 * asked.cover:g} % of the hours of a month, over "
        f"{100 * asked.target:g} % of the GPUs: the rest is room to start the next job"
    )
    if asked.growth_ratio is not None:
        yield f"demand grows by {100 * asked.growth_ratio:g} % per month of 30 days, as given, not by its own trend"
    else:
        yield "a trend is carried ahead no further than twice the length of the history"
    yield (
        f"the range holds {100 * facts.range_ratio:g} % of the outcomes up to {count(round(ahead), 'day')} ahead, as "
        "far as the back-test looked; beyond, it grows with the square root of time"
    )
    if min(t.history_days for t in tested) <= facts.short_history_days:
        yield (
            f"the history is {min(t.history_days for t in tested):.0f} days: ranges are widened by "
            f"{100 * (facts.short_history_factor - 1):.0f} %"
            + ("" if all(t.season == "week" for t in tested) else ", and only the time of day counts as a season")
        )
    if not has_smoothing():
        yield 'without exponential smoothing, which needs more parts: pip install "gpuledger[plan]"'
    if any(t.gaps_pct for t in tested):
        yield "hours without observation are gaps: filled in to fit, never counted as zero, never scored"
    yield "ranges of pools are added up as if all pools were high or low at the same time"
    yield f"limits of the plan: {facts.source} (plan/data/capacity.toml)"
