"""What is a comparison of owning and renting made of?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.plan.tco.inputs import Basis, Input
from gpuledger.plan.tco.model import Own
from gpuledger.units import Unknown

OWN = "own"


@dataclass(frozen=True)
class Swing:
    """How far one input moves owning less on demand: dollars with it at its low and at its high end.

    `varied`: it has no range of its own and was moved by the same percentage as others without one.
    """

    name: str
    words: str
    unit: str
    low: Decimal
    high: Decimal
    low_usd: Decimal
    high_usd: Decimal
    basis: Basis
    varied: bool = False


@dataclass(frozen=True)
class Path:
    """One way to have the GPUs: dollars over the horizon, per GPU-hour and per GPU-hour that is really used.

    `upfront_usd` is paid at the start, and again in the months of `paid_again`.
    """

    name: str
    words: str
    usd: UsdRange | Unknown
    upfront_usd: Decimal
    month_usd: Decimal | Unknown
    usd_per_gpu_h: Decimal | Unknown
    usd_per_used_gpu_h: Decimal | Unknown
    break_even_month: Decimal | Unknown | None = None
    break_even_utilization_pct: Decimal | Unknown | None = None
    break_even_purchase_usd: Decimal | Unknown | None = None
    paid_again: tuple[Decimal, ...] = ()


@dataclass(frozen=True)
class Line:
    """One line of what owning costs."""

    name: str
    usd: Decimal
    words: str


@dataclass(frozen=True)
class TcoPlan:
    """The comparison. `chosen` is the cheapest path whose cost is known; `runners_up` the others, cheapest first.

    `turning`: the inputs that alone can turn the answer between owning and renting on demand.
    """

    headline: str
    gpu: str
    gpu_name: str
    gpus: int
    years: int
    months: Decimal
    used_pct: Decimal
    chosen: Path
    runners_up: Sequence[Path]
    own: Own
    lines: Sequence[Line]
    inputs: Sequence[Input]
    swings: Sequence[Swing]
    turning: Sequence[str]
    refused: Sequence[Refused]
    assumptions: Sequence[str]
    prices_dated: str
    price_words: str
    purchase_words: str
    next_to_audit: str

    @property
    def paths(self) -> list[Path]:
        """All paths, cheapest first, those that are unknown last."""
        return [self.chosen, *self.runners_up]

    def input(self, name: str) -> Input:
        """An input by its name."""
        return next(one for one in self.inputs if one.name == name)

    def path(self, name: str) -> Path | None:
        """A path by its name."""
        return next((p for p in self.paths if p.name == name), None)
