"""How does a recorded fleet become a capacity plan?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Literal

from gpuledger.cost.build import Terms, statement_and_bill
from gpuledger.cost.charges import Charge
from gpuledger.cost.money import usd
from gpuledger.cost.statement import CostStatement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.owners import space_name
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.capacity.build import Context, PoolDemand, plan
from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.ledger_demand import NO_CLUSTER, FleetHours, PoolHours, read_fleet_hours
from gpuledger.plan.capacity.money import Rates, rates_of
from gpuledger.plan.capacity.need import Asked
from gpuledger.plan.capacity.rightsize import achievable, of_namespaces, of_pods
from gpuledger.plan.capacity.series import Series
from gpuledger.plan.capacity.statement import Basis, CapacityPlan
from gpuledger.units import Unknown, count

PoolKind = Literal["cluster", "namespace"]
NO_DATE = Unknown("no price of this plan has a date")
Tick = Callable[[int], None]


def plan_from_lake(
    lake: Lake,
    scope: Scope,
    asked: Asked,
    terms: Terms,
    *,
    by: PoolKind = "cluster",
    achievable_ratio: float | None = None,
    budgets: Mapping[str, Decimal],
    buy_usd: Decimal | None = None,
    today_ms: int | None = None,
    stage: Callable[[str, int | None], Tick] = lambda _name, _total: lambda _n: None,
) -> CapacityPlan:
    """The plan of a lake whose ledger is posted. Dollars are those of the cost statement of the same window."""
    calibration = load_calibration(lake)
    tick = stage("reading demand", 3)
    hours = read_fleet_hours(lake, scope, by=by, calibration=calibration)
    tick(1)
    spaces = hours if by == "namespace" else read_fleet_hours(lake, scope, by="namespace", calibration=calibration)
    tick(1)
    known: Terms = {**terms, "calibration": calibration}
    cost, bill = statement_and_bill(lake, scope, **known)
    tick(1)
    pool_of = _by_cluster if by == "cluster" else _by_namespace
    rates = Rates(rates_of(bill.charges, pool_of), tuple(p.words for p in cost.prices), _dated(cost))
    by_board = Rates(rates_of(bill.charges, lambda charge: charge.device.gpu_uuid))

    def price_of(board: str) -> Decimal | Unknown:
        """The price of a GPU that was seen for long enough to speak of a month."""
        month = cost.months.of(board)
        return month if isinstance(month, Unknown) else by_board.middle(board)

    demands = [_demand(pool, hours, by, achievable_ratio) for pool in hours.pools]
    sized = (
        *of_namespaces(spaces.pools, spaces.pods, asked, price_of),
        *of_pods(spaces.pods, asked, price_of),
    )
    context = Context(
        source=str(lake.root),
        rates=rates,
        budgets=budgets,
        buy_usd=buy_usd,
        idle_usd=_idle_usd(cost),
        rightsize=sized,
        today_ms=today_ms,
        notes=tuple(_notes(hours)),
        assumptions=(*_assumed(achievable_ratio), *cost.assumptions),
    )
    return plan(demands, asked, context, stage("forecasting", len(demands)))


def _by_cluster(charge: Charge) -> str:
    return charge.cluster or NO_CLUSTER


def _by_namespace(charge: Charge) -> str:
    return space_name(charge.namespace, owned=charge.owned)


def _demand(pool: PoolHours, hours: FleetHours, by: PoolKind, achievable_ratio: float | None) -> PoolDemand:
    """One pool on every basis; the realized one is unknown where too little of the busy time can be rated."""
    mine = [u for u in hours.pods if ((u.cluster or NO_CLUSTER) if by == "cluster" else u.space) == pool.name]
    shares = achievable(mine, achievable_ratio)
    realized: Series | Unknown = pool.productive
    part = pool.unrated_h / pool.busy_h if pool.busy_h else 0.0
    if part >= capacity_facts().unrated_below_ratio:
        realized = shares = Unknown(f"{100 * part:.0f} % of the busy time cannot be rated")
    elif isinstance(shares, Unknown):
        realized = shares
    series: dict[Basis, Series | Unknown] = {"held": pool.held, "working": pool.working, "realized": realized}
    unrated = pool.busy_or_unrated if pool.unrated_h else None
    return PoolDemand(pool.name, "held", series, pool.gpus_now, unrated, shares, pool.idle_gpus)


def _dated(cost: CostStatement) -> str | Unknown:
    dates = [d for p in cost.prices for d in (p.oldest, p.newest) if d]
    if not dates:
        return "as given" if cost.prices else NO_DATE
    return min(dates) if min(dates) == max(dates) else f"{min(dates)} to {max(dates)}"


def _idle_usd(cost: CostStatement) -> Decimal | Unknown:
    """What idle and idle-held time costs per month, as in the audit."""
    if isinstance(cost.dollars, Unknown):
        return cost.dollars
    rows = [(row.gpu_uuid, row.dollars) for row in cost.by_gpu if not isinstance(row.dollars, Unknown)]
    month = cost.months.total((uuid, paid.idle_usd + paid.idle_held_usd) for uuid, paid in rows)
    return month if isinstance(month, Unknown) else usd(month)


def _notes(hours: FleetHours) -> Iterator[str]:
    if hours.folded_days:
        yield f"{count(hours.folded_days, 'day')} were compacted and have no hours any more: gaps in the demand"
    if hours.unshared_h:
        yield f"{hours.unshared_h:,.0f} h are of MIG slices whose share of the board is not recorded: in no demand"


def _assumed(achievable_ratio: float | None) -> Iterator[str]:
    facts = capacity_facts()
    yield "demand that waited for a GPU is not in the ledger: where a pool is always full, the need is a lower bound"
    if achievable_ratio is not None:
        yield f"a GPU at work can put {100 * achievable_ratio:g} % of its time to use, as set"
    else:
        yield (
            f"realized: the same work if all GPUs at work put the share of their time to use that the upper quarter "
            f"(quantile {facts.achievable_quantile:g}) of the pool's GPUs reach; its range: unrated time used or not"
        )
    yield "the GPUs that are short are priced as the pool's GPUs are now"
