"""What slows this loop, measured on it? Every module of this package registers topics.

waits    the device waits for batches, for copies, or because the host waits for it
compute  precision, sizes and number of the kernels, and how far MFU is from what loops reach
memory   memory no batch uses, memory held but unused, work done twice, no memory left

Thresholds, gains, titles and the changes to make are in data/findings.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.registry import Registry
from gpuledger.training.meter.observed import Observed

Facts = dict[str, Any]
Topic = Callable[[Observed, Facts], MeasuredFinding | None]
Saved = tuple[float, float, float]
TOPICS: Registry[Topic] = Registry("training topic", "gpuledger.training.findings")
COMPUTE = ("forward", "backward")
NO_TIME: Saved = (0.0, 0.0, 0.0)


def find_all(seen: Observed) -> tuple[MeasuredFinding, ...]:
    """Every topic that shows in the loop, the largest saving first."""
    found = [f for name, topic in TOPICS if (f := topic(seen, facts(name))) is not None]
    return tuple(sorted(found, key=lambda f: (-f.middle, -f.high, f.topic)))


@cache
def facts(topic: str) -> Facts:
    """Thresholds, gains and texts of a topic, with its name; only the name for a topic from outside the package."""
    file = load_toml(data_dir("gpuledger.training", "data", "findings.toml"), dict[str, Any])
    return {"topic": topic, **file.get(topic, {})}


def share_of(share: float, known: Facts) -> Saved:
    """The saved share of the step: a part of the share that was measured."""
    return share * known["saves_low_ratio"], share * known["saves_middle_ratio"], share * known["saves_high_ratio"]


def by_speedup(share: float, speedups: tuple[float, ...]) -> Saved:
    """Amdahl: only the share that runs faster is saved, and at most that."""
    low, middle, high = (share * (1 - 1 / speedup) for speedup in speedups)
    return low, middle, high


def speedups(known: Facts, name: str = "speedup") -> tuple[float, ...]:
    """Low, middle and high."""
    return tuple(known[f"{name}_{end}"] for end in ("low", "middle", "high"))


def finding(known: Facts, why: str, saved: Saved, figures: dict[str, float], **texts: str) -> MeasuredFinding:
    """A finding whose gain is kept within the step; `texts` replace the title, rule or change of the topic."""
    low, middle, high = sorted(min(max(x, 0.0), 1.0) for x in saved)
    words = f"saves {_pct(low)} to {_pct(high)} of the step" if high > 0 else "saves no time by itself"
    shown = {name: known[name] for name in ("topic", "rule", "title", "change", "source")} | texts
    shown["change"] = shown["change"].strip() + "\n"
    numbers = {k: float(v) for k, v in figures.items()}
    return MeasuredFinding(**shown, why=why, low=low, middle=middle, high=high, gain_words=words, figures=numbers)


def _pct(ratio: float) -> str:
    return f"{100 * ratio:.0f} %" if ratio >= 0.0995 or ratio == 0 else f"{100 * ratio:.1f} %"
