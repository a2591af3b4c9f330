"""What runs, what could it run on, and how does it sit there? Frozen data that all steps of a migration plan share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.market import Purchase
from gpuledger.units import Unknown

CANNOT_FIT = "CANNOT FIT MODEL"
NOT_COUNTED = Unknown("it was not asked for")


@dataclass(frozen=True)
class Job:
    """What runs. `busy_ratio`: the share of the present capacity in use, where it was measured. `fixed_gpus`: the
    number of GPUs, where it must stay."""

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
    fixed_gpus: int | None = None
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
    instances they are in, or whole instances where only whole ones are sold (`whole`). `span`: a slow and a fast
    reading of the GPU where its figures leave room."""

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
    span: tuple[Gpu, Gpu] | None = None

    @property
    def nodes(self) -> int:
        """Instances it takes."""
        return -(-self.gpus // self.gpus_per_instance)

    @property
    def name(self) -> str:
        """What a person would call it."""
        where = f" in {self.region}" if self.region else ""
        return f"{self.gpus} x {self.gpu_name} ({self.instance}{where}, {self.purchase})"

    @property
    def offer(self) -> tuple[str, str, str, str]:
        """What is bought, whatever the number."""
        return self.cloud, self.region, self.instance, self.purchase

    def as_json(self) -> dict[str, Any]:
        """The GPU by its key."""
        made = {name: value for name, value in vars(self).items() if name != "span"}
        return {**made, "gpu": getattr(self.gpu, "key", self.gpu), "nodes": self.nodes, "words": self.name}


@dataclass(frozen=True)
class Rate:
    """Work per second, with the range its estimate is known to have."""

    low: float
    middle: float
    high: float

    def times(self, copies: int) -> Rate:
        """The rate of several copies."""
        return Rate(copies * self.low, copies * self.middle, copies * self.high)


@dataclass(frozen=True)
class Placement:
    """How the job sits on the GPUs: its split, the memory of the fullest GPU by part, and how fast it goes.

    `slow_network`: work per second over the slower network, where it spans instances.
    """

    words: str
    copies: int
    gpus_per_copy: int
    batch: int
    parts: Mapping[str, int]
    per_gpu_bytes: int
    capacity_bytes: int
    rate: Rate | Unknown
    unit: str
    slow_network: float | None = None

    @property
    def headroom_ratio(self) -> float:
        """Free memory of the fullest GPU over what it has."""
        return 1 - self.per_gpu_bytes / self.capacity_bytes

    @property
    def speed(self) -> float | None:
        """Work per second, where it is known."""
        return None if isinstance(self.rate, Unknown) else self.rate.middle

    @property
    def sure_ratio(self) -> float:
        """The share of the speed that is left over the slower network."""
        return 1.0 if self.slow_network is None or not self.speed else min(1.0, self.slow_network / self.speed)

    def as_json(self) -> dict[str, Any]:
        """With the headroom."""
        return {**vars(self), "headroom_ratio": self.headroom_ratio}


@dataclass(frozen=True)
class Misfit:
    """Why the job does not run there, and what would make it run."""

    kind: str
    why: str
    remedies: tuple[str, ...]
    per_gpu_bytes: int | Unknown = NOT_COUNTED
    capacity_bytes: int | Unknown = NOT_COUNTED
