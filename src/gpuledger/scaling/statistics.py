"""How sure can we be of a figure made from few samples? Quantiles, resampling, exact tests.

Every draw comes from a seed that is an argument: the same samples and seed give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gpuledger.units import Range, Unknown

LEVEL = 0.95
REPEATS = 2000
MANY = 2_000  # from this many values on, quantiles are drawn by their rank
VERY_MANY = 10_000  # and means by the normal law
LEAST_REPEATS = 200
DRAWS = 20_000_000  # samples drawn in all, so that a long run takes a few seconds at most
BLOCK = 2_000_000
EXACT_UP_TO = 5_000
LEAST_BLOCKS = 5
NOTHING = "no samples"

Statistic = Callable[[np.ndarray], np.ndarray]


class Interval(Range):
    """A figure with the range that 95 % of resampled figures fall into."""

    def __init__(self, value: float, low: float, high: float) -> None:
        super().__init__(low, value, high, "")

    @property
    def value(self) -> float:
        """The figure itself."""
        return self.middle

    def as_json(self) -> dict[str, float]:
        """The figure first, then its range."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def holds(self, other: float) -> bool:
        """Whether another figure lies within the range."""
        return self.low <= other <= self.high

    def each(self, change: Callable[[float], float]) -> Interval:
        """The figure and its range after the same rising change to all three."""
        return Interval(change(self.value), change(self.low), change(self.high))

    def words(self, unit: str) -> str:
        """The figure with its range."""
        shown = f"{number(self.value)} {unit}".rstrip()
        return shown if self.low == self.high else f"{shown} ({number(self.low)} to {number(self.high)})"


def number(value: float) -> str:
    """A figure to three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if value else "0"


def took(seconds: float) -> str:
    """Seconds; in milliseconds below ten."""
    return f"{1000 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"


def quantile(values: Sequence[float], share: float) -> float | Unknown:
    """The quantile by linear interpolation; unknown where fewer samples than one beyond it can be expected."""
    need = needed(share)
    if not len(values):
        return Unknown(NOTHING)
    if len(values) < need:
        what = f"too few samples for the {100 * share:g}th percentile"
        return Unknown(f"{what}: {len(values)}, at least {need} are needed")
    return float(np.quantile(np.asarray(values, dtype=float), share))


def needed(share: float) -> int:
    """How many samples a quantile needs so that at least one is expected beyond it."""
    tail = min(share, 1 - share)
    return math.ceil(1 / tail - 1e-9) if 0 < tail < 0.5 else 1


def repeats_for(size: int) -> int:
    """How often samples of this size are drawn."""
    return max(LEAST_REPEATS, min(REPEATS, DRAWS // max(size, 1)))


def resampled(values: Sequence[float] | np.ndarray, statistic: Statistic, seed: int) -> np.ndarray:
    """The statistic of samples drawn with replacement; it works on the last axis."""
    data, rng = np.asarray(values, dtype=float), np.random.default_rng(seed)
    total, block = repeats_for(len(data)), max(1, BLOCK // max(len(data), 1))
    out = []
    for start in range(0, total, block):
        drawn = rng.integers(0, len(data), size=(min(block, total - start), len(data)))
        out.append(statistic(data[drawn]))
    return np.concatenate(out)


def interval_of(value: float, draws: np.ndarray, level: float = LEVEL) -> Interval:
    """The middle share of the draws, widened to hold the figure itself if necessary."""
    finite = draws[np.isfinite(draws)]
    if not len(finite):
        return Interval(value, value, value)
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, min(float(low), value), max(float(high), value))


def mean_of(values: Sequence[float], seed: int) -> Interval | Unknown:
    """The mean and its interval."""
    if not len(values):
        return Unknown(NOTHING)
    return interval_of(float(np.mean(values)), mean_draws(values, seed))


def mean_draws(values: Sequence[float] | np.ndarray, seed: int) -> np.ndarray:
    """Resampled means; those of very many values follow the normal law closely enough."""
    data = np.asarray(values, dtype=float)
    if len(data) < VERY_MANY:
        return resampled(data, lambda x: x.mean(axis=-1), seed)
    return np.random.default_rng(seed).normal(data.mean(), data.std() / math.sqrt(len(data)), REPEATS)


def quantile_of(values: Sequence[float], share: float, seed: int) -> Interval | Unknown:
    """A quantile and its interval."""
    found = quantile(values, share)
    if isinstance(found, Unknown):
        return found
    if len(values) >= MANY:
        return interval_of(found, _quantile_draws(np.sort(np.asarray(values, dtype=float)), share, seed))
    return interval_of(found, resampled(values, lambda x: np.quantile(x, share, axis=-1), seed))


def _quantile_draws(ordered: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Resampled quantiles of many values without drawing them: of n values drawn with replacement the k-th smallest is
    that of n uniform ones, which is distributed as Beta(k, n - k + 1), looked up among the values themselves.
    """
    n = len(ordered)
    rank = int((n - 1) * share) + 1
    places = np.random.default_rng(seed).beta(rank, n - rank + 1, REPEATS)
    found: np.ndarray = ordered[np.minimum((places * n).astype(int), n - 1)]
    return found


def quotient_of_draws(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Draw by draw; the longer side is cut."""
    kept = min(len(above), len(below))
    with np.errstate(divide="ignore", invalid="ignore"):
        return above[:kept] / below[:kept]


def ratio_of_means(
    above: Sequence[float], below: Sequence[float], seed: int, level: float = LEVEL
) -> Interval | Unknown:
    """mean(above) / mean(below) with its interval, both sides resampled on their own."""
    if not len(above) or not len(below):
        return Unknown(NOTHING)
    over, under = (mean_draws(side, seed + i) for i, side in enumerate((above, below)))
    if float(np.mean(below)) <= 0:
        return Unknown("the mean to compare with is not above 0")
    return interval_of(float(np.mean(above) / np.mean(below)), quotient_of_draws(over, under), level)


def rate_draws(ends_s: Sequence[float], first_s: float, wall_s: float, seed: int, together: float = 1.0) -> np.ndarray:
    """Completions per second, with the gaps between completions resampled from the first start on; by their count alone
    where the instants are unknown. The time before the first start and after the last end occurs once: it is kept.

    Requests in flight `together` end in bursts, so gaps are drawn in circular blocks of that many neighbors.
    """
    done = np.sort(np.clip(np.asarray(ends_s, dtype=float), 0.0, wall_s))
    if np.isnan(done).any() or math.isnan(first_s):
        return np.random.default_rng(seed).poisson(len(done), REPEATS) / wall_s
    start = min(max(first_s, 0.0), float(done[0]))
    gaps = np.diff(np.concatenate([[start], done]))
    once = start + wall_s - float(done[-1])
    block = max(1, min(round(together), len(gaps) // LEAST_BLOCKS))
    sums = np.convolve(np.concatenate([gaps, gaps[: block - 1]]), np.ones(block), mode="valid")
    size = -(-len(gaps) // block)
    drawn = sums[np.random.default_rng(seed).integers(0, len(sums), size=(repeats_for(size), size))]
    spans = once + drawn.sum(axis=-1) * len(gaps) / (drawn.shape[-1] * block)
    with np.errstate(divide="ignore"):
        return len(done) / spans


def wilson(successes: int, tried: int) -> Interval | Unknown:
    """A share with Wilson's interval, which stays within 0 and 1 and has a width even where all succeeded."""
    if not tried:
        return Unknown("nothing was tried")
    z = 1.959963984540054
    share, spread = successes / tried, z * z / tried
    middle = (share + spread / 2) / (1 + spread)
    reach = z * math.sqrt(share * (1 - share) / tried + spread / (4 * tried)) / (1 + spread)
    return Interval(share, max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share)))


def fisher_p(good_a: int, n_a: int, good_b: int, n_b: int) -> float:
    """The probability of this few successes of a, or fewer, if both succeed alike: Fisher's exact test, and the normal
    approximation where counts are large."""
    good = good_a + good_b
    if n_a + n_b > EXACT_UP_TO:
        share = good / (n_a + n_b)
        error = math.sqrt(share * (1 - share) * (1 / n_a + 1 / n_b))
        return 0.5 * math.erfc((good_b / n_b - good_a / n_a) / error / math.sqrt(2)) if error else 1.0
    total = math.comb(n_a + n_b, n_a)
    least = max(0, good - n_b)
    ways = sum(math.comb(good, k) * math.comb(n_a + n_b - good, n_a - k) for k in range(least, good_a + 1))
    return ways / total


def sd_range(n: int, low: float, high: float, mean: float) -> tuple[float, float] | Unknown:
    """The least and the largest standard deviation n samples can have with this minimum, maximum and mean.

    The least divides by n and the largest by n - 1, so that both conventions fit.
    """
    rest = n * mean - low - high
    if n < 3 or not (n - 2) * low - 1e-9 <= rest <= (n - 2) * high + 1e-9:
        return Unknown(f"no {n} samples have this minimum, maximum and mean")
    ends = (low - mean) ** 2 + (high - mean) ** 2
    least = ends + (n - 2) * (rest / (n - 2) - mean) ** 2
    # The spread is largest with all but one of the others at the ends.
    at_high = 0 if high == low else int((rest - (n - 2) * low) / (high - low) + 1e-9)
    at_low = max(0, n - 3 - at_high)
    last = rest - at_high * high - at_low * low
    most = ends + at_high * (high - mean) ** 2 + at_low * (low - mean) ** 2 + (last - mean) ** 2
    return math.sqrt(least / n), math.sqrt(most / (n - 1))
