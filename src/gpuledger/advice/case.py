"""What is known of one case: one owner's GPUs of one model that behave alike?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from gpuledger.advice.health import Health
from gpuledger.catalog.gpus import Gpu
from gpuledger.cost.statement import BUCKETS, Bucket, Dollars, Times
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.ledger.read.scope import owner_name
from gpuledger.physics.purpose import By, Purpose
from gpuledger.physics.signals import Signals
from gpuledger.units import Unknown

Figure = float | Unknown
NOT_SAID = Unknown("not recorded")
IDLE_CLASSES = ("idle", "idle-held")


@dataclass(frozen=True)
class Demand:
    """What the case needs of its GPUs, beside its signals. Memory is over all of the time; the rest is while working.

    `tflops` is the work by pipe counters at the high end of what they can mean, unknown where pipes that may work are
    not recorded; `capped_ratio` is the share of the working time at a power limit below the board's own, `capped_w`
    that limit.
    """

    memory_max_ratio: Figure = NOT_SAID
    memory_mean_ratio: Figure = NOT_SAID
    memory_max_bytes: Figure = NOT_SAID
    tflops: Figure = NOT_SAID
    dram_bytes_per_s: Figure = NOT_SAID
    pcie_rx_bytes_per_s: Figure = NOT_SAID
    nvlink_bytes_per_s: Figure = NOT_SAID
    capped_ratio: float = 0.0
    capped_w: Figure = NOT_SAID


@dataclass(frozen=True)
class Case:
    """One owner's GPUs of one model whose work is of one class."""

    namespace: str | None
    workload: str | None
    gpu_model: str | None
    gpu: Gpu | Unknown
    klass: str
    evidence: tuple[str, ...]
    confidence: str
    shares: Mapping[str, float]
    phases: Mapping[str, float]
    devices: tuple[str, ...]
    gpus: int
    observed_h: float
    days: float
    signals: Signals = Signals()  # noqa: RUF009  (frozen, so one for all is safe)
    demand: Demand = Demand()
    times: Times = Times()  # noqa: RUF009
    dollars: Dollars | Unknown = Unknown("nothing was paid")  # noqa: RUF009
    idle_ratio: float = 0.0
    idle_held_ratio: float = 0.0
    memory_known: bool = True
    health: Health = Health()  # noqa: RUF009
    busy_ratio: float = 0.0
    precision: str | None = None
    tensor_kind: str | None = None
    purpose: Purpose | None = None
    purpose_by: By = "none"
    purpose_how: str = ""
    quiet_hours: tuple[int, ...] = ()
    quiet_idle_ratio: float = 0.0
    sliced: bool = False
    shared_ratio: float = 0.0
    purchase: str = "not said"
    instance: str | None = None
    energy_kwh: Figure = NOT_SAID
    usd_per_kwh: Decimal | None = None
    measured: tuple[MeasuredFinding, ...] = ()
    bucket_shares: Mapping[Bucket, Decimal] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bucket_shares", _shares(self.weights))

    @property
    def owner(self) -> str:
        """Namespace and workload, as the owner filter takes them."""
        return owner_name(self.namespace, self.workload)

    @property
    def model(self) -> str:
        """The GPU's short name, or what the samples call it."""
        return self.gpu.name if isinstance(self.gpu, Gpu) else self.gpu_model or "no model name"

    @property
    def name(self) -> str:
        """What a person would call the case; two cases never share one."""
        return f"{self.owner} on {self.model} ({self.klass})"

    @property
    def weights(self) -> Mapping[Bucket, Decimal]:
        """What savings are fractions of: dollars, or paid time where there is no price."""
        if not isinstance(self.dollars, Unknown):
            return self.dollars.each()
        return {bucket: Decimal(ms) for bucket, ms in self.times.each().items()}

    @property
    def works(self) -> bool:
        """Whether it does enough for its work, not its idling, to be judged."""
        return self.klass not in IDLE_CLASSES

    @property
    def serves(self) -> bool:
        """Whether it is surely a server, by its name or its memory traffic; low utilization alone does not tell."""
        return self.purpose == "inference" and self.purpose_by in {"name", "memory"}

    @property
    def by_counters(self) -> bool:
        """Whether its class was decided by activity counters, not by utilization and power alone."""
        return self.confidence == "counters"

    @property
    def words(self) -> frozenset[str]:
        """The words of its namespace and workload."""
        return frozenset(re.split(r"[^a-z0-9]+", self.owner.casefold()))

    def share(self, *buckets: Bucket) -> float:
        """The share of the bill (of the paid time, without a price) in some buckets."""
        return float(sum((self.bucket_shares[b] for b in buckets), Decimal(0)))

    def phase(self, name: str) -> float | None:
        """Share of the time in one phase of utilization; None where utilization was not recorded."""
        return self.phases.get(name, 0.0) if self.phases else None


def _shares(weights: Mapping[Bucket, Decimal]) -> dict[Bucket, Decimal]:
    total = sum(weights.values(), Decimal(0))
    return {b: weights[b] / total if total else Decimal(0) for b in BUCKETS}
