"""What was tried already: is it worth trying again, and how long may opening it take?"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuledger.training.tune.choices import Plan
from gpuledger.training.tune.settings import Settings


@dataclass
class Tried:
    """What the trials so far say of those to come."""

    plan: Plan
    _never: set[str] = field(default_factory=set)
    _no_room: set[str] = field(default_factory=set)
    _slower: set[str] = field(default_factory=set)
    _ratios: dict[str, float] = field(default_factory=dict)
    _opened: list[tuple[Settings, float]] = field(default_factory=list)

    def refused(self, name: str, *, memory: bool = False) -> None:
        """It cannot be run: for want of room as things stand, or at all."""
        (self._no_room if memory else self._never).add(name)

    def gained_nothing(self, name: str, ratio: float) -> None:
        """It ran, this many times as fast."""
        self._ratios[name] = ratio
        if ratio < self.plan.hopeless_ratio:
            self._slower.add(name)

    def kept(self, before: Settings, after: Settings) -> None:
        """Something stayed, and what was said of others may not hold any more.

        A precision that only added launches to small passes can gain on large ones; one of shorter numbers makes room.
        """
        changed = before.changed(after)
        if "batch" in changed:
            self._slower.clear()
        if "precision" in changed or "compile" in changed:
            self._no_room.clear()

    def hopeless(self, name: str) -> bool:
        """Whether trying it is in vain as things stand."""
        return name in self._never or name in self._no_room or name in self._slower

    def harmless(self, name: str) -> bool:
        """Whether it lost nothing by itself, as far as it was tried."""
        return not self.hopeless(name) and self._ratios.get(name, 1.0) >= 1 - self.plan.min_gain_ratio

    def opened(self, settings: Settings, seconds: float) -> None:
        """Opening these took so long."""
        self._opened.append((settings, seconds))

    def opening_s(self, settings: Settings) -> float:
        """How long opening these may take: as the last of their kind; the plan says it of a first compilation."""
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
