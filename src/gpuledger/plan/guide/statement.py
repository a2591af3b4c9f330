"""What does a migration plan hold? The setup, what was chosen, what was refused and why, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.market import Purchase
from gpuledger.units import Unknown

Level = Literal["low", "medium", "high"]
CANNOT_FIT = "CANNOT FIT MODEL"
_NOT_COUNTED = Unknown("it was not asked for")


@dataclass(frozen=True)
class Job:
    """What runs. `busy_ratio`: the share of the present capacity in use, where it was measured."""

    workload: WorkloadType
    model: Model
    size: str
    precision: str
    monthly_h: Decimal
    use_case: str
    priority: str
    spot_asked: bool
    spot_suitable: bool
    method: str = "lora"
    busy_ratio: float | None = None
    name: str = ""
    workload_id: str = ""
    description: str = ""
    expected_outcome: str = ""
    tags: tuple[str, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it must answer at all hours; other work has an end."""
        return self.workload is WorkloadType.INFERENCE and self.use_case != "batch_inference"

    @property
    def adapts(self) -> bool:
        """Whether it trains adapters (LoRA, QLoRA) instead of the whole model."""
        return self.workload is WorkloadType.FINE_TUNING and self.method != "full"

    def as_json(self) -> dict[str, Any]:
        """The model by its name; text that was not given as null."""
        made = {name: None if value == "" else value for name, value in vars(self).items() if name != "workload"}
        method = self.method if self.workload is WorkloadType.FINE_TUNING else None
        model = {"model": self.model.name, "params_total": self.model.params_total}
        return made | model | {"workload_type": self.workload, "method": method}


@dataclass(frozen=True)
class Candidate:
    """A number of GPUs of an instance type under one purchase option. `usd_per_h` is for these GPUs: their share of the
    instances they are in, or whole instances where only whole ones are sold (`whole`)."""

    id: str
    instance: str
    family: str
    gpu: Gpu | Unknown
    gpu_name: str
    gpus: int
    gpus_per_instance: int
    purchase: Purchase
    usd_per_gpu_h: Decimal | Unknown
    high_usd_per_gpu_h: Decimal | Unknown
    usd_per_h: Decimal | Unknown
    whole_usd_per_h: Decimal | Unknown
    price_scope: str
    price_date: str
    price_source: str
    cloud: str = "aws"
    region: str = ""
    zones: int | None = None
    stale: bool = False
    whole: bool = False

    @property
    def nodes(self) -> int:
        """Instances it takes."""
        return -(-self.gpus // self.gpus_per_instance)

    @property
    def name(self) -> str:
        """What a person would call it."""
        where = f" in {self.region}" if self.region else ""
        return f"{self.gpus} x {self.gpu_name} ({self.instance}{where}, {self.purchase})"

    def as_json(self) -> dict[str, Any]:
        """The GPU by its key."""
        return {**vars(self), "gpu": getattr(self.gpu, "key", self.gpu), "nodes": self.nodes, "words": self.name}


@dataclass(frozen=True)
class _OfCandidate:
    candidate: Candidate

    def as_json(self) -> dict[str, Any]:
        """With the fields of its candidate next to its own."""
        return self.candidate.as_json() | {name: v for name, v in vars(self).items() if name != "candidate"}


@dataclass(frozen=True)
class Rate:
    """Work per second, with the range its estimate is known to have."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Placement:
    """How the job sits on the GPUs: its split, the memory of the fullest GPU by part, and how fast it goes."""

    words: str
    copies: int
    gpus_per_copy: int
    batch: int
    parts: Mapping[str, int]
    per_gpu_bytes: int
    capacity_bytes: int
    rate: Rate | Unknown
    unit: str

    @property
    def headroom_ratio(self) -> float:
        """Free memory of the fullest GPU over what it has."""
        return 1 - self.per_gpu_bytes / self.capacity_bytes

    @property
    def speed(self) -> float | None:
        """Work per second, where it is known."""
        return None if isinstance(self.rate, Unknown) else self.rate.middle

    def as_json(self) -> dict[str, Any]:
        """With the headroom."""
        return {**vars(self), "headroom_ratio": self.headroom_ratio}


@dataclass(frozen=True)
class Misfit:
    """Why the job does not run there, and what would make it run."""

    kind: str
    why: str
    remedies: tuple[str, ...]
    per_gpu_bytes: int | Unknown = _NOT_COUNTED
    capacity_bytes: int | Unknown = _NOT_COUNTED


@dataclass(frozen=True)
class Judged:
    """A level with its reasons."""

    level: Level
    amount: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """A guideline, applied to one option."""

    rule: str
    words: str
    kept: bool


@dataclass(frozen=True)
class Option(_OfCandidate):
    """A candidate that can do the job. Dollars are per month; low and high come from the range of the price and, where
    faster means cheaper, of the speed. `not_scored`: measures that are unknown and so not in the score."""

    placement: Placement
    current: bool
    monthly_h: Decimal
    monthly_usd: Decimal
    low_monthly_usd: Decimal
    high_monthly_usd: Decimal
    usd_per_million: Decimal | Unknown
    saving_usd: Decimal | Unknown
    saving_pct: float | Unknown
    speed_ratio: float | Unknown
    risk: Judged
    effort: Judged
    guidelines: tuple[Verdict, ...]
    other_purchase_usd: Decimal | Unknown = _NOT_COUNTED
    measures: Mapping[str, float] = field(default_factory=dict)
    cost_score: float | Unknown = _NOT_COUNTED
    performance_score: float | Unknown = _NOT_COUNTED
    reliability_score: float | Unknown = _NOT_COUNTED
    score: float = 0.0
    not_scored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused(_OfCandidate):
    """A candidate that was not considered further: the kind of reason, the reason, and the remedy."""

    kind: str
    why: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class RefusedGroup:
    """Refused candidates of one GPU for one kind of reason; `why` and `remedies` are of the largest count."""

    gpu_name: str
    instances: tuple[str, ...]
    kind: str
    counts: tuple[int, ...]
    candidates: int
    why: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class RuleOfThumb:
    """The memory rule of thumb compared with the real breakdown."""

    weights_bytes: int
    multiplier: float
    rule_bytes: int
    size_multiplier: float | Unknown
    size_rule_bytes: int | Unknown
    real_bytes: int | Unknown
    real_parts: Mapping[str, int]
    words: str


@dataclass(frozen=True)
class Sharing:
    """What else one GPU could hold: copies of a small job, or a slice for one."""

    on: str
    jobs_per_gpu: int
    usd_per_job_month: Decimal | Unknown
    slice: str | Unknown
    slice_usd_per_month: Decimal | Unknown
    words: str


@dataclass(frozen=True)
class Current(_OfCandidate):
    """What runs now: what it costs, whether it fits, how fast it is."""

    monthly_usd: Decimal | Unknown
    whole_monthly_usd: Decimal | Unknown
    other_purchase_usd: Decimal | Unknown
    placement: Placement | Misfit

    @property
    def rate(self) -> Rate | Unknown:
        """How fast it is; unknown where it does not fit."""
        placed = self.placement
        return Unknown(f"the present setup cannot run it: {placed.why}") if isinstance(placed, Misfit) else placed.rate

    def as_json(self) -> dict[str, Any]:
        """With the fields of its candidate, and whether it fits."""
        return {**super().as_json(), "fits": not isinstance(self.placement, Misfit)}


@dataclass(frozen=True)
class MigrationPlan:
    """The answer to one question."""

    job: Job
    current: Current
    verdict: Literal["move", "already well optimized", "nothing fits"]
    recommendation: str
    chosen: Option | None
    cheapest: Option | None
    fastest: Option | None
    runners_up: tuple[Option, ...]
    options: tuple[Option, ...]
    refused: tuple[Refused, ...]
    refused_groups: tuple[RefusedGroup, ...]
    memory: RuleOfThumb
    sharing: tuple[Sharing, ...]
    weights: Mapping[str, float]
    prices: str
    price_dates: tuple[str, str]
    illustrative: bool
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The best options by their ids: each is among the options."""
        ids = {name: o and o.candidate.id for name, o in (("cheapest", self.cheapest), ("fastest", self.fastest))}
        return {**vars(self), **ids, "runners_up": [option.candidate.id for option in self.runners_up]}
