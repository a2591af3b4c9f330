"""Which figures does the statement of degrading GPUs have?"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.anomalies.signals import CountName, SignalName
from gpuledger.units import Unknown

# What is wrong with a GPU, as far as its readings show.
Kind = Literal[
    "heat", "power limit", "clock", "memory", "slow", "starved", "idle", "driver errors", "PCIe", "memory rows"
]  # fmt: skip
# What a GPU is compared with: its peers over the whole window, its distance to them before, or its own past alone.
Basis = Literal["peers", "own distance to peers", "own past", "fleet"]
Shape = Literal["step", "drift", "level", "count"]
# Why a GPU cannot be judged.
Reason = Literal["no peers", "too short", "no readings"]
REASONS: dict[Reason, str] = {
    "no peers": "fewer than 4 other GPUs of the same model on the same work, and fewer than 10 days of own readings",
    "too short": "fewer than 12 periods with peers",
    "no readings": "no working time, or neither clock, power, utilization nor activity recorded",
}


@dataclass(frozen=True)
class Evidence:
    """One reading that got worse. `change` is in percent for readings of form ratio, else in the unit of the reading.

    `now` and `expected`: the GPU's reading since then, and that of its peers (of its own past where it has none).
    `chance`: how often as large a difference comes up by chance in one GPU.
    """

    signal: SignalName | CountName
    title: str
    unit: str
    basis: Basis
    shape: Shape
    since_ms: int
    change: float
    change_low: float
    change_high: float
    change_unit: str
    now: float | Unknown
    expected: float | Unknown
    chance: float


@dataclass(frozen=True)
class Slowdown:
    """How much less work the GPU does, in percent, with the range it may lie in."""

    low_pct: float
    middle_pct: float
    high_pct: float


@dataclass(frozen=True)
class Dollars:
    """Dollars with the range they may lie in."""

    low_usd: Decimal
    middle_usd: Decimal
    high_usd: Decimal


@dataclass(frozen=True)
class Point:
    """The reading of a GPU in one period, and the median of its peers."""

    at_ms: int
    own: float
    peers: float | None


@dataclass(frozen=True)
class Finding:
    """A GPU that does worse.

    `gpu` is what people call it: host and index. `since_ms`: when it began; `from_start`: already so at the first
    sample of the window. `gang_gpus`: how many GPUs were on the same work; if they wait for each other, all of them
    run at the pace of this one, and `gang_usd_per_month` is what that may cost besides.
    """

    gpu: str
    gpu_uuid: str
    gpu_instance_id: str | None
    host: str | None
    gpu_index: str | None
    gpu_model: str | None
    work: str
    kind: Kind
    drifting: bool
    since_ms: int
    from_start: bool
    peers: int
    slowdown: Slowdown | Unknown
    usd_per_month: Dollars | Unknown
    gang_gpus: int
    gang_usd_per_month: Dollars | Unknown
    evidence: tuple[Evidence, ...]
    series: tuple[Point, ...]


@dataclass(frozen=True)
class NotJudged:
    """A GPU that could not be compared."""

    gpu: str
    gpu_uuid: str
    host: str | None
    gpu_index: str | None
    reason: Reason


@dataclass(frozen=True)
class Smallest:
    """The smallest difference to peers for which a GPU is named that was worse before the window began.

    `change` is in percent for readings of form ratio, else in the unit of the reading.
    """

    signal: SignalName
    title: str
    change: float
    change_unit: str


@dataclass(frozen=True)
class AnomalyStatement:
    """The GPUs that do worse than their past or their peers; the most dollars first.

    `false_findings_pct`: at most this share of changes is chance; `false_levels_pct`: the same of differences that last
    from the first sample on. `slices`: how many of `gpus` are MIG slices, which are judged one by one.
    """

    start_ms: int
    end_ms: int
    gpus: int
    by_peers: int
    by_own_past: int
    period_h: float
    tests: int
    false_findings_pct: float
    findings: tuple[Finding, ...]
    usd_per_month: Dollars | Unknown
    not_judged: tuple[NotJudged, ...]
    assumptions: tuple[str, ...]
    smallest: tuple[Smallest, ...] = ()
    false_levels_pct: float = 0.0
    slices: int = 0
