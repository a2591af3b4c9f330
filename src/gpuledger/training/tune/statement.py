"""What did tuning find, what did it cost, and when has it paid for itself?"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.training.tune.duel import Gain
from gpuledger.training.tune.parity import Parity
from gpuledger.training.tune.settings import Settings
from gpuledger.units import Unknown

Outcome = Literal["start", "kept", "no gain", "refused", "left out", "not tried"]
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Reading:
    """What one setting did: speed, memory, how busy the device said it was."""

    samples_per_s: float
    utilization_pct: float | Unknown
    peak_bytes: int | Unknown


@dataclass(frozen=True)
class Step:
    """One thing that was tried, and what came of it. `gain` is over the step kept before it."""

    axis: str
    name: str
    settings: Settings
    outcome: Outcome
    why: str = ""
    gain: Gain | None = None
    reading: Reading | None = None
    parity: Parity | None = None
    round: int = 1
    opened_s: float | None = None


@dataclass(frozen=True)
class Climb:
    """All that was tried, in order; `kept` are the rungs of the ladder, the start first."""

    steps: tuple[Step, ...]
    start: Settings
    winner: Settings
    total: Gain | None
    spent_s: float
    min_gain_ratio: float
    notes: tuple[str, ...] = ()
    side_by_side: tuple[float, float] | None = None  # samples a second of start and winner, in turns at the end

    @property
    def kept(self) -> tuple[Step, ...]:
        """The start and each step that stayed."""
        return tuple(s for s in self.steps if s.outcome in ("start", "kept"))

    @property
    def gained(self) -> bool:
        """Whether anything was worth a change."""
        return self.winner != self.start


@dataclass(frozen=True)
class Payback:
    """After how much training the tuning has paid for itself."""

    epoch_before_s: float
    epoch_after_s: float
    saved_per_epoch_s: float
    epochs: float
    hours: float


def epoch_s(samples_per_s: float, samples_per_epoch: int) -> float:
    """Seconds one pass over the data takes."""
    return samples_per_epoch / samples_per_s


def payback(spent_s: float, before_per_s: float, after_per_s: float, samples_per_epoch: int) -> Payback | Unknown:
    """Epochs, and hours of tuned training, until the seconds spent on tuning have come back."""
    before, after = epoch_s(before_per_s, samples_per_epoch), epoch_s(after_per_s, samples_per_epoch)
    saved = before - after
    if saved <= 0:
        return Unknown("nothing is saved, so the tuning is not paid back")
    epochs = spent_s / saved
    return Payback(before, after, saved, epochs, epochs * after / SECONDS_PER_HOUR)


def usd(seconds: float, usd_per_h: Decimal) -> Decimal:
    """What so many seconds of the device cost."""
    return Decimal(str(round(seconds, 3))) * usd_per_h / SECONDS_PER_HOUR
