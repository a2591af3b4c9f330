"""Is the new way really faster than the old, and when has that been seen well enough?

Windows of both are measured in turns (old new, new old, ...), so that drift of clocks and neighbours meets both alike.
Each pair gives one ratio; the interval is Student's t on the logarithms of the ratios. It is looked at after a few
numbers of pairs, and the allowed error is shared among these looks (Bonferroni), so looking often proves nothing.
What does not look like a gain is given up: at the first look where it was slower, later where it made less than half of
the gain that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from gpuledger.efficiency.trend import critical

Window = Callable[[], float]
Verdict = Literal["faster", "no gain"]
# A new way that needs this many times as long in its first pair is not measured further.
HOPELESS_FIRST_RATIO = 0.7


@dataclass(frozen=True)
class Gain:
    """How many times as fast, with the interval and the number of pairs it rests on; no interval from one pair."""

    ratio: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def pct(self) -> float:
        """The gain in percent of the old speed."""
        return 100 * (self.ratio - 1)


@dataclass(frozen=True)
class Duel:
    """What a comparison found; rates in samples a second."""

    gain: Gain
    verdict: Verdict
    old_rates: tuple[float, ...]
    new_rates: tuple[float, ...]
    cut_short: bool = False


@dataclass(frozen=True)
class Rule:
    """When a gain counts, and how long to look for it."""

    min_gain_ratio: float = 0.02
    looks: tuple[int, ...] = (3, 5, 8)
    p: float = 0.05

    @property
    def p_each_look(self) -> float:
        """The error allowed at each of the looks."""
        return self.p / len(self.looks)


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


def duel(old: Window, new: Window, rule: Rule, late: Callable[[], bool] = lambda: False) -> Duel:
    """Measure pairs until it is plain which way it went; undecided at the end, or when it is late, is no gain."""
    old_rates: list[float] = []
    new_rates: list[float] = []
    while True:
        turns = [(old, old_rates), (new, new_rates)]
        for window, rates in turns if len(old_rates) % 2 == 0 else reversed(turns):
            rates.append(window())
        gain = gain_of(old_rates, new_rates, rule.p_each_look)
        if _settled(gain, rule):
            verdict: Verdict = "faster" if is_gain(gain, rule.min_gain_ratio) else "no gain"
            return Duel(gain, verdict, tuple(old_rates), tuple(new_rates))
        if late():
            return Duel(gain, "no gain", tuple(old_rates), tuple(new_rates), cut_short=True)


def _settled(gain: Gain, rule: Rule) -> bool:
    if gain.pairs == 1 and rule.looks[0] > 1 and gain.ratio < HOPELESS_FIRST_RATIO:
        return True
    if gain.pairs not in rule.looks:
        return False
    least = 1.0 if gain.pairs == rule.looks[0] else 1 + rule.min_gain_ratio / 2
    futile = gain.ratio < least or (gain.high is not None and gain.high < 1 + rule.min_gain_ratio)
    return futile or is_gain(gain, rule.min_gain_ratio) or gain.pairs == rule.looks[-1]


def in_words(gain: Gain) -> str:
    """ "1.52x (1.49 to 1.55)"."""
    if gain.low is None or gain.high is None:
        return f"{gain.ratio:.2f}x (one pair)"
    return f"{gain.ratio:.2f}x ({gain.low:.2f} to {gain.high:.2f})"
