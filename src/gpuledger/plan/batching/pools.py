"""Which pools of GPUs are there, at what price, when, and under which terms?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpuledger.catalog.files import load_toml
from gpuledger.catalog.gpus import Gpu, find_gpu, get_gpu
from gpuledger.catalog.prices import aged, price_over
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.errors import FactError, FileFault, InputError
from gpuledger.plan.batching.cells import Column, Line, names
from gpuledger.plan.batching.price_windows import PriceWindow, covers_week, zone_of
from gpuledger.plan.batching.tables import Given, lines_of, missing, read_words
from gpuledger.plan.market import Market
from gpuledger.telemetry.formats.columns import snake
from gpuledger.units import Unknown


class Terms(StrEnum):
    """How a pool is paid: whether used or not, by the hour used, or by the hour and taken back at any time."""

    RESERVED = "reserved"
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True)
class Pool:
    """GPUs of one type under one set of terms.

    `speed`: work per hour compared with a GPU of speed 1. `overhead_pct`: additional time that jobs take here, on spot
    for being taken back and started again. `low_usd`, `high_usd`: the range of the price, where it has one.
    """

    name: str
    gpu: str
    gpus: int
    usd_per_gpu_h: Decimal
    terms: Terms = Terms.ON_DEMAND
    speed: float = 1.0
    overhead_pct: float = 0.0
    windows: tuple[PriceWindow, ...] = ()
    zone: str = "UTC"
    dated: str = ""
    low_usd: Decimal | None = None
    high_usd: Decimal | None = None
    basis: str = ""


@dataclass(frozen=True)
class PoolFile:
    """The pools of a file, what was assumed for them, what was read as what, and what the user should know."""

    pools: tuple[Pool, ...]
    assumed: tuple[str, ...] = ()
    read_as: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_pools(given: Given, spot_overhead_pct: float) -> PoolFile:
    """The pools of a TOML file ([[pool]] with [[pool.window]]) or of a table with one row per pool and window."""
    if isinstance(given, Path) and given.suffix.lower() == ".toml":
        lines = _toml_lines(given)
    else:
        lines = lines_of(given, names().pools, "pools")
    header = {name for line in lines for name in line.columns}
    for needed in ("gpus", "price"):
        if needed not in header:
            spelled = names().pools[needed]
            known = [*(c.theirs for c in lines[0].columns.values()), *lines[0].ignored]
            raise missing(lines[0].path, spelled[0], spelled, known, "pools")
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.text("name") or line.text("gpu") or f"row {line.number}", []).append(line)
    pools = tuple(_pool(name, group, spot_overhead_pct) for name, group in groups.items())
    said = read_words(lines, {"price": "dollars per GPU-hour", "kind": "the terms", "gpus": "the number of GPUs"})
    return PoolFile(pools, _assumed(pools, header, spot_overhead_pct, lines), tuple(said), _price_note(lines))


def _price_note(lines: Sequence[Line]) -> tuple[str, ...]:
    """A price whose column does not say that it is one per GPU may be one per instance."""
    theirs = next(line.columns["price"].theirs for line in lines if "price" in line.columns)
    if "gpu" in theirs:
        return ()
    return (f"Column {theirs} of the pools was read as dollars per GPU-hour, not per instance",)


def _assumed(pools: Sequence[Pool], header: Collection[str], overhead: float, lines: Sequence[Line]) -> tuple[str, ...]:
    out = []
    if len({pool.gpu for pool in pools}) > 1 and "speed" not in header:
        out.append("No speeds are given: a GPU-hour counts the same on every pool.")
    if any(p.terms is Terms.SPOT for p in pools) and not any(line.text("overhead_pct") for line in lines):
        out.append(f"Spot: jobs take {overhead:g} % longer, for being taken back and started again; not measured.")
    if not any(pool.dated for pool in pools):
        out.append("Prices are as the pools file has them; it gives no date for them.")
    return tuple(out)


def _pool(name: str, lines: Sequence[Line], spot_overhead_pct: float) -> Pool:
    base = next((line for line in lines if not _is_window(line)), lines[0])
    others = [line for line in lines if line is not base]
    if repeated := next((line for line in others if not _is_window(line)), None):
        raise repeated.fault("name", "give it hours, days, or from and to, if it is another price of the same pool",
                             f"pool {name} is there more than once")  # fmt: skip
    rows = [line for line in lines if _is_window(line)]
    zone = base.text("zone") or "UTC"
    zone_of(zone)
    windows = tuple(_window(line, zone) for line in rows)
    if base in rows and not covers_week(windows):
        raise base.fault("price", "add a row of this pool without hours, days, from and to: its price otherwise",
                         f"pool {name} has a price in some windows only")  # fmt: skip
    gpus, price = base.whole("gpus", "give the number of GPUs, 1 or more"), base.dollars("price")
    if gpus is None or price is None:
        raise base.fault("gpus" if gpus is None else "price", "give a number", f"pool {name} has no value here")
    terms = _terms(base)
    speed = base.number_of("speed", over=True, hint="give the speed compared with the reference GPU, such as 1 or 2.2")
    extra = base.number_of("overhead_pct", hint="give the additional time in percent, 0 or more")
    return Pool(
        name=name, gpu=base.text("gpu") or "unnamed", gpus=gpus, usd_per_gpu_h=price, terms=terms,
        speed=1.0 if speed is None else speed,
        overhead_pct=extra if extra is not None else spot_overhead_pct if terms is Terms.SPOT else 0.0,
        windows=windows, zone=zone, dated=_date(base),
    )  # fmt: skip


def _is_window(line: Line) -> bool:
    return any(line.text(name) for name in ("hours", "days", "from", "to"))


def _window(line: Line, zone: str) -> PriceWindow:
    price = line.dollars("price")
    if price is None:
        raise line.fault("price", "give dollars per GPU-hour in this window", "a price window has no price")
    try:
        return PriceWindow.read(price, line.text("hours"), line.text("days"), line.text("from"), line.text("to"), zone)
    except InputError as error:
        raise FactError(line.path, f"row {line.number}", error.message, hint=error.hint) from error


def _terms(line: Line) -> Terms:
    words, text = names().words, line.text("kind").casefold()
    spot = line.yes("spot") if "spot" in line.columns else False
    reserved = line.yes("reserved") if "reserved" in line.columns else False
    if spot and reserved:
        raise line.fault("spot", "a pool is either reserved or spot", "both spot and reserved are yes")
    if text in words["reserved"] or (reserved and not text):
        return Terms.RESERVED
    if text in words["spot"] or (spot and not text):
        return Terms.SPOT
    if text in words["on_demand"]:
        return Terms.ON_DEMAND
    raise line.fault("kind", "write reserved, on-demand or spot")


def _date(line: Line) -> str:
    text = line.text("dated")
    if not text:
        return ""
    try:
        return dt.date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        raise line.fault("dated", "give the date of the price as 2026-08-22") from None


def _toml_lines(path: Path) -> list[Line]:
    """Tables [[pool]] and their [[pool.window]] as rows."""
    raw = load_toml(path, dict[str, Any])
    tables = raw.get("pool", raw.get("pools"))
    if not isinstance(tables, list) or not tables or not all(isinstance(t, Mapping) for t in tables):
        raise FileFault(path, "no [[pool]] in the file", hint="write one [[pool]] table for each pool")
    extra = sorted(set(raw) - {"pool", "pools", "version"})
    if extra:
        raise FactError(path, extra[0], "not a part of a pools file", hint="write [[pool]] tables only")
    out: list[Line] = []
    for place, table in enumerate(tables, 1):
        windows = table.get("window", table.get("windows", ()))
        if not isinstance(windows, list | tuple) or not all(isinstance(w, Mapping) for w in windows):
            raise FactError(path, f"pool {place}, window", "not a table", hint="write [[pool.window]]")
        named = {k: v for k, v in table.items() if k not in ("window", "windows")}
        out.append(_toml_line(path, place, named))
        out += [_toml_line(path, place, {**w, "name": table.get("name", f"row {place}")}) for w in windows]
    return out


def _toml_line(path: Path, place: int, table: Mapping[str, Any]) -> Line:
    spelled = {s: ours for ours, spellings in names().pools.items() for s in reversed(spellings)}
    cells: dict[str, str] = {}
    columns: dict[str, Column] = {}
    for key, value in table.items():
        name = snake(key)
        if name not in spelled:
            raise FactError(
                path, f"pool {place}, {key}", "not a known field", hint=f"known: {', '.join(names().pools)}"
            )
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        cells[spelled[name]], columns[spelled[name]] = text, Column(spelled[name], key)
    return Line(str(path), place, cells, columns)


def market_pools(gpus: Sequence[str], capacity: int, today: dt.date, spot_overhead_pct: float, spot: bool) -> PoolFile:
    """Pools at the market's median price: on demand, and with `spot` as many GPUs as spot."""
    pools: list[Pool] = []
    notes: list[str] = []
    market = Market(today)
    for name in gpus:
        gpu = get_gpu(name)
        price = market.price(gpu)
        if isinstance(price, Unknown):
            raise InputError(f"the price of {gpu.name} is {price}", hint="give the pools with their prices in a file")
        pools.append(Pool(
            f"{gpu.key} on-demand", gpu.key, capacity, price.usd_per_gpu_h, dated=str(price.newest or ""),
            low_usd=price.low_usd, high_usd=price.high_usd, basis=price.words,
        ))  # fmt: skip
        if spot and (more := _spot_pool(gpu, capacity, today, spot_overhead_pct, notes)):
            pools.append(more)
    if len(gpus) > 1:
        notes.append("No speeds are given: a GPU-hour counts the same on every pool.")
    return PoolFile(tuple(pools), tuple(dict.fromkeys(notes)))


def _spot_pool(gpu: Gpu, capacity: int, today: dt.date, overhead_pct: float, notes: list[str]) -> Pool | None:
    offers = [o for o in load_offers() if o.gpu == gpu.key and o.purchase == "spot" and not o.apart]
    found = price_over(f"{gpu.name} on the market", "spot", offers)
    if isinstance(found, Unknown):
        notes.append(f"No spot pool of {gpu.name}: {found.why}.")
        return None
    age, stale = aged(found.newest, "spot", today)
    notes.append(f"Spot: jobs take {overhead_pct:g} % longer, for being taken back and started again; not measured.")
    notes += [f"The spot price of {gpu.name} is {age} days old."] if stale else []
    return Pool(
        f"{gpu.key} spot", gpu.key, capacity, found.usd_per_gpu_h, Terms.SPOT, overhead_pct=overhead_pct,
        dated=found.newest, low_usd=found.low_usd, high_usd=found.high_usd, basis=found.words,
    )  # fmt: skip


def same_type(wanted: str, pool: Pool) -> bool:
    """Whether a pool has GPUs of a type, by its name or any alias of the catalog."""
    return wanted.casefold() in (pool.gpu.casefold(), pool.name.casefold()) or _one_gpu(wanted, pool.gpu)


@lru_cache(maxsize=4096)
def _one_gpu(wanted: str, had: str) -> bool:
    mine, theirs = find_gpu(wanted), find_gpu(had)
    return not isinstance(mine, Unknown) and not isinstance(theirs, Unknown) and mine.key == theirs.key
