"""What do the GPUs needed cost, how is a shortfall met, and does the budget hold?"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.charges import Charge
from gpuledger.cost.money import ZERO, usd
from gpuledger.cost.pricing import Price
from gpuledger.cost.projections import MONTH_H
from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.series import DAY
from gpuledger.plan.capacity.statement import (
    Basis,
    GpuRange,
    Investment,
    InvestOption,
    MonthRange,
    MonthSpend,
    PoolPlan,
    Verdict,
)
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import MS_PER_HOUR, Unknown, count

NO_PRICE = Unknown("no price is given (price, gpu)")
NO_NEED = Unknown("no pool has a forecast")
NOT_THERE = Unknown("the number of GPUs there is not given (capacity)")
RENT_IS_FREE = Unknown("these GPUs are rented for $0")
NONE = UsdRange(ZERO, ZERO, ZERO)
ALL = "all GPUs"


@dataclass(frozen=True)
class Rates:
    """Dollars per GPU-hour by pool, and where they come from."""

    by_pool: Mapping[str, UsdRange | Unknown]
    words: tuple[str, ...] = ()
    dated: str | Unknown = NO_PRICE

    def of(self, pool: str) -> UsdRange | Unknown:
        """The rate of a pool."""
        return self.by_pool.get(pool, NO_PRICE)

    def middle(self, pool: str) -> Decimal | Unknown:
        """Its middle."""
        found = self.of(pool)
        return found if isinstance(found, Unknown) else found.middle_usd


def rates_of(charges: Iterable[Charge], pool_of: Callable[[Charge], str]) -> dict[str, UsdRange | Unknown]:
    """What a GPU-hour of each pool costs, by what was paid for it."""
    sums: dict[str, list[Fraction]] = {}
    for charge in charges:
        if charge.dollars is not None and charge.times.paid_ms:
            total = sums.setdefault(pool_of(charge), [Fraction(0)] * 4)
            parts = (charge.low_usd, charge.dollars.paid_usd, charge.high_usd)
            for i, amount in enumerate((*map(Fraction, parts), Fraction(charge.times.paid_ms, MS_PER_HOUR))):
                total[i] += amount
    return {name: UsdRange(*(usd(each / total[3]) for each in total[:3])) for name, total in sums.items()}


def rate_of_price(price: Price | Unknown) -> tuple[UsdRange | Unknown, str | Unknown]:
    """One price for all GPUs of a table, and its date."""
    if isinstance(price, Unknown):
        return price, price
    dated = price.newest if price.oldest == price.newest else f"{price.oldest} to {price.newest}"
    return UsdRange(price.low_usd, price.usd_per_h, price.high_usd), dated if price.newest and dated else "as given"


def times(rate: UsdRange | Unknown, gpus: GpuRange | int, hours: float) -> UsdRange | Unknown:
    """Dollars of some GPUs over some hours: the low end of both, the middle, the high end."""
    if isinstance(rate, Unknown):
        return rate
    each = gpus if isinstance(gpus, GpuRange) else GpuRange(gpus, gpus, gpus)
    length = Fraction(hours)
    ends = ((rate.low_usd, each.low), (rate.middle_usd, each.middle), (rate.high_usd, each.high))
    return UsdRange(*(usd(Fraction(price) * n * length) for price, n in ends))


def added(amounts: Iterable[UsdRange | Unknown]) -> UsdRange | Unknown:
    """The sum; unknown where a part is."""
    total = NONE
    for amount in amounts:
        if isinstance(amount, Unknown):
            return amount
        total += amount
    return total


def short_of(pool: PoolPlan, basis: Basis) -> GpuRange | Unknown:
    """GPUs that a pool lacks on a basis, never below zero."""
    need = pool.needs.get(basis, NO_NEED)
    if isinstance(need, Unknown):
        return need
    if pool.gpus_now is None:
        return NOT_THERE
    return GpuRange(*(max(0, end - pool.gpus_now) for end in (need.low, need.middle, need.high)))


def invest(
    pools: Sequence[PoolPlan], rates: Rates, buy_usd: Decimal | None, idle_usd: Decimal | Unknown
) -> Investment | Unknown:
    """How the shortfall is met: GPUs without work first, then better use, then more GPUs."""
    lacks = {p.name: short_of(p, p.basis) for p in pools}
    for lack in lacks.values():
        if isinstance(lack, Unknown):
            return lack
    short, idle, use = GpuRange(0, 0, 0), 0, 0
    surplus: list[UsdRange | Unknown] = []
    spare, rent, rent_all = 0, [], []
    for p in pools:
        lack, now = lacks[p.name], p.gpus_now or 0
        assert isinstance(lack, GpuRange)
        short += lack
        there = min(lack.middle, _less(p, p.basis, "working"))
        better = min(lack.middle - there, _less(p, "working", "realized"))
        idle, use = idle + there, use + better
        need = p.needs[p.basis]
        over = max(0, now - need.high) if isinstance(need, GpuRange) else 0
        spare += over
        surplus.append(times(rates.of(p.name), over, MONTH_H))
        rent.append(times(rates.of(p.name), lack.middle - there, MONTH_H))
        rent_all.append(times(rates.of(p.name), lack, MONTH_H))
    options = sorted(_options(short, idle, use, added(rent), added(rent_all), buy_usd), key=_cheapest_first)
    return Investment(short, idle, spare, added(surplus), idle_usd, tuple(options) if short.high else ())


def _cheapest_first(option: InvestOption) -> tuple[bool, Decimal]:
    cost = option.usd_per_month
    return (True, ZERO) if isinstance(cost, Unknown) else (False, cost.middle_usd)


def _less(pool: PoolPlan, more: Basis, fewer: Basis) -> int:
    """GPUs by which the need falls from one basis to another; none where either is unknown."""
    first, second = pool.needs.get(more), pool.needs.get(fewer)
    return max(0, first.middle - second.middle) if isinstance(first, GpuRange) and isinstance(second, GpuRange) else 0


def _options(
    short: GpuRange, idle: int, use: int, rest: UsdRange | Unknown, whole: UsdRange | Unknown, buy_usd: Decimal | None
) -> Iterable[InvestOption]:
    left = short.middle - idle
    if idle:
        words = f"{idle} of the {count(short.middle, 'GPU')} that are short are there already, held without work"
        yield InvestOption("use idle", idle, NONE, words)
    if use:
        words = f"{count(use, 'GPU')} more if all work reached the share of a GPU that the better GPUs reach"
        yield InvestOption("raise use", use, NONE, words)
    if left:
        yield InvestOption("rent", left, rest, ("the rest, " if idle else "") + "at what the pool's GPUs cost now")
    if idle:
        yield InvestOption("rent", short.middle, whole, "all of the shortfall rented, nothing else changed")
    if buy_usd is not None and left:
        yield _bought(buy_usd * left, left, rest)


def _bought(price_usd: Decimal, gpus: int, rent: UsdRange | Unknown) -> InvestOption:
    """A purchase, and when it has paid back against renting the same GPUs."""
    months = capacity_facts().purchase_months
    paid = usd(Fraction(price_usd) / months)
    back = _payback(price_usd, rent)
    if isinstance(back, Unknown):
        pays = f"when it pays back is unknown: {back.why}"
    elif back.middle > months:
        pays = f"does not pay back against renting within {months} months"
    else:
        ends = "" if back.low == back.high else f" ({back.low:.1f} to {back.high:.1f})"
        pays = f"pays back against renting after {back.middle:.1f}{ends} months"
    words = f"${price_usd:,.0f} over {months} months; {pays}, without power, space and people: plan tco adds those"
    return InvestOption("buy", gpus, UsdRange(paid, paid, paid), words, back)


def _payback(price_usd: Decimal, rent: UsdRange | Unknown) -> MonthRange | Unknown:
    if isinstance(rent, Unknown):
        return rent
    if not rent.low_usd:
        return RENT_IS_FREE
    return MonthRange(*(float(price_usd / each) for each in (rent.high_usd, rent.middle_usd, rent.low_usd)))


def spending(
    pools: Sequence[PoolPlan], rates: Rates, budgets: Mapping[str, Decimal]
) -> tuple[tuple[MonthSpend, ...], list[str]]:
    """Dollars month by month, and the budgets that match no pool."""
    names = {p.name for p in pools}
    out, lost = [], [name for name in budgets if name != ALL and name not in names]
    named = [(p.name, [p]) for p in pools if p.name in budgets and p.name != ALL]
    # One pool is all GPUs: its months are listed again only where all GPUs have a budget of their own.
    wanted = named if named and len(pools) == 1 and ALL not in budgets else [(ALL, list(pools)), *named]
    for name, members in wanted:
        for i, month in enumerate(members[0].months):
            hours = month.days * DAY
            now = added(times(rates.of(p.name), p.gpus_now or 0, hours) for p in members)
            known = all(p.gpus_now is not None for p in members)
            need = added(_need_usd(p, i, rates, hours) for p in members)
            year, number = map(int, month.name.split("-"))
            part = Fraction(month.days) / calendar.monthrange(year, number)[1]
            budget = usd(Fraction(budgets[name]) * part) if name in budgets else None
            middle = now if isinstance(now, Unknown) else now.middle_usd
            out.append(
                MonthSpend(month.name, month.days, name, middle if known else NOT_THERE, need, budget,
                           _verdict(need, budget))
            )  # fmt: skip
    return tuple(out), lost


def _need_usd(pool: PoolPlan, month: int, rates: Rates, hours: float) -> UsdRange | Unknown:
    """Dollars of the GPUs there, and of more where the need passes them."""
    need = pool.months[month].needs[pool.basis]
    if isinstance(need, Unknown):
        return need
    now = pool.gpus_now or 0
    return times(rates.of(pool.name), GpuRange(*(max(now, e) for e in (need.low, need.middle, need.high))), hours)


def _verdict(need: UsdRange | Unknown, budget: Decimal | None) -> Verdict:
    if budget is None:
        return "no budget"
    if isinstance(need, Unknown):
        return "unknown"
    return "over" if need.low_usd > budget else "within" if need.high_usd <= budget else "uncertain"
