"""What does one look at the fleet show, GPU by GPU and in all?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from gpuledger.cost.build import Terms, prices_of
from gpuledger.cost.pricing import Price, PriceChoice, PriceUsed, price_for
from gpuledger.efficiency.lately import Mode
from gpuledger.efficiency.naming import Placed, gpu_name, sort_name
from gpuledger.encode import Json, iso
from gpuledger.lake.batch import board_of
from gpuledger.units import MS_PER_S, Range, Unknown

Figure = float | Unknown
Condition = Mode | Literal["lost", "reading", "no data"]
Recent = Mapping[str, Sequence[float | None]]
_NO_PROCESSES = Unknown("a lake does not hold processes; gpuledger top --device nvml shows those of this machine")


@dataclass(frozen=True)
class Waste:
    """Dollars per hour seen to be wasted, and how many more may be: time that the evidence cannot rate."""

    usd_per_h: Decimal
    unrated_usd_per_h: Decimal


@dataclass(frozen=True)
class Running:
    """A process on a GPU, as far as it is visible from here."""

    pid: int
    program: str | Unknown
    user: str | Unknown
    memory_bytes: int | Unknown


@dataclass(frozen=True)
class GpuNow:
    """One GPU. `realized_pct`: share of its dense peak that it put to work; `recent`: utilization, oldest first."""

    device: str
    name: str
    place: str
    host: str | None
    gpu_model: str | None
    state: Condition
    util_pct: Figure
    realized_pct: Range | Unknown
    power_w: Figure
    limit_w: Figure
    memory_used_bytes: Figure
    memory_bytes: Figure
    clock_mhz: Figure
    temp_max_c: Figure
    usd_per_h: Decimal | Unknown
    waste: Waste | Unknown
    price: str
    owners: tuple[str, ...]
    processes: tuple[Running, ...] | Unknown = _NO_PROCESSES
    recent: tuple[float | None, ...] = ()

    def as_json(self) -> Json:
        """Without what only orders rows on a screen."""
        return {name: value for name, value in vars(self).items() if name not in {"place", "recent"}}


@dataclass(frozen=True)
class Fleet:
    """One look: where from, the end of its window, how many seconds long, the GPUs by name, and the prices used."""

    source: str
    at_ms: int
    window_s: float
    gpus: tuple[GpuNow, ...]
    prices: tuple[PriceUsed, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def hosts(self) -> int:
        """How many machines."""
        return len({gpu.host for gpu in self.gpus})

    def as_json(self) -> Json:
        """With the totals first."""
        total = totals(self.gpus)
        head: Json = {"source": self.source, "at_ms": self.at_ms, "at_utc": iso(self.at_ms), "window_s": self.window_s}
        head["start_utc"] = iso(self.at_ms - round(self.window_s * MS_PER_S))
        return head | {"totals": total, "gpus": self.gpus, "prices": self.prices, "notes": self.notes}


@dataclass(frozen=True)
class Totals:
    """The GPUs together; dollars are of the `priced` ones, means of those whose figure is known.

    GPUs and watts count a board once, however many MIG slices of it there are; `rows`: with each slice by itself.
    """

    gpus: int
    rows: int
    util_pct: Figure
    realized_pct: Figure
    power_w: Figure
    priced: int
    usd_per_h: Decimal | Unknown
    waste: Waste | Unknown


def totals(gpus: Sequence[GpuNow]) -> Totals:
    """What some GPUs come to."""
    priced = [gpu for gpu in gpus if not isinstance(gpu.usd_per_h, Unknown)]
    rates = [gpu.usd_per_h for gpu in priced if isinstance(gpu.usd_per_h, Decimal)]
    wasted = [gpu.waste for gpu in priced if isinstance(gpu.waste, Waste)]
    none = Unknown("no GPU has a price")
    # A GPU that reports nothing may waste all it costs.
    silent = [g.usd_per_h for g in priced if isinstance(g.waste, Unknown) and isinstance(g.usd_per_h, Decimal)]
    unrated = _sum(w.unrated_usd_per_h for w in wasted) + _sum(silent)
    waste: Waste | Unknown = Waste(_sum(w.usd_per_h for w in wasted), unrated)
    if not wasted:
        waste = next((gpu.waste for gpu in priced if isinstance(gpu.waste, Unknown)), none)
    realized = [gpu.realized_pct.middle for gpu in gpus if isinstance(gpu.realized_pct, Range)]
    return Totals(
        boards(gpus), len(gpus), _mean([gpu.util_pct for gpu in gpus]), _mean(realized), _power(gpus),
        boards(priced), _sum(rates) if rates else none, waste,
    )  # fmt: skip


def boards(gpus: Iterable[GpuNow]) -> int:
    """How many GPUs; the MIG slices of a board are one GPU, as everywhere."""
    return len({board_of(gpu.device) for gpu in gpus})


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))


def _known(figures: Sequence[Figure]) -> list[float]:
    return [figure for figure in figures if not isinstance(figure, Unknown)]


def _mean(figures: Sequence[Figure]) -> Figure:
    found = _known(figures)
    return sum(found) / len(found) if found else Unknown("not known of any GPU")


def _power(gpus: Sequence[GpuNow]) -> Figure:
    """Watts of the boards: power is read for the whole board, so that its MIG slices repeat it."""
    watts: dict[str, float] = {}
    for gpu in gpus:
        if not isinstance(gpu.power_w, Unknown):
            board = board_of(gpu.device)
            watts[board] = max(gpu.power_w, watts.get(board, 0.0))
    return sum(watts.values()) if watts else Unknown("not known of any GPU")


def by_place(gpus: Sequence[GpuNow]) -> tuple[GpuNow, ...]:
    """GPUs by host and index."""
    return tuple(sorted(gpus, key=lambda gpu: gpu.place))


def with_recent(fleet: Fleet, recent: Recent) -> Fleet:
    """The fleet with what each GPU did before."""
    return replace(fleet, gpus=tuple(replace(g, recent=tuple(recent.get(g.device, ()))) for g in fleet.gpus))


def blank(device: str, placed: Placed, instance: str | None, model: str | None, state: Condition, why: str) -> GpuNow:
    """A GPU that reports nothing, and why."""
    unknown = Unknown(why)
    return GpuNow(
        device, gpu_name(placed, instance), sort_name(placed), placed.host, model, state, unknown, unknown, unknown,
        unknown, unknown, unknown, unknown, unknown, unknown, unknown, "", (), unknown,
    )  # fmt: skip


def with_price(gpu: GpuNow, instance: str | None, terms: Terms) -> GpuNow:
    """A GPU without readings with what it costs all the same; of a MIG slice its share would be needed."""
    price = Unknown("its share of the board is unknown") if instance else listed_price(gpu.gpu_model, terms)
    if isinstance(price, Unknown):
        return replace(gpu, usd_per_h=price)
    return replace(gpu, usd_per_h=price.usd_per_h, price=price.words)


def listed_price(model: str | None, terms: Terms) -> Price | Unknown:
    """What a GPU without readings costs, as far as its model says."""
    if terms.get("inventory") is not None:
        return Unknown("the inventory prices it as soon as there are readings")
    given = prices_of(terms.get("price"))
    choice = PriceChoice(given, terms.get("instance"), terms.get("region"), tuple(terms.get("own", ())))
    return price_for(model, choice)
