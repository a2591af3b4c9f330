"""What is a setting on trial, what came of those tried so far, and which are worth trying again?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gpuledger.training.tune.choices import Plan
from gpuledger.training.tune.duel import Gain, Parity
from gpuledger.training.tune.settings import Settings
from gpuledger.units import GIB, Unknown

if TYPE_CHECKING:
    from gpuledger.training.tune.machine import TorchMachine
    from gpuledger.training.tune.torch_trial import TorchTrial

Outcome = Literal["start", "kept", "no gain", "refused", "left out", "not tried"]


class TrialFailed(Exception):
    """A setting that cannot be run: `memory` where it did not fit, else the error of the job or of torch."""

    def __init__(self, why: str, *, memory: bool = False) -> None:
        super().__init__(why)
        self.why, self.memory = why, memory


class Alone:
    """A setting that holds no memory between its windows, where the device has no room for two at once.

    It is built for each window. That costs time, not accuracy: a window starts warm.
    """

    def __init__(self, machine: TorchMachine, settings: Settings) -> None:
        self._machine, self._settings = machine, settings
        first = machine.open(settings)
        self.curve: Sequence[float] = first.curve
        self.peak_bytes: int | Unknown = first.peak_bytes
        self._utilization = first.utilization_pct()
        first.close()

    def window(self, seconds: float) -> float:
        """Samples per second, measured after building it again."""
        held = self._machine.open(self._settings)
        try:
            rate = held.window(seconds)
            self._utilization = held.utilization_pct()
            return rate
        finally:
            held.close()

    def utilization_pct(self) -> float | Unknown:
        """As the driver reported it for the last window."""
        return self._utilization

    def close(self) -> None:
        """Nothing is held."""


def too_large(held: TorchTrial | Alone, room: int | Unknown, margin_ratio: float) -> str:
    """Why the peak leaves too little room; a step that barely fits now runs out later."""
    peak = held.peak_bytes
    if isinstance(peak, Unknown) or isinstance(room, Unknown) or peak * (1 + margin_ratio) <= room:
        return ""
    return f"a step takes {peak / GIB:.1f} GiB of {room / GIB:.1f}: less than {margin_ratio:.0%} would be left over"


@dataclass(frozen=True)
class Reading:
    """What one setting did: speed, memory, and the utilization the driver reported."""

    samples_per_s: float
    utilization_pct: float | Unknown
    peak_bytes: int | Unknown


@dataclass(frozen=True)
class Step:
    """One setting that was tried, and the outcome. `gain` is over the step kept before it."""

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

    def as_json(self) -> dict[str, Any]:
        """The step without its settings; the ladder has those of the steps that were kept."""
        shown = ("axis", "name", "outcome", "why", "round", "gain", "opened_s", "parity")
        speed = {"samples_per_s": self.reading.samples_per_s if self.reading else None}
        return {name: getattr(self, name) for name in shown} | speed


@dataclass(frozen=True)
class Climb:
    """All that was tried, in order."""

    steps: tuple[Step, ...]
    start: Settings
    winner: Settings
    total: Gain | None
    spent_s: float
    min_gain_ratio: float
    notes: tuple[str, ...] = ()
    side_by_side: tuple[float, float] | None = None  # samples per second of start and winner, alternating at the end

    @property
    def kept(self) -> tuple[Step, ...]:
        """The rungs of the ladder: the start and each step that stayed."""
        return tuple(s for s in self.steps if s.outcome in ("start", "kept"))

    @property
    def gained(self) -> bool:
        """Whether anything was worth a change."""
        return self.winner != self.start


@dataclass
class Tried:
    """What the trials so far show about those to come."""

    plan: Plan
    _never: set[str] = field(default_factory=set)
    _no_room: set[str] = field(default_factory=set)
    _slower: set[str] = field(default_factory=set)
    _ratios: dict[str, float] = field(default_factory=dict)
    _opened: list[tuple[Settings, float]] = field(default_factory=list)

    def refused(self, name: str, *, memory: bool = False) -> None:
        """It cannot be run: for lack of memory at present, or at all."""
        (self._no_room if memory else self._never).add(name)

    def gained_nothing(self, name: str, ratio: float) -> None:
        """It ran, this many times as fast."""
        self._ratios[name] = ratio
        if ratio < self.plan.hopeless_ratio:
            self._slower.add(name)

    def kept(self, before: Settings, after: Settings) -> None:
        """A change was kept, so findings about others may no longer hold.

        A precision that only added launches to small passes can gain on large ones; a narrower one makes room.
        """
        changed = before.changed(after)
        if "batch" in changed:
            self._slower.clear()
        if "precision" in changed or "compile" in changed:
            self._no_room.clear()

    def hopeless(self, name: str) -> bool:
        """Whether trying it now is pointless."""
        return name in self._never or name in self._no_room or name in self._slower

    def harmless(self, name: str) -> bool:
        """Whether it lost nothing by itself, as far as it was tried."""
        return not self.hopeless(name) and self._ratios.get(name, 1.0) >= 1 - self.plan.min_gain_ratio

    def opened(self, settings: Settings, seconds: float) -> None:
        """How long opening these took."""
        self._opened.append((settings, seconds))

    def opening_s(self, settings: Settings) -> float:
        """How long opening these may take: as the last of their kind, else the plan's figure for a compilation."""
        alike = [took for seen, took in self._opened if _graph(seen) == _graph(settings)]
        if alike or settings.compile == "off":
            return alike[-1] if alike else 0.0
        compiled = [took for seen, took in self._opened if seen.compile == settings.compile]
        return max(compiled, default=max((axis.opens_s for axis in self.plan.axes), default=0.0))


def _graph(settings: Settings) -> tuple[object, ...]:
    """What settings share that need no compilation of their own."""
    if settings.compile == "off":
        return ("off",)
    return settings.compile, settings.precision, settings.batch, settings.channels_last
