"""Which figures does the cost statement have?

Dollars are whole numbers of 10^-12 USD, so every group adds up to the bill exactly. An unknown figure is an `Unknown`
with the reason; a group of which only a part has a price counts that part and reports how much has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from gpuledger.cost.inventories.findings import InventoryUse
from gpuledger.cost.judged import known_buckets, money_json, unknown_why
from gpuledger.cost.money import ZERO
from gpuledger.cost.periods import Comparison
from gpuledger.cost.pricing import PriceUsed, Unpriced
from gpuledger.cost.projections import NO_MONTH, NO_MONTHS, Months, Projection
from gpuledger.encode import Json, encode, iso
from gpuledger.lake.batch import device_name
from gpuledger.ledger.read.owners import By
from gpuledger.units import MS_PER_HOUR, Unknown

Bucket = Literal["productive", "stalled", "unrated", "underused", "idle", "idle_held", "unobserved"]
BUCKETS: tuple[Bucket, ...] = ("productive", "stalled", "unrated", "underused", "idle", "idle_held", "unobserved")
# Paid for, and seen not to be used. Unrated time may have been used and unobserved time was not seen: not waste.
WASTE: tuple[Bucket, ...] = ("stalled", "underused", "idle", "idle_held")
_WASTED = tuple(BUCKETS.index(b) for b in WASTE)
PHASES = ("idle", "underutilized", "productive", "compute_bound")
EVIDENCE = ("counters", "power", "none")
# Dimensions of ownership that every bill has a table of.
ALWAYS = (By.CLUSTER, By.NAMESPACE, By.TEAM)
NOT_ASKED = "not asked for"
_PROJECTED = ("hourly_usd", "monthly_usd", "yearly_usd", "quarter", "projection_basis")
N = TypeVar("N", int, Decimal)


class ByBucket(Generic[N]):
    """Amounts by bucket; the fields of a class are in the order of BUCKETS."""

    _unit: ClassVar[str]
    _none: ClassVar[Any]
    _parts: ClassVar[attrgetter[tuple[Any, ...]]]

    def parts(self) -> tuple[N, ...]:
        """In the order of BUCKETS."""
        return self._parts(self)

    def each(self) -> dict[Bucket, N]:
        """By bucket."""
        return dict(zip(BUCKETS, self.parts(), strict=True))

    @cached_property
    def paid(self) -> N:
        """All of it."""
        return sum(self.parts(), self._none)

    @property
    def waste(self) -> N:
        """What was paid for and seen not to be used."""
        parts = self.parts()
        return sum([parts[i] for i in _WASTED], self._none)

    @classmethod
    def of(cls, each: Mapping[Bucket, N]) -> Self:
        """From amounts by bucket."""
        return cls(**{f"{b}_{cls._unit}": amount for b, amount in each.items()})

    @classmethod
    def total(cls, rows: Iterable[Self]) -> Self:
        """Added up bucket by bucket."""
        given = list(rows)
        return given[0] if len(given) == 1 else cls(*map(sum, zip(*map(cls._parts, given), strict=True)))


@dataclass(frozen=True)
class Times(ByBucket[int]):
    """Paid time by bucket in whole milliseconds."""

    productive_ms: int = 0
    stalled_ms: int = 0
    unrated_ms: int = 0
    underused_ms: int = 0
    idle_ms: int = 0
    idle_held_ms: int = 0
    unobserved_ms: int = 0
    _unit: ClassVar[str] = "ms"
    _parts: ClassVar[attrgetter[tuple[Any, ...]]] = attrgetter(*(f"{b}_ms" for b in BUCKETS))
    _none: ClassVar[int] = 0

    @property
    def paid_ms(self) -> int:
        """All paid time."""
        return self.paid

    @property
    def paid_h(self) -> float:
        """All paid time in hours."""
        return self.paid_ms / MS_PER_HOUR


@dataclass(frozen=True)
class Dollars(ByBucket[Decimal]):
    """Paid dollars by bucket."""

    productive_usd: Decimal = ZERO
    stalled_usd: Decimal = ZERO
    unrated_usd: Decimal = ZERO
    underused_usd: Decimal = ZERO
    idle_usd: Decimal = ZERO
    idle_held_usd: Decimal = ZERO
    unobserved_usd: Decimal = ZERO
    _unit: ClassVar[str] = "usd"
    _parts: ClassVar[attrgetter[tuple[Any, ...]]] = attrgetter(*(f"{b}_usd" for b in BUCKETS))
    _none: ClassVar[Decimal] = ZERO

    @property
    def paid_usd(self) -> Decimal:
        """All that was paid."""
        return self.paid

    @property
    def waste_usd(self) -> Decimal:
        """Paid for time that was seen not to be used."""
        return self.waste

    def pct(self, amount: Decimal) -> float:
        """An amount in percent of what was paid; 0 where nothing was."""
        return float(100 * amount / self.paid_usd) if amount and self.paid_usd else 0.0


@dataclass(frozen=True)
class CostRow:
    """One group: a namespace, a team, a cluster, a GPU model. `gpus` are boards; `dollars` leave out `unpriced_h`.

    `month_usd` is what the dollars come to per month.
    """

    name: str
    gpus: int
    times: Times
    dollars: Dollars | Unknown
    unpriced_h: float
    month_usd: Decimal | Unknown = NO_MONTH

    @cached_property
    def buckets(self) -> Mapping[Bucket, Decimal | Unknown]:
        """Dollars by bucket, as far as they are known."""
        return known_buckets(self.dollars, self.times, self.unpriced_h)

    @property
    def unknown_why(self) -> str | None:
        """Why some of its buckets are unknown, where some are."""
        return unknown_why(self.buckets)

    def as_json(self) -> Json:
        """With the money of the group spelled out."""
        money = money_json(self.dollars, self.times, self.unpriced_h)
        rest = {"unpriced_h": self.unpriced_h, "unknown_why": unknown_why(money["buckets"])}
        return {"name": self.name, "gpus": self.gpus, **money, **rest}


@dataclass(frozen=True)
class GpuCost:
    """One device. A MIG slice's time is its own; its dollars are its share of the board's price."""

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    cluster: str | None
    region: str | None
    host: str | None
    gpu_index: str | None
    board_share: float
    times: Times
    dollars: Dollars | Unknown
    usd_per_h: Decimal | Unknown
    price_words: str

    @cached_property
    def buckets(self) -> Mapping[Bucket, Decimal | Unknown]:
        """Dollars by bucket, as far as they are known."""
        return known_buckets(self.dollars, self.times)

    @property
    def unknown_why(self) -> str | None:
        """Why some of its buckets are unknown, where some are."""
        return unknown_why(self.buckets)

    def as_json(self) -> Json:
        """With the money of the device spelled out."""
        money = money_json(self.dollars, self.times)
        return {n: getattr(self, n) for n in _OF_GPU} | money | {"unknown_why": unknown_why(money["buckets"])}


_OF_GPU = tuple(f.name for f in fields(GpuCost) if f.name not in {"times", "dollars"})


@dataclass(frozen=True)
class WorkCost:
    """Dollars for 10^18 floating-point operations really done: low, middle, high, by what the counters show."""

    low_usd: Decimal
    middle_usd: Decimal | Unknown
    high_usd: Decimal
    exaflop: float | Unknown
    gpus: int
    words: str


@dataclass(frozen=True)
class CostStatement:
    """What was paid in one window, for what, for which owners, and what it comes to.

    `samples` are those of the owners in scope, within the window. `showback`: the bill by the dimension asked for,
    where it is not among the others. `months`: what turns its dollars into dollars per month.
    """

    start_ms: int
    end_ms: int
    gpus: int
    times: Times
    dollars: Dollars | Unknown
    paid_low_usd: Decimal | Unknown
    paid_high_usd: Decimal | Unknown
    projection: Projection | Unknown
    phases_pct: Mapping[str, float] | Unknown
    evidence_pct: Mapping[str, float] | Unknown
    work: WorkCost | Unknown
    energy_kwh: float | Unknown
    energy_usd: Decimal | Unknown
    by_gpu: tuple[GpuCost, ...]
    by_model: tuple[CostRow, ...]
    by_cluster: tuple[CostRow, ...]
    by_namespace: tuple[CostRow, ...]
    by_owner: tuple[CostRow, ...]
    by_team: tuple[CostRow, ...]
    prices: tuple[PriceUsed, ...]
    unpriced: tuple[Unpriced, ...]
    previous: Comparison | Unknown
    assumptions: tuple[str, ...]
    samples: int = 0
    by: By | None = None
    showback: tuple[CostRow, ...] = ()
    inventory: InventoryUse | None = None
    months: Months = NO_MONTHS

    @property
    def paid_usd(self) -> Decimal | Unknown:
        """All that was paid, for the devices with a price."""
        return self.dollars if isinstance(self.dollars, Unknown) else self.dollars.paid_usd

    @property
    def buckets(self) -> Mapping[Bucket, Decimal | Unknown]:
        """Dollars by bucket, as far as they are known."""
        return known_buckets(self.dollars, self.times, self.unpriced_h)

    @cached_property
    def gpu_rows(self) -> Mapping[str, GpuCost]:
        """The rows of devices by the name of the device."""
        return {device_name(row.gpu_uuid, row.gpu_instance_id): row for row in self.by_gpu}

    @property
    def by_asked(self) -> tuple[CostRow, ...]:
        """The bill by the dimension asked for, by namespace where none was."""
        found: tuple[CostRow, ...] = getattr(self, f"by_{self.by or By.NAMESPACE}", self.showback)
        return found

    @property
    def unpriced_h(self) -> float:
        """Paid GPU-hours that are in no dollar figure."""
        return sum(row.paid_h for row in self.unpriced)

    @property
    def wall_h(self) -> float:
        """Length of the window."""
        return (self.end_ms - self.start_ms) / MS_PER_HOUR

    def as_json(self) -> Json:
        """The money of the bill and its projection first, then the rest."""
        rate = self.projection
        projected = {n: rate if isinstance(rate, Unknown) else getattr(rate, n) for n in _PROJECTED}
        head: Json = {"start_ms": self.start_ms, "start_utc": iso(self.start_ms), "end_ms": self.end_ms}
        head |= {"end_utc": iso(self.end_ms), "wall_h": self.wall_h, "gpus": self.gpus, "samples": self.samples}
        spent = {"paid_low_usd": self.paid_low_usd, "paid_high_usd": self.paid_high_usd}
        written = {*head, *spent, "times", "dollars", "projection", "phases_pct", "by", "showback", "months"}
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in written}
        rest |= {f"by_{self.by}": self.showback} if self.by and self.by not in ALWAYS else {}
        head |= money_json(self.dollars, self.times, self.unpriced_h)
        return head | spent | projected | {"phases": self.phases_pct} | rest


def to_json(statement: CostStatement) -> Json:
    """The whole statement; devices without a price are named with what is unknown."""
    return encode("cost", statement, named=unpriced_names(statement))


def unpriced_names(statement: CostStatement) -> Iterator[tuple[str, str]]:
    """Each GPU model without a price, and why."""
    for row in statement.unpriced:
        yield f"price of {row.gpu_model or 'devices without a model name'}", row.why
