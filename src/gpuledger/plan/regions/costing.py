"""What does the job cost in one region, and how much carbon does it cause there?

Dollars: whole instances x hours, the data that has to be moved there, and its storage. Carbon: board power x load x
hours x PUE of the cloud x carbon intensity of the grid.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import aged
from gpuledger.catalog.regions import Place
from gpuledger.catalog.regions.grid import g_per_kwh, pue_of
from gpuledger.catalog.regions.moving import ZERO, Money, month_usd, moving_price, path_between
from gpuledger.plan.market import MarketOption
from gpuledger.plan.outcome import UsdRange
from gpuledger.plan.regions.asked import Asked
from gpuledger.plan.regions.statement import RegionOption
from gpuledger.units import Range, Unknown

FREE: Money = (ZERO, ZERO, ZERO)


def moved(asked: Asked, cloud: str, region: str, place: Place | Unknown) -> Money | Unknown:
    """Dollars for bringing the data there, over the whole job: low, middle, high."""
    source, times = asked.data_at, asked.months if asked.moves == "monthly" else 1
    if not asked.billed_gb:
        return FREE
    if source is not None and (source.cloud, source.region) == (cloud, region):
        return FREE
    if asked.moving_usd_per_gb is not None:
        whole = asked.billed_gb * asked.moving_usd_per_gb * times
        return whole, whole, whole
    if source is None:
        return FREE  # from outside the clouds, and coming in is free
    continent = None if isinstance(place, Unknown) else place.country.continent
    price = moving_price(source, path_between(source, cloud, continent))
    if isinstance(price, Unknown):
        return price
    low, middle, high = month_usd(price.tiers, asked.billed_gb)
    return low * times, middle * times, high * times


def energy_kwh(gpu: Gpu, count: int, hours: Decimal, load: float, pue: float) -> float:
    """Energy of the GPU boards with their share of the building."""
    return gpu.power_w / 1000 * count * float(hours) * load * pue


def carbon_kg(asked: Asked, gpu: Gpu, cloud: str, grid: Range | Unknown) -> Range | Unknown:
    """Kilograms of CO2e of the job: the low end has the low load, PUE and intensity, the high end the high ones."""
    if isinstance(grid, Unknown):
        return grid
    pue, _ = pue_of(cloud)
    ends = zip(asked.load, (pue.low, pue.middle, pue.high), (grid.low, grid.middle, grid.high), strict=True)
    low, middle, high = (energy_kwh(gpu, asked.count, asked.hours, load, p) * g / 1000 for load, p, g in ends)
    return Range(low, middle, high, grid.evidence, grid.note)


def costed(
    asked: Asked, option: MarketOption, place: Place | Unknown, data: Money, today: dt.date
) -> RegionOption | None:
    """The job on one instance type of a region; None where its price is unknown."""
    price, high = option.usd_per_instance_h, option.high_usd_per_gpu_h
    if isinstance(price, Unknown) or isinstance(high, Unknown):
        return None
    instances = -(-asked.count // option.gpus)
    compute = price * instances * asked.hours
    most = high * option.gpus * instances * asked.hours
    storage = asked.billed_gb * asked.storage_usd_per_gb_month * asked.hours / 720
    grid, (pue, own) = g_per_kwh(place), pue_of(option.cloud)
    listed = option.availability
    low_usd, middle_usd, high_usd = (part + storage for part in data)
    return RegionOption(
        cloud=option.cloud,
        region=option.region,
        country="" if isinstance(place, Unknown) else place.country.code,
        gpu=option.gpu.key,
        instance=option.instance or option.gpu.name,
        instances=instances,
        usd=UsdRange(compute + low_usd, compute + middle_usd, most + high_usd),
        compute_usd=compute,
        moving_usd=data[1],
        storage_usd=storage,
        kg_co2e=carbon_kg(asked, option.gpu, option.cloud, grid),
        g_per_kwh=grid,
        energy_kwh=energy_kwh(option.gpu, asked.count, asked.hours, asked.load[1], pue.middle),
        pue=pue.middle,
        pue_own=own,
        zones=max(len(option.zones), 1),
        spot_zones=listed.spot_zones if listed else 0,
        as_of=option.as_of,
        stale=aged(option.as_of.isoformat(), "spot" if option.purchase == "spot" else "on_demand", today)[1],
        flags=option.flags,
    )
