"""Which spot prices did the user bring? CSV with natural column names, or the JSON of describe-spot-price-history."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpuledger.catalog.files import parse_json, read_text
from gpuledger.catalog.prices.history import S_PER_H, Changes, Pool, PriceHistory
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.errors import FileFault, InputError
from gpuledger.times import instant_ms
from gpuledger.units import Unknown

NAMES: dict[str, tuple[str, ...]] = {
    "time": ("time", "timestamp", "observed_utc", "date", "datetime", "observed", "at"),
    "instance": ("instance", "instance_type", "instancetype", "type", "machine_type"),
    "zone": ("zone", "az", "availability_zone", "availabilityzone"),
    "price": ("price", "spot_price", "spotprice", "spot_usd_h", "spot", "usd_per_hour", "usd_h", "price_usd"),
    "region": ("region",),
    "on_demand": ("on_demand", "on_demand_usd_h", "ondemand", "ondemand_price", "on_demand_price"),
    "product": ("product_description", "productdescription", "product", "os"),
}
NEEDED = ("time", "instance", "zone", "price")
DAY_S = 24 * S_PER_H


def read_history(path: Path, on_demand_usd: float | None = None) -> PriceHistory:
    """The history in a file; on-demand prices come from it, from the user, or from the catalog."""
    text = read_text(path, "read the spot price history")
    rows = _json_rows(text, path) if text.lstrip()[:1] in {"{", "["} else _csv_rows(text, path)
    if not rows:
        raise FileFault(path, "no prices in it", hint="give a CSV with time, instance, zone and price")
    columns = _columns(path, rows[0])
    points: dict[Pool, list[tuple[int, float, float]]] = {}
    for number, row in enumerate(rows, start=2):
        if (product := columns.get("product")) and "linux" not in str(row.get(product)).casefold():
            continue
        pool, point = _point(path, number, row, columns)
        points.setdefault(pool, []).append(point)
    if not points:
        raise FileFault(path, "no prices of Linux instances in it", hint="fetch Linux/UNIX prices")
    return _history(path, points, on_demand_usd)


def _csv_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    try:
        return list(csv.DictReader(text.splitlines()))
    except csv.Error as error:
        raise FileFault(
            path, f"cannot be read as CSV: {error}", hint="shorten the value, or close its quote"
        ) from error


def _json_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    found = parse_json(text, str(path))
    rows = found.get("SpotPriceHistory") if isinstance(found, dict) else found
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        hint = "give what aws ec2 describe-spot-price-history prints, or a CSV"
        raise FileFault(path, "no list SpotPriceHistory in it", hint=hint)
    return rows


def _columns(path: Path, row: Mapping[str, Any]) -> dict[str, str]:
    """Our names to those of the file."""
    plain = {re.sub(r"[\s-]+", "_", str(name).strip().casefold()): str(name) for name in row}
    found = {ours: plain[n] for ours, names in NAMES.items() for n in reversed(names) if n in plain}
    for name in NEEDED:
        if name not in found:
            raise FileFault(
                path, f"no column for {name}; it has {', '.join(plain.values())}",
                hint=f"name one of them {' or '.join(NAMES[name][:3])}",
            )  # fmt: skip
    return found


def _point(
    path: Path, number: int, row: Mapping[str, Any], columns: Mapping[str, str]
) -> tuple[Pool, tuple[int, float, float]]:
    zone = str(row.get(columns["zone"]) or "").strip()
    region = str(row.get(columns["region"]) or "").strip() if "region" in columns else region_of(zone)
    instance = str(row.get(columns["instance"]) or "").strip()
    if not zone or not instance:
        raise FileFault(path, f"row {number} has no zone or instance", hint="fill it in, or remove the row")
    at_s = _time(path, number, row.get(columns["time"]))
    spot = _price(path, number, row.get(columns["price"]))
    demand = _price(path, number, row.get(columns["on_demand"])) if "on_demand" in columns else math.nan
    return Pool(instance, region, zone), (at_s, demand, spot)


def region_of(zone: str) -> str:
    """us-east-1a is in us-east-1, us-central1-a in us-central1; another zone is a region of its own."""
    return re.sub(r"(?<=\d)-?[a-z]$", "", zone)


def _time(path: Path, number: int, given: Any) -> int:
    text = str(given).strip()
    try:
        if re.fullmatch(r"\d{9,13}(\.\d+)?", text):
            seconds = float(text)
            return int(seconds / 1000 if seconds > 1e11 else seconds)
        return instant_ms(text.replace(" UTC", "+00:00")) // 1000
    except InputError as error:
        raise FileFault(path, f"row {number}: {error.message}", hint=error.hint) from None


def _price(path: Path, number: int, given: Any) -> float:
    """A price; an empty one means that there was no offer."""
    text = str("" if given is None else given).strip().lstrip("$")
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (math.isfinite(value) and 0 < value < 1e6):
        raise FileFault(path, f"row {number}: {given!r} is not a price", hint="give dollars per hour above 0")
    return value


def _history(
    path: Path, points: Mapping[Pool, list[tuple[int, float, float]]], on_demand_usd: float | None
) -> PriceHistory:
    changes: dict[Pool, Changes] = {}
    for pool, found in points.items():
        at = sorted({p[0]: p for p in found}.values())
        demand = np.array([p[1] for p in at])
        if np.isnan(demand).all():
            demand = np.full(len(at), math.nan if on_demand_usd is None else on_demand_usd)
        if np.isnan(demand).all():
            demand = np.full(len(at), _listed(pool))
        changes[pool] = Changes(np.array([p[0] for p in at], dtype=np.int64), demand, np.array([p[2] for p in at]))
    first, last = min(c.at_s[0] for c in changes.values()), max(c.at_s[-1] for c in changes.values())
    # The cloud reports every change: between the first and the last of them, everything was observed.
    observed = np.unique(np.append(np.arange(first, last, DAY_S, dtype=np.int64), last))
    return PriceHistory(changes, observed, f"your file {path.name}")


def _listed(pool: Pool) -> float:
    """The on-demand price of the catalog, or NaN."""
    found: Iterable[float] = (
        float(o.usd_per_h)
        for o in load_offers()
        if o.instance == pool.instance
        and o.region == pool.region
        and o.purchase == "on_demand"
        and not isinstance(o.usd_per_h, Unknown)
    )
    return next(iter(found), math.nan)
