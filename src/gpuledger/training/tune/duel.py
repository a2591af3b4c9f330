"""Is the new way really faster than the old, and is it still the same training?

Windows of both are measured alternating (old new, new old, ...), so that drift of clocks and other load affects both
alike. Each pair gives one ratio; the interval is Student's t on the logarithms of the ratios. It is looked at after a
few numbers of pairs, and the allowed error is shared among these looks (Bonferroni), so looking often proves nothing.
A trial that does not look like a gain is given up: at the first look where it was slower, later where it made less
than half of the gain that counts.

Two trainings are the same where their loss curves from the same seed on the same data agree nearly: rounding differs
between precisions, kernels and orders of addition. The difference of two curves is the largest gap between them, over
the largest loss of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from gpuledger.efficiency.trend import critical

Window = Callable[[], float]
# A new way with less than this ratio in its first pair is not measured further.
HOPELESS_FIRST_RATIO = 0.7
# Start against winner: numbers of pairs after which to stop if the interval is narrow; LEAST_PAIRS when time is up.
PAIRS = (5, 8, 12, 16)
LEAST_PAIRS = 3
NARROW_RATIO = 0.05


@dataclass(frozen=True)
class Gain:
    """How many times as fast, with the interval and the number of pairs it rests on; no interval from one pair."""

    ratio: float
    low: float | None
    high: float | None
    pairs: int


@dataclass(frozen=True)
class Duel:
    """What a comparison found; rates in samples per second."""

    gain: Gain
    faster: bool
    old_rates: tuple[float, ...]
    new_rates: tuple[float, ...]
    cut_short: bool = False


@dataclass(frozen=True)
class Demand:
    """When a gain counts, and how long to look for it."""

    min_gain_ratio: float = 0.02
    looks: tuple[int, ...] = (3, 5, 8)
    p: float = 0.05


def gain_of(old: Sequence[float], new: Sequence[float], p: float) -> Gain:
    """The mean ratio of paired rates (geometric) and its interval at level p."""
    logs = [math.log(n / o) for o, n in zip(old, new, strict=True)]
    middle = fmean(logs)
    if len(logs) < 2:
        return Gain(math.exp(middle), None, None, len(logs))
    half = critical(len(logs) - 1, p) * stdev(logs) / math.sqrt(len(logs))
    return Gain(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def is_gain(gain: Gain, min_gain_ratio: float) -> bool:
    """Faster beyond the noise, and by enough to be worth a change."""
    return gain.low is not None and gain.low > 1 and gain.ratio >= 1 + min_gain_ratio


def duel(old: Window, new: Window, demand: Demand, late: Callable[[], bool] = lambda: False) -> Duel:
    """Measure pairs until the outcome is clear; undecided at the end, or when it is late, is not a gain."""
    olds, news = list[float](), list[float]()
    while True:
        _measure_pair(old, new, olds, news)
        gain = gain_of(olds, news, demand.p / len(demand.looks))
        if _settled(gain, demand):
            return Duel(gain, is_gain(gain, demand.min_gain_ratio), tuple(olds), tuple(news))
        if late():
            return Duel(gain, faster=False, old_rates=tuple(olds), new_rates=tuple(news), cut_short=True)


def _measure_pair(old: Window, new: Window, olds: list[float], news: list[float]) -> None:
    pair = [(old, olds), (new, news)]
    for window, rates in pair if len(olds) % 2 == 0 else reversed(pair):
        rates.append(window())


def _settled(gain: Gain, demand: Demand) -> bool:
    if gain.pairs == 1 and demand.looks[0] > 1 and gain.ratio < HOPELESS_FIRST_RATIO:
        return True
    if gain.pairs not in demand.looks:
        return False
    least = 1.0 if gain.pairs == demand.looks[0] else 1 + demand.min_gain_ratio / 2
    futile = gain.ratio < least or (gain.high is not None and gain.high < 1 + demand.min_gain_ratio)
    return futile or is_gain(gain, demand.min_gain_ratio) or gain.pairs == demand.looks[-1]


def in_words(gain: Gain) -> str:
    """ "1.52x (1.49 to 1.55)"."""
    if gain.low is None or gain.high is None:
        return f"{gain.ratio:.2f}x (one pair)"
    return f"{gain.ratio:.2f}x ({gain.low:.2f} to {gain.high:.2f})"


def alternate(
    old: Window, new: Window, p: float, late: Callable[[], bool], broken: type[Exception]
) -> tuple[list[float], list[float], Exception | None]:
    """Speeds of start and winner, the same number of each, and the error that ended it, if any.

    Gains of single steps are not simply multiplied. No more pairs are measured once the interval is narrow: that
    depends on their spread, not on how large the gain looks.
    """
    olds, news = list[float](), list[float]()
    failed: Exception | None = None
    while not _enough(olds, news, p) and not (len(olds) >= LEAST_PAIRS and late()):
        try:
            _measure_pair(old, new, olds, news)
        except broken as error:
            failed = error
            break
    both = min(len(olds), len(news))
    return olds[:both], news[:both], failed


def _enough(olds: list[float], news: list[float], p: float) -> bool:
    if len(olds) not in PAIRS:
        return False
    gain = gain_of(olds, news, p)
    narrow = gain.low is not None and math.log(gain.ratio / gain.low) <= math.log1p(NARROW_RATIO)
    return narrow or len(olds) == PAIRS[-1]


@dataclass(frozen=True)
class Parity:
    """How far the new curve is from the old; `why` it is not the same training, else empty."""

    deviation_ratio: float | None
    tolerance_ratio: float
    updates: int
    why: str = ""

    @property
    def kept(self) -> bool:
        """Whether it passes as the same training."""
        return not self.why

    def as_json(self) -> dict[str, Any]:
        """The figures; the reason is the step's."""
        kept = {"kept": self.kept}
        return {name: value for name, value in vars(self).items() if name != "why"} | kept


def finite(curve: Sequence[float]) -> bool:
    """Whether every loss is a number."""
    return all(math.isfinite(loss) for loss in curve)


def compare_curves(old: Sequence[float], new: Sequence[float], tolerance_ratio: float) -> Parity:
    """The two curves, update by update."""
    if not finite(new):
        at = next(i for i, loss in enumerate(new) if not math.isfinite(loss))
        return Parity(None, tolerance_ratio, len(new), f"the loss is {new[at]} at update {at + 1}")
    scale = max((abs(loss) for loss in old), default=0.0)
    gaps = [abs(a - b) for a, b in zip(old, new, strict=True)]
    widest = max(gaps, default=0.0)
    deviation = widest / scale if scale else (0.0 if not widest else math.inf)
    if deviation <= tolerance_ratio:
        return Parity(deviation, tolerance_ratio, len(new))
    at = gaps.index(widest)
    why = f"the loss at update {at + 1} is {new[at]:.4g} where it was {old[at]:.4g}: {deviation:.1%} apart"
    shown = deviation if math.isfinite(deviation) else None
    return Parity(shown, tolerance_ratio, len(new), f"{why}, allowed is {tolerance_ratio:.1%}")
