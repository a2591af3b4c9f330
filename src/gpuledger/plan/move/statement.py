"""What does the plan from the ledger hold? Namespaces, what they needed, what is proposed and what was refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.cost.savings import Spread
from gpuledger.plan.market import MarketOption, PriceBasis
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import Unknown

Evidence = Literal["counters", "power", "none"]
Kind = Literal["fewer", "slices", "other"]
Level = Literal["low", "medium", "high"]
WELL_OPTIMIZED = "already well optimized"
# What becomes of some GPUs; the verdict puts it in words.
Outcome = Literal["unallocated", "unknown GPU", "not sampled", "move", "stay", "not rated", "well optimized"]


STAYS = UsdRange(Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True)
class Measured:
    """What a namespace's GPUs of one model really did. Busy-hour figures are the p95 of each GPU, added up.

    `tflops` are means over observed time of all GPUs together; by power they are a ceiling.
    """

    gpus: int
    observed_h: float
    busy_gpu_h: float
    busy_ratio: float
    busy_hours_gpus: float
    evidence: Evidence
    tflops_low: float | Unknown
    tflops_middle: float | Unknown
    tflops_high: float | Unknown
    busy_hours_tflops: float | Unknown
    busy_hours_dram_bytes_per_s: float | Unknown
    memory_max_bytes: float | Unknown
    nvlink_bytes_per_s: float | Unknown
    phases_pct: Mapping[str, float]
    purpose: str | None
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Move:
    """One way to carry the same demand. Percentages are of what the namespace pays for these GPUs.

    `moved` of `gpus_now` become `gpus_after` (cautious, middle, bold); the others stay. `saving` is what the buckets it
    acts on hold at most; `claimed_pct` is the figure before that cap.
    """

    kind: Kind
    title: str
    gpu: str
    gpu_name: str
    slice_name: str | None
    gpus_now: int
    moved: int
    gpus_after: tuple[int, int, int]
    claimed_pct: Decimal
    cap_pct: Decimal
    capped: bool
    saving: Spread
    saving_usd: Decimal | Unknown
    saving_month: UsdRange | Unknown
    with_spot_pct: Decimal | Unknown
    spot_words: str
    fits: str
    risk: Level
    risk_reasons: tuple[str, ...]
    effort_hours: float
    price: PriceBasis | None
    example: MarketOption | None


@dataclass(frozen=True)
class RefusedMove:
    """A move that cannot carry the demand or saves nothing, and what would change that."""

    kind: Kind
    gpu_name: str
    reason: str
    why: str
    remedy: str


@dataclass(frozen=True)
class HoldingPlan:
    """A namespace's GPUs of one model: what they did, the proposed move (None: stay), runners-up, refused moves.

    `spot_pct`: what spot of the present GPU would save, p10, median and p90 over zones. `cheaper_host`: an instance
    type that sells the same GPU for less, by `cheaper_host_pct`. Both are lower prices, not in the dollars.
    """

    namespace: str
    gpu_model: str | None
    measured: Measured
    paid_usd: Decimal | Unknown
    paid_h: float
    waste_usd: Decimal | Unknown
    month_now_usd: Decimal | Unknown
    month_after_usd: Decimal | Unknown
    outcome: Outcome
    verdict: str
    move: Move | None
    runners_up: tuple[Move, ...]
    refused: tuple[RefusedMove, ...]
    spot_pct: Spread | Unknown
    unpriced_gpus: int = 0
    cheaper_host: MarketOption | None = None
    cheaper_host_pct: Decimal | None = None

    @property
    def saving_month(self) -> UsdRange | Unknown:
        """What the proposed move saves; nothing where it stays."""
        if isinstance(self.month_now_usd, Unknown):
            return self.month_now_usd
        return self.move.saving_month if self.move else STAYS

    @property
    def saved_usd(self) -> Decimal:
        """What the proposed move would have saved in the window, as far as the GPUs have a price."""
        saved = self.move.saving_usd if self.move else Decimal(0)
        return Decimal(0) if isinstance(saved, Unknown) else saved


@dataclass(frozen=True)
class NamespacePlan:
    """All GPUs of a namespace. Dollars are the sums over GPUs with a price; `unpriced_gpus` are in none of them."""

    namespace: str
    gpus: int
    unpriced_gpus: int
    paid_usd: Decimal | Unknown
    waste_usd: Decimal | Unknown
    month_now_usd: Decimal | Unknown
    month_after_usd: Decimal | Unknown
    saving_month: UsdRange | Unknown
    saving_pct: Decimal | Unknown
    verdict: str
    holdings: tuple[HoldingPlan, ...]

    @property
    def saved_usd(self) -> Decimal:
        """What the proposed moves would have saved in the window."""
        return sum((holding.saved_usd for holding in self.holdings), Decimal(0))


@dataclass(frozen=True)
class LakePlan:
    """The whole plan; every total is the sum of its namespaces, as far as they have a price."""

    start_ms: int
    end_ms: int
    today: dt.date
    gpus: int
    unpriced_gpus: int
    paid_usd: Decimal | Unknown
    waste_usd: Decimal | Unknown
    month_now_usd: Decimal | Unknown
    month_after_usd: Decimal | Unknown
    saving_month: UsdRange | Unknown
    saving_pct: Decimal | Unknown
    headline: str
    beside_audit: str
    namespaces: tuple[NamespacePlan, ...]
    not_known: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]
    price_source: str
