"""What does owning cost, line by line, and what does renting cost? Pure arithmetic in Decimal.

one set      = GPUs x (purchase + server + network) x (1 + spares)
hardware     = one set; by the straight line, another one whenever the life of the last one is over
value(y)     straight line: from a set down to nothing over its life, or to the residual value that is given;
             declining: hardware x (1 - decline)^y
capital      = rate x sum over years of (value at its start + value at its end) / 2
power        = GPUs x (used x busy x board + unused x idle + host) kW x hours x PUE x $/kWh
colocation   = GPUs x (board + host) kW x $/kW-month x months
staff        = GPUs / 100 x jobs per 100 GPUs x $ x years
maintenance  = one set x % x years
cover        = GPUs x hours x used x failures x repair days / 365 x on-demand price
own          = hardware - residual value + all of these
on demand    = GPUs x hours x (used + unused x share paid all the same) x price
commitment   = whole terms: GPUs x hours of the terms x price, used or not; the rest of the years on demand
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal

YEAR_H, MONTH_H, YEAR_DAYS, PERCENT = Decimal(8760), Decimal(720), Decimal(365), Decimal(100)
ZERO, ONE, KILO = Decimal(0), Decimal(1), Decimal(1000)
Method = Literal["straight-line", "declining"]
Values = Mapping[str, Decimal]


@dataclass(frozen=True)
class Fleet:
    """What is compared: a number of GPUs over some years; `residual_pct`: the resale value that the user expects."""

    gpus: int
    years: int
    board_w: Decimal
    idle_w: Decimal
    method: Method = "straight-line"
    residual_pct: Decimal | None = None

    @property
    def hours(self) -> Decimal:
        """Hours of the horizon."""
        return self.years * YEAR_H

    @property
    def months(self) -> Decimal:
        """Months of 720 hours in the horizon."""
        return self.hours / MONTH_H

    @property
    def gpu_hours(self) -> Decimal:
        """GPU-hours of the horizon, used or not."""
        return self.gpus * self.hours


@dataclass(frozen=True)
class Own:
    """What owning costs over the horizon, line by line.

    `sets`: how many times the hardware is bought; `set_months`: after how many months it has to be bought again.
    """

    hardware_usd: Decimal
    residual_usd: Decimal
    capital_usd: Decimal
    power_usd: Decimal
    colocation_usd: Decimal
    staff_usd: Decimal
    maintenance_usd: Decimal
    cover_usd: Decimal
    energy_kwh: Decimal
    reserved_kw: Decimal
    sets: int = 1
    set_months: Decimal | None = None

    @property
    def set_usd(self) -> Decimal:
        """The hardware bought once."""
        return self.hardware_usd / self.sets

    @property
    def bought_again(self) -> tuple[Decimal, ...]:
        """The months in which the hardware is bought again."""
        return tuple(k * self.set_months for k in range(1, self.sets)) if self.set_months else ()

    @property
    def running_usd(self) -> Decimal:
        """Everything but the hardware itself."""
        return (
            self.capital_usd + self.power_usd + self.colocation_usd + self.staff_usd + self.maintenance_usd
            + self.cover_usd
        )  # fmt: skip

    @property
    def total_usd(self) -> Decimal:
        """Hardware less what it is still worth, and all else."""
        return self.hardware_usd - self.residual_usd + self.running_usd


def used(v: Values) -> Decimal:
    """The share of all hours in which the GPUs are used."""
    return v["utilization_pct"] / PERCENT


def hardware_usd(fleet: Fleet, v: Values) -> Decimal:
    """What one set of the hardware costs."""
    one = v["purchase_usd"] + v["server_usd"] + v["network_usd"]
    return fleet.gpus * one * (ONE + v["spares_pct"] / PERCENT)


def value_path(fleet: Fleet, v: Values, hardware: Decimal) -> list[Decimal]:
    """What the hardware is worth at the end of each year, from year 0 on, where it is bought once."""
    years = fleet.years
    if fleet.residual_pct is not None:
        end = hardware * fleet.residual_pct / PERCENT
    elif fleet.method == "declining":
        return [hardware * (ONE - v["decline_pct"] / PERCENT) ** y for y in range(years + 1)]
    else:
        end = hardware * (ONE - years / v["life_years"])
    return [hardware - (hardware - end) * y / years for y in range(years + 1)]


def life_years(fleet: Fleet, v: Values) -> Decimal | None:
    """After how many years the hardware has to be bought again; None where its value is given for all the years."""
    return v["life_years"] if fleet.residual_pct is None and fleet.method == "straight-line" else None


def _worth(fleet: Fleet, v: Values, one: Decimal) -> tuple[int, Decimal, Decimal]:
    """How many times the hardware is bought, what is left of it at the end, and its value added up over the years."""
    life, years = life_years(fleet, v), Decimal(fleet.years)
    if life is None or years <= life:
        values = value_path(fleet, v, one)
        return 1, values[-1], sum(((a + b) / 2 for a, b in pairwise(values)), ZERO)
    sets, whole = math.ceil(years / life), years // life
    rest = years - whole * life
    return sets, one * (sets - years / life), one * (whole * life / 2 + rest - rest * rest / (2 * life))


def kw_per_gpu(fleet: Fleet, v: Values) -> Decimal:
    """Average power of a GPU with its share of the server."""
    busy = used(v) * v["busy_pct"] / PERCENT * fleet.board_w
    return (busy + (ONE - used(v)) * fleet.idle_w + v["host_w"]) / KILO


def own(fleet: Fleet, v: Values) -> Own:
    """What owning costs."""
    one = hardware_usd(fleet, v)
    sets, residual, held = _worth(fleet, v, one)
    life = life_years(fleet, v)
    energy = fleet.gpus * kw_per_gpu(fleet, v) * fleet.hours * v["pue"]
    reserved = fleet.gpus * (fleet.board_w + v["host_w"]) / KILO
    lost = v["failures_pct_year"] / PERCENT * v["repair_days"] / YEAR_DAYS
    return Own(
        hardware_usd=sets * one,
        residual_usd=residual,
        capital_usd=v["capital_pct"] / PERCENT * held,
        power_usd=energy * v["usd_per_kwh"],
        colocation_usd=reserved * (v["colo_usd_per_kw_month"] + v["cooling_usd_per_kw_month"]) * fleet.months,
        staff_usd=fleet.gpus / PERCENT * v["fte_per_hundred_gpus"] * v["usd_per_fte_year"] * fleet.years,
        maintenance_usd=one * v["maintenance_pct"] / PERCENT * fleet.years,
        cover_usd=fleet.gpu_hours * used(v) * lost * v["rent_usd"],
        energy_kwh=energy,
        reserved_kw=reserved,
        sets=sets,
        set_months=None if life is None else life * YEAR_H / MONTH_H,
    )


def on_demand_usd(fleet: Fleet, v: Values, usd_per_gpu_h: Decimal, years: int | None = None) -> Decimal:
    """What renting by the hour costs, for all years or for some of them."""
    hours = fleet.gpus * YEAR_H * (fleet.years if years is None else years)
    return hours * (used(v) + (ONE - used(v)) * v["paid_idle_pct"] / PERCENT) * usd_per_gpu_h


def committed_usd(fleet: Fleet, v: Values, usd_per_gpu_h: Decimal, term_years: int) -> Decimal:
    """What commitments cost: as many whole terms as fit, then on demand."""
    committed = fleet.years // term_years * term_years
    rest = on_demand_usd(fleet, v, v["rent_usd"], fleet.years - committed)
    return fleet.gpus * YEAR_H * committed * usd_per_gpu_h + rest
