"""What slows this loop, measured on it? Every module of this package registers topics.

waits    the device waits for batches, for copies, or because the host waits for it
compute  precision, sizes and number of the kernels, and how far MFU is from what loops reach
memory   memory no batch uses, memory held but unused, work done twice, no memory left
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.registry import Registry
from gpuledger.training.meter.observed import Observed

Topic = Callable[[Observed], MeasuredFinding | None]
Saved = tuple[float, float, float]
TOPICS: Registry[Topic] = Registry("training topic", "gpuledger.training.findings")
COMPUTE = ("forward", "backward")
NO_TIME: Saved = (0.0, 0.0, 0.0)


def find_all(seen: Observed) -> tuple[MeasuredFinding, ...]:
    """Every topic that shows in the loop, the largest saving first."""
    found = [f for _, topic in TOPICS if (f := topic(seen)) is not None]
    return tuple(sorted(found, key=lambda f: (-f.middle, -f.high, f.topic)))


@cache
def _file() -> dict[str, Any]:
    return load_toml(data_dir("gpuledger.training", "data", "findings.toml"), dict[str, Any])


def facts(topic: str) -> dict[str, Any]:
    """Thresholds and gains of a topic, as the data file gives them."""
    found: dict[str, Any] = _file()[topic]
    return found


def share_of(share: float, known: dict[str, Any]) -> Saved:
    """The saved share of the step: a part of the share that was measured."""
    return share * known["saves_low_ratio"], share * known["saves_middle_ratio"], share * known["saves_high_ratio"]


def by_speedup(share: float, speedups: tuple[float, ...]) -> Saved:
    """Amdahl: only the share that runs faster is saved, and at most that."""
    low, middle, high = (share * (1 - 1 / speedup) for speedup in speedups)
    return low, middle, high


def speedups(known: dict[str, Any], name: str = "speedup") -> tuple[float, ...]:
    """Low, middle and high."""
    return tuple(known[f"{name}_{end}"] for end in ("low", "middle", "high"))


def finding(
    topic: str, rule: str, title: str, why: str, change: str, saved: Saved, source: str, **figures: float
) -> MeasuredFinding:
    """A finding whose gain is kept within the step."""
    low, middle, high = sorted(min(max(x, 0.0), 1.0) for x in saved)
    words = f"saves {_pct(low)} to {_pct(high)} of the step" if high > 0 else "saves no time by itself"
    return MeasuredFinding(
        topic=topic, rule=rule, title=title, why=why, change=change.strip() + "\n", low=low, middle=middle, high=high,
        gain_words=words, source=source, figures={k: float(v) for k, v in figures.items()},
    )  # fmt: skip


def _pct(ratio: float) -> str:
    return f"{100 * ratio:.0f} %" if ratio >= 0.0995 or ratio == 0 else f"{100 * ratio:.1f} %"
