"""How is a comparison of owning and renting put into words: headline, lines of the owning cost, assumptions?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu
from gpuledger.encode import as_text
from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.plan.tco.inputs import Basis, Input
from gpuledger.plan.tco.model import Fleet, Own, Values, kw_per_gpu
from gpuledger.plan.tco.statement import OWN, Line, Path
from gpuledger.units import Unknown, count

OLD_YEARS = 2
NEXT_TO_AUDIT = (
    "Next to the audit: its advice to commit prices the same change as the commitments here, so do not add the two. "
    "Its other savings mean fewer or less used GPUs: compare again after them."
)
CALLED = {
    "one_year_usd": ("1-year commitment", "give one_year_usd ($ per GPU-hour) or one_year_discount_pct"),
    "three_year_usd": ("3-year commitment", "give three_year_usd ($ per GPU-hour) or three_year_discount_pct"),
    "spot_usd": ("spot", "a GPU whose spot price is listed"),
}


def dollars(value: Decimal) -> str:
    """Dollars without cents; millions with two places."""
    return f"${value / 1_000_000:,.2f} million" if abs(value) >= 1_000_000 else f"${value:,.0f}"


def number(value: Decimal) -> str:
    """A figure as it was written, without trailing zeros."""
    return as_text(value.normalize() + 0)


def headline(gpu: Gpu, fleet: Fleet, order: Sequence[Path], owning: Own, turned: tuple[int, int]) -> str:
    """Who is cheapest, by how much, how sure that is, and from when on owning pays.

    `turned`: how many inputs alone can turn the answer, of how many.
    """
    best = order[0]
    what = f"{fleet.gpus} x {gpu.name} for {count(fleet.years, 'year')}"
    own = next(p for p in order if p.name == OWN)
    rent = next((p for p in order if p.name == "on-demand"), None)
    if rent is None or isinstance(rent.usd, Unknown) or isinstance(own.usd, Unknown):
        return f"{what}: owning costs {dollars(_middle(own))}; nothing is known to compare it with."
    gap = rent.usd.middle_usd - own.usd.middle_usd
    verdict = "less" if gap >= 0 else "more"
    text = (
        f"{what}: owning costs {_between(own.usd)}, on demand {_between(rent.usd)}. "
        f"As planned, owning costs {dollars(abs(gap))} {verdict}; {_sure(own.usd, rent.usd, *turned)}."
    )
    if owning.sets > 1:
        text += f" The hardware is bought {owning.sets} times, as its life is over before the years are."
    if best.name not in {OWN, "on-demand"}:
        text += f" Cheapest is {best.name}: {dollars(_middle(best))}."
    return f"{text} {_break_even(fleet, rent)}"


def _between(value: UsdRange) -> str:
    """Dollars with their range, where they have one."""
    low, high = dollars(value.low_usd), dollars(value.high_usd)
    return dollars(value.middle_usd) + (f" ({low} to {high})" if low != high else "")


def _sure(own: UsdRange, rent: UsdRange, turning: int, inputs: int) -> str:
    """How far the verdict holds."""
    overlap = own.low_usd <= rent.high_usd and rent.low_usd <= own.high_usd and own.low_usd != own.high_usd
    if turning:
        can = "can each" if turning > 1 else "can"
        return f"{'the ranges overlap, and ' if overlap else ''}{turning} of {inputs} inputs {can} turn that alone"
    return f"{'the ranges overlap, but ' if overlap else ''}none of the {inputs} inputs turns that alone"


def purchase_words(one: Input, today: dt.date) -> str:
    """The purchase price with its range and date."""
    if one.basis is Basis.GIVEN:
        return f"your {_money(one.middle)} per GPU"
    between = f" ({_money(one.low)} to {_money(one.high)})" if one.ranged else ""
    return f"{_money(one.middle)} per GPU{between}, of {one.as_of}.{_old(one, today)}".rstrip(".")


def _middle(path: Path) -> Decimal:
    return Decimal(0) if isinstance(path.usd, Unknown) else path.usd.middle_usd


def _break_even(fleet: Fleet, rent: Path) -> str:
    month, share = rent.break_even_month, rent.break_even_utilization_pct
    if not isinstance(month, Decimal):
        when = "never breaks even"
    elif month > fleet.months:
        when = f"would take {month:.0f} months to break even, and {fleet.months:.1f} are compared"
    else:
        when = f"breaks even in month {month:.1f}"
    above = f"owning costs less above {share:.0f} % utilization" if isinstance(share, Decimal) else _why(share)
    return f"Before resale its cash {when}; {above}."


def _why(share: Unknown | None) -> str:
    return share.why if share is not None else ""


def lines(fleet: Fleet, v: Values, owning: Own) -> list[Line]:
    """What owning costs line by line, each with its own arithmetic."""
    one = v["purchase_usd"] + v["server_usd"] + v["network_usd"]
    held = _money(owning.capital_usd / (v["capital_pct"] / 100) / fleet.years) if v["capital_pct"] else "$0"
    kw = kw_per_gpu(fleet, v)
    return [
        Line("Hardware", owning.hardware_usd,
             f"{fleet.gpus} GPUs x {_money(one)} x (1 + {number(v['spares_pct'])} % spares){_again(owning, v)}"),
        Line("Residual value", -owning.residual_usd, _residual(fleet, v, owning)),
        Line("Capital", owning.capital_usd,
             f"{number(v['capital_pct'])} % x {held} average book value x {count(fleet.years, 'year')}"),
        Line("Power", owning.power_usd,
             f"{fleet.gpus} GPUs x {kw:.4f} kW x {fleet.hours:,.0f} h x PUE {number(v['pue'])} x "
             f"${number(v['usd_per_kwh'])}/kWh"),
        Line("Colocation", owning.colocation_usd,
             f"{number(owning.reserved_kw)} kW x ${number(v['colo_usd_per_kw_month'] + v['cooling_usd_per_kw_month'])}"
             f"/kW x {fleet.months:,.1f} months"),
        Line("Staff", owning.staff_usd,
             f"{fleet.gpus} / 100 x {number(v['fte_per_hundred_gpus'])} jobs x {_money(v['usd_per_fte_year'])} x "
             f"{count(fleet.years, 'year')}"),
        Line("Maintenance", owning.maintenance_usd,
             f"{number(v['maintenance_pct'])} % of one set x {count(fleet.years, 'year')}"),
        Line("Cover for failed GPUs", owning.cover_usd,
             f"{fleet.gpu_hours:,.0f} GPU-h x {number(v['utilization_pct'])} % x {number(v['failures_pct_year'])} % "
             f"x {number(v['repair_days'])} / 365 days x ${number(v['rent_usd'])}"),
    ]  # fmt: skip


def _money(value: Decimal) -> str:
    """Dollars with the cents they have."""
    return f"${value:,.2f}".removesuffix(".00")


def _again(owning: Own, v: Values) -> str:
    return f" x {owning.sets} times, once every {number(v['life_years'])} years" if owning.sets > 1 else ""


def _residual(fleet: Fleet, v: Values, owning: Own) -> str:
    if fleet.residual_pct is not None:
        return f"{number(fleet.residual_pct)} % of hardware, given"
    if fleet.method == "declining":
        return f"hardware x (1 - {number(v['decline_pct'])} %)^{fleet.years}"
    return f"one set x ({owning.sets} - {fleet.years} / {number(v['life_years'])} years)"


def refusals(missing: Mapping[str, Unknown]) -> Iterator[Refused]:
    """Paths that could not be priced."""
    for name, why in missing.items():
        what, instead = CALLED[name]
        yield Refused(what, why.why, instead)


def assumptions(fleet: Fleet, inputs: Mapping[str, Input], vary_pct: Decimal, today: dt.date) -> list[str]:
    """What the comparison rests on: its rules, then every figure that was not given."""
    out = [
        "A month is 720 h, a year 8,760 h. No inflation, taxes or change of prices over the years.",
        "Cumulative cash has hardware at the start and no resale; the totals subtract the residual value at the end.",
        "On demand pays for used hours (and the share of unused ones that is set); commitments pay for every hour.",
        "The range of owning has every input except utilization at its favorable or unfavorable end at once.",
        f"In the tornado, inputs without a range move by {number(vary_pct)} % to both sides.",
    ]
    if fleet.residual_pct is None and fleet.method == "straight-line" and fleet.years > inputs["life_years"].middle:
        life = number(inputs["life_years"].middle)
        out.append(f"The hardware is bought again at the same price every {life} years, when its life is over.")
    if fleet.years > 3:
        out.append("Years after the last whole 3-year term are rented on demand.")
    used_now = _not_used(fleet)
    for one in inputs.values():
        if one.name in used_now or one.basis is Basis.GIVEN:
            continue
        between = f" ({number(one.low)} to {number(one.high)})" if one.ranged else ""
        what = f"{one.name} {number(one.middle)}{between} {one.unit}".rstrip()
        if one.basis is Basis.ASSUMED:
            out.append(f"Assumed: {what}, {one.words}.")
        else:
            dated = f", {one.as_of}" if one.as_of else ""
            out.append(f"{what}, {one.words}: {one.source}{dated}.{_old(one, today)}")
    return out


def _not_used(fleet: Fleet) -> set[str]:
    """Inputs that the chosen depreciation does not use."""
    if fleet.residual_pct is not None:
        return {"life_years", "decline_pct"}
    return {"life_years"} if fleet.method == "declining" else {"decline_pct"}


def _old(one: Input, today: dt.date) -> str:
    year = one.as_of[:4]
    old = year.isdigit() and today.year - int(year) >= OLD_YEARS
    return " This figure is old: give your own." if old and one.name == "purchase_usd" else ""
