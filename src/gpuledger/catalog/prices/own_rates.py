"""What does the user really pay: negotiated rates and hardware of their own, from a file of theirs?

CSV, TOML ([[rates]] tables) or JSON (a list, or {"rates": [...]}) with the columns of COLUMNS. `usd_per_h` is for one
GPU or for the whole instance: price_scope must say which. A file is taken whole or not at all.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from gpuledger.catalog.files import parse_json, parse_toml, read_text
from gpuledger.catalog.gpus import get_gpu, load_gpus
from gpuledger.catalog.prices.offers import PRICE_RANGE, Offer, Purchase, load_offers, plausible_usd_per_h
from gpuledger.errors import FactError, FileFault, UnknownName, nearest
from gpuledger.numerals import Ambiguous, Shown, Unclear, number_in, shown_by
from gpuledger.units import Unknown

COLUMNS = (
    "cloud", "instance", "gpu", "count", "region", "purchase", "usd_per_h", "price_scope", "as_of", "note",
)  # fmt: skip
NEEDED = ("usd_per_h", "price_scope", "as_of")
SCOPES = ("gpu", "instance")
PURCHASES: Mapping[str, Purchase] = {"on-demand": "on_demand", "on_demand": "on_demand", "spot": "spot"}
OWN_CLOUD = "yours"
COUNT_DIGITS = 5


class Rate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rate. `usd_per_h` is the text the user wrote; an empty instance or region: whichever."""

    cloud: str
    instance: str
    gpu: str
    count: int
    region: str
    purchase: Purchase
    usd_per_h: str
    price_scope: Literal["gpu", "instance"]
    as_of: str
    note: str = ""

    @property
    def offer(self) -> Offer:
        """The rate as an offer: the price of the whole instance, whatever it was given for."""
        given = Decimal(self.usd_per_h)
        return Offer(
            cloud=self.cloud,
            instance=self.instance,
            accelerator=load_gpus()[self.gpu].name,
            gpu=self.gpu,
            gpus=Decimal(self.count),
            region=self.region,
            zone="",
            purchase=self.purchase,
            usd_per_h=given * self.count if self.price_scope == "gpu" else given,
            dated=self.as_of,
            price_scope=self.price_scope,
            source=f"yours: {self.note}" if self.note else "yours",
            yours=True,
        )

    def problem(self) -> str:
        """What is wrong with a stored rate; empty where it can be used."""
        if self.gpu not in load_gpus():
            return f"no GPU of the catalog is called {self.gpu!r}"
        if not 0 < self.count < 10**COUNT_DIGITS:
            return f"{self.count} is not a number of GPUs"
        try:
            dt.date.fromisoformat(self.as_of)
        except ValueError:
            return f"{self.as_of!r} is not a day"
        try:
            good = plausible_usd_per_h(Decimal(self.usd_per_h))
        except InvalidOperation:
            good = False
        return "" if good else f"{self.usd_per_h!r} is not a price"

    @property
    def covers(self) -> tuple[str, ...]:
        """What no two rates may say differently."""
        return self.cloud, self.instance, self.gpu, str(self.count), self.region, self.purchase

    def as_json(self) -> dict[str, object]:
        """With both prices; the way to buy as on a command line."""
        prices = {"usd_per_gpu_h": self.offer.usd_per_gpu_h, "usd_per_instance_h": self.offer.usd_per_h}
        return {**msgspec.structs.asdict(self), "purchase": self.purchase.replace("_", "-"), **prices}


def read_rates(file: str | Path, today: dt.date) -> tuple[Rate, ...]:
    """All rates of a file, checked whole; an error names file, row, field, value and what is allowed."""
    path = Path(file)
    rows = _rows(path)
    if not rows:
        raise FileFault(path, "no rates", hint=f"write one per line under: {','.join(COLUMNS)}")
    rates: list[Rate] = []
    seen: dict[tuple[str, ...], str] = {}
    typed = path.suffix.casefold() != ".csv"
    prices = shown_by((values.get("usd_per_h", "") for _, values in rows), points=typed)
    for where, values in rows:
        rate = _Row(str(path), where, values, today, prices).rate()
        if other := seen.get(rate.covers):
            raise FactError(str(path), where, f"{other} gives this rate already", hint="keep one of the two")
        seen[rate.covers] = where
        rates.append(rate)
    return tuple(rates)


def _rows(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Every row as text by column, with the name of its place in the file."""
    text = read_text(path, "read the rates")
    kind = path.suffix.casefold()
    if kind in {".toml", ".json"}:
        return _tables(path, text, kind)
    if kind != ".csv":
        raise FileFault(path, f"found a name ending in {kind!r}", hint="name the file .csv, .toml or .json")
    try:
        return _lines(path, csv.DictReader(text.splitlines()))
    except csv.Error as error:
        hint = "shorten the value, or close its quote"
        raise FileFault(path, f"cannot be read as CSV: {error}", hint=hint) from error


def _lines(path: Path, lines: csv.DictReader[str]) -> list[tuple[str, dict[str, str]]]:
    heads = [name.strip() for name in lines.fieldnames or []]
    _check_names(path, "row 1", heads)
    for name in NEEDED:
        if name not in heads:
            raise FactError(path, "row 1", f"column {name!r} is missing", hint=f"begin with: {','.join(COLUMNS)}")
    found = []
    for number, line in enumerate(lines, start=2):
        if None in line:
            problem = "more values than columns"
            raise FactError(path, f"row {number}", problem, hint="quote values that hold a comma")
        values = {str(k).strip(): (v or "").strip() for k, v in line.items()}
        if any(values.values()):
            found.append((f"row {number}", values))
    return found


def _tables(path: Path, text: str, kind: str) -> list[tuple[str, dict[str, str]]]:
    # Numbers are kept as written: a float would change 2.10 into another price.
    raw: Any = (parse_toml if kind == ".toml" else parse_json)(text, str(path), parse_float=str)
    if isinstance(raw, dict):
        raw = raw.get("rates")
    if not isinstance(raw, list) or not all(isinstance(row, dict) for row in raw):
        raise FactError(path, "rates", "is not a list of rates", hint="write [[rates]] tables, or a list of objects")
    found = []
    for number, row in enumerate(cast("list[dict[str, Any]]", raw), start=1):
        _check_names(path, f"rate {number}", row)
        for name, value in row.items():
            if isinstance(value, (list, dict)):
                raise FactError(path, f"rate {number}, {name}", "found a list or a table", hint="write one value")
        found.append((f"rate {number}", {name: "" if v is None else str(v).strip() for name, v in row.items()}))
    return found


def _check_names(path: Path, where: str, names: Sequence[str] | Mapping[str, Any]) -> None:
    for name in names:
        if name not in COLUMNS:
            close = nearest(name, COLUMNS, limit=1)
            hint = f"did you mean {close[0]}?" if close else f"use these: {', '.join(COLUMNS)}"
            raise FactError(path, where, f"column {name!r} is unknown", hint=hint)


class _Row:
    """Reads the fields of one rate; an error names the place. `prices`: how the prices of the file are written."""

    def __init__(self, path: str, where: str, values: Mapping[str, str], today: dt.date, prices: Shown) -> None:
        self.path, self.where, self.values, self.today, self.prices = path, where, values, today, prices

    def fault(self, field: str, hint: str, problem: str = "") -> FactError:
        found = problem or f"found {self.values.get(field, '')!r}"
        return FactError(self.path, f"{self.where}, {field}", found, hint=hint)

    def rate(self) -> Rate:
        get = self.values.get
        scope = get("price_scope", "")
        if scope not in SCOPES:
            raise self.fault("price_scope", "say what usd_per_h is the price of: gpu or instance")
        purchase = PURCHASES.get((get("purchase") or "on-demand").casefold())
        if purchase is None:
            raise self.fault("purchase", "use on-demand (a negotiated or reserved rate too) or spot")
        listed = self._listed()
        return Rate(
            cloud=get("cloud") or (listed[0].cloud if listed else OWN_CLOUD),
            instance=listed[0].instance if listed else get("instance", ""),
            gpu=self._gpu(listed),
            count=self._count(listed, scope),
            region=self._region(listed),
            purchase=purchase,
            usd_per_h=str(self._price()),
            price_scope="gpu" if scope == "gpu" else "instance",
            as_of=self._date(),
            note=get("note", ""),
        )

    def _listed(self) -> list[Offer]:
        """Listed offers of the instance; without a cloud only where a single cloud has an instance of that name."""
        instance, cloud = self.values.get("instance", "").casefold(), self.values.get("cloud", "").casefold()
        found = [o for o in load_offers() if o.instance.casefold() == instance and cloud in {"", o.cloud.casefold()}]
        return found if instance and len({o.cloud for o in found}) == 1 else []

    def _region(self, listed: list[Offer]) -> str:
        """As the cloud spells it, where the instance is a cloud's; free text for hardware of one's own."""
        text = self.values.get("region", "")
        known = {o.region for o in load_offers() if listed and o.cloud == listed[0].cloud}
        found = next((r for r in known if r.casefold() == text.casefold()), text)
        if text and known and found not in known:
            raise self.fault("region", UnknownName("region", text, known).hint + "; or leave it out for all regions")
        return found

    def _gpu(self, listed: list[Offer]) -> str:
        name, sold = self.values.get("gpu", ""), {o.gpu for o in listed if isinstance(o.gpu, str)}
        if not name:
            if len(sold) == 1:
                return sold.pop()
            raise self.fault("gpu", "name the GPU: gpuledger catalog gpus lists them")
        try:
            key = get_gpu(name).key
        except UnknownName as error:
            raise self.fault("gpu", f"{error.hint}; gpuledger catalog gpus lists all") from None
        if sold and key not in sold:
            raise self.fault("gpu", f"use {' or '.join(sorted(sold))}: that is what {listed[0].instance} has")
        return key

    def _count(self, listed: list[Offer], scope: str) -> int:
        text, sold = self.values.get("count", ""), {int(o.gpus) for o in listed}
        if not text:
            if len(sold) == 1:
                return sold.pop()
            if scope == "gpu":
                return 1
            raise self.fault("count", "say how many GPUs the instance has: usd_per_h is for all of them")
        if not text.isdecimal() or len(text) > COUNT_DIGITS or int(text) < 1:
            raise self.fault("count", "give the number of GPUs as a whole number from 1 on, up to 99,999")
        if sold and int(text) not in sold:
            count = " or ".join(map(str, sorted(sold)))
            raise self.fault("count", f"{listed[0].instance} has {count}; leave it out to take that")
        return int(text)

    def _price(self) -> Decimal:
        try:
            price = number_in(self.values.get("usd_per_h", ""), self.prices)
        except Ambiguous as error:
            raise self.fault("usd_per_h", error.hint, error.problem) from None
        except Unclear:
            raise self.fault(
                "usd_per_h", "write dollars per hour as a plain number above 0, for example 2.10"
            ) from None
        if not plausible_usd_per_h(price):
            raise self.fault("usd_per_h", f"give a price above 0: {PRICE_RANGE}")
        return price

    def _date(self) -> str:
        try:
            day = dt.date.fromisoformat(self.values.get("as_of", ""))
        except ValueError:
            raise self.fault("as_of", "write the day the rate is of as 2026-10-01") from None
        if day > self.today:
            raise self.fault("as_of", f"give a day up to today ({self.today})")
        return day.isoformat()


def replaced(offer: Offer, own: Sequence[Offer]) -> bool:
    """Whether a rate of the user's covers this listed offer."""
    return any(
        mine.instance
        and (mine.cloud, mine.instance, mine.purchase) == (offer.cloud, offer.instance, offer.purchase)
        and mine.region in {"", offer.region}
        for mine in own
    )


def doubts(rates: Sequence[Rate], usd_per_gpu_h: Mapping[str, Decimal | Unknown], far_ratio: float) -> list[str]:
    """Rates so far from the market price of their GPU that the price of a GPU and of an instance may be confused."""
    found = []
    for rate in rates:
        market, own = usd_per_gpu_h.get(rate.gpu), rate.offer.usd_per_gpu_h
        if market is None or isinstance(market, Unknown) or isinstance(own, Unknown):
            continue
        times = float(own / market)
        if not 1 / far_ratio <= times <= far_ratio:
            what = rate.instance or rate.gpu
            found.append(
                f"{what}: ${own:.2f} per GPU-hour is {times:.2g} times the market median (${market:.2f}); "
                f"is price_scope = {rate.price_scope} right?"
            )
    return found
