"""Is it still the same training: does the loss follow the same curve from the same seed on the same data?

Rounding differs between precisions, kernels and orders of addition, so curves agree only nearly. The difference of two
curves is the largest gap between them, over the largest loss of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Parity:
    """How far the new curve strays from the old, and what that means."""

    deviation_ratio: float | None
    tolerance_ratio: float
    updates: int
    why: str = ""

    @property
    def kept(self) -> bool:
        """Whether it may pass as the same training."""
        return not self.why


def finite(curve: Sequence[float]) -> bool:
    """Whether every loss is a number."""
    return all(math.isfinite(loss) for loss in curve)


def compare(old: Sequence[float], new: Sequence[float], tolerance_ratio: float) -> Parity:
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
