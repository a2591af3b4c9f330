"""What is a finding: where does it begin, what does it rest on, what can it save at most?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.registry import Registry
from gpuledger.training.meter.observed import Observed

Topic = Callable[[Observed], MeasuredFinding | None]
Saved = tuple[float, float, float]
TOPICS: Registry[Topic] = Registry("training topic", "gpuledger.training.findings")
COMPUTE = ("forward", "backward")


class _File(msgspec.Struct, frozen=True):
    version: int
    as_of: str
    loader: dict[str, Any]
    h2d: dict[str, Any]
    sync: dict[str, Any]
    precision: dict[str, Any]
    tensor_cores: dict[str, Any]
    fusion: dict[str, Any]
    optimizer: dict[str, Any]
    batch: dict[str, Any]
    memory: dict[str, Any]
    mfu: dict[str, Any]


@cache
def facts(topic: str) -> dict[str, Any]:
    """Limits and gains of a topic, as its data file gives them."""
    found: dict[str, Any] = getattr(load_toml(data_dir("gpuledger.training", "data", "findings.toml"), _File), topic)
    return found


def topic(name: str) -> Callable[[Topic], Topic]:
    """Decorator: make a function a topic."""
    return TOPICS.register(name)


def share_of(share: float, known: dict[str, Any]) -> Saved:
    """The saved share of the step: a part of the share that was measured."""
    return share * known["saves_low_ratio"], share * known["saves_middle_ratio"], share * known["saves_high_ratio"]


def by_speedup(share: float, low: float, middle: float, high: float) -> Saved:
    """Amdahl: only the share that runs faster is saved, and at most that."""
    return share * (1 - 1 / low), share * (1 - 1 / middle), share * (1 - 1 / high)


def finding(
    name: str,
    rule: str,
    title: str,
    why: str,
    change: str,
    saved: Saved,
    source: str,
    **figures: float,
) -> MeasuredFinding:
    """A finding whose gain is kept within the step."""
    low, middle, high = sorted(min(max(x, 0.0), 1.0) for x in saved)
    words = f"saves {_pct(low)} to {_pct(high)} of the step" if high > 0 else "saves no time by itself"
    return MeasuredFinding(
        topic=name,
        rule=rule,
        title=title,
        why=why,
        change=change.strip() + "\n",
        low=low,
        middle=middle,
        high=high,
        gain_words=words,
        source=source,
        figures={k: float(v) for k, v in figures.items()},
    )


def _pct(ratio: float) -> str:
    return f"{100 * ratio:.0f} %" if ratio >= 0.0995 or ratio == 0 else f"{100 * ratio:.1f} %"
