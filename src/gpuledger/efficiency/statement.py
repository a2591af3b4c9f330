"""Which figures does the efficiency statement have?

Percent is used where the published metrics name it so: RFU (realized FLOPS utilization), utilization, gap; everything
else is in its unit. An unknown figure is an `Unknown` with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuledger.arguments import takes
from gpuledger.efficiency.health import HealthAnalysis
from gpuledger.encode import Json, encode, iso
from gpuledger.lake.batch import device_name
from gpuledger.ledger.read.owners import By
from gpuledger.physics.causes import LikelyCause
from gpuledger.units import Range, Unknown, point_of

Figure = float | Unknown
Direction = Literal["rising", "falling", "flat", "not known"]
# Figures of the fleet that the JSON repeats at its top.
_HEAD = (
    "gpu_util_pct", "pif", "rfu_power_pct", "rfu_power_idle_corrected_pct", "efficiency_gap_pp", "memory_pct",
    "power_w", "energy_kwh",
)  # fmt: skip


@dataclass(frozen=True)
class Means:
    """Time-weighted means over some group of lines.

    `rfu_measured_pct` is the work of rfu_counters_pct over the TFLOPS a calibration measured on each board; None where
    none of the boards was measured.
    """

    gpus: int
    samples: int
    observed_h: float
    gpu_util_pct: Figure
    pif: Figure
    rfu_power_pct: Figure
    rfu_power_idle_corrected_pct: Figure
    rfu_counters_pct: Range | Unknown
    efficiency_gap_pp: Figure
    memory_pct: Figure
    power_w: Figure
    util_p50_pct: Figure
    util_p95_pct: Figure
    energy_kwh: Figure
    rfu_measured_pct: Range | None = None


@dataclass(frozen=True)
class Capacity:
    """Installed and realized TFLOPS of a group; realized figures are sums over GPUs of each GPU's mean.

    A total covers the GPUs whose figures are known: `achievable_gpus` of `gpus`, and `note` has the other figures.
    """

    name: str
    gpus: int
    peak_tflops: Figure
    achievable_tflops: Figure
    achievable_source: str
    realized_power_tflops: Figure
    realized_counters_tflops: Range | Unknown
    achievable_gpus: int = 0
    note: str = ""


@dataclass(frozen=True)
class CapacityAnalysis:
    """Analysis 1: what is installed, achievable and realized, by model and by cluster."""

    fleet: Capacity
    by_model: tuple[Capacity, ...]
    by_cluster: tuple[Capacity, ...]


@dataclass(frozen=True)
class ActiveAnalysis:
    """Analysis 2: efficiency while active, time in each class and phase."""

    active_h: float
    gpu_util_pct: Figure
    pif: Figure
    rfu_power_pct: Figure
    efficiency_gap_pp: Figure
    bottlenecked_pct_of_active: Figure
    classes_pct: dict[str, float]
    phases_pct: dict[str, float]
    class_unknown_h: float


@dataclass(frozen=True)
class UtilPowerCell:
    """Analysis 3: time a GPU's hours spent at one utilization and PIF (5 % bins)."""

    util_low_pct: float
    pif_low: float
    hours: float
    klass: str


@dataclass(frozen=True)
class GpuRow:
    """One device over the window."""

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    cluster: str | None
    namespace: str | None
    means: Means
    klass: str
    bottlenecked_pct_of_active: Figure
    bottlenecked_days: int
    active_days: int
    consistently_bottlenecked: bool
    cause: LikelyCause | None
    idle_h: Figure
    idle_held_h: Figure
    longest_idle_h: Figure
    unobserved_h: float

    @property
    def likely_cause(self) -> str:
        """What it probably waits for, in words; empty where it is not bottlenecked."""
        return self.cause.words if self.cause else ""

    @property
    def named_cause(self) -> str | Unknown:
        """What it probably waits for, or why that is unknown."""
        return Unknown(self.cause.reason) if self.cause and not self.cause.cause else self.likely_cause

    @property
    def cause_evidence(self) -> str:
        """What shows it, in words."""
        return self.cause.evidence if self.cause else ""

    def as_json(self) -> Json:
        """The cause in words, with what shows it."""
        out = {"class" if name == "klass" else name: value for name, value in vars(self).items() if name != "cause"}
        return out | {"likely_cause": self.likely_cause, "cause_evidence": self.cause_evidence}


@dataclass(frozen=True)
class HourRow:
    """Analysis 4: the fleet in one hour (one day, where lines were folded)."""

    start_ms: int
    hours: float
    gpus: int
    samples: int
    gpu_util_pct: Figure
    pif: Figure
    rfu_power_pct: Figure
    rfu_counters_pct: Figure
    efficiency_gap_pp: Figure
    realized_power_tflops: Figure
    power_kw: Figure


@dataclass(frozen=True)
class Trend:
    """Least-squares slope per day with its 95 % interval, and the most likely change point, of one series."""

    series: str
    slope_per_day: Figure
    slope_low: Figure
    slope_high: Figure
    direction: Direction
    change_at_ms: int | Unknown
    before: Figure
    after: Figure
    note: str


@dataclass(frozen=True)
class GroupRow:
    """Analyses 5 and 8: one GPU model or one namespace."""

    name: str
    means: Means
    bottlenecked_pct_of_active: Figure
    classes_pct: dict[str, float]
    target_rfu_pct: float | None = None
    pattern: str = ""


@dataclass(frozen=True)
class RoiRow:
    """Analysis 7: what reaching a target would be worth."""

    target_rfu_pct: float
    equivalent_gpus: float
    gpu_hours_per_day: float
    gpu_hours_per_month: Figure


@dataclass(frozen=True)
class NotKnown:
    """Something unknown, and why."""

    figure: str
    why: str


@dataclass(frozen=True)
class CountedDevice:
    """A device whose jobs counted their own FLOPs; all figures are over the time they cover, `covered_h`.

    `realized_tflops` is all the device did (evidence "counted"), `model_tflops` what the models need.
    `rfu_counted_pct` is the former over the dense peak at the reference precision.
    """

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    runs: tuple[str, ...]
    covered_h: float
    steps: int
    tokens: int | Unknown
    realized_tflops: Range | Unknown
    model_tflops: Figure
    rfu_counted_pct: Figure


@dataclass(frozen=True)
class CountedAnalysis:
    """What jobs counted themselves: the best evidence, for the time it covers."""

    gpus: int
    covered_h: float
    covered_pct_of_observed: Figure
    realized_tflops: Range | Unknown
    rfu_counted_pct: Figure
    devices: tuple[CountedDevice, ...]
    note: str = ""


@dataclass(frozen=True)
class EfficiencyStatement:
    """The eight analyses over one window; `counted`: by jobs themselves; `by_owner`: by the dimension asked for."""

    start_ms: int
    end_ms: int
    gpus: int
    clusters: int
    namespaces: int
    samples: int
    conflicts: int
    fleet: Means
    capacity: CapacityAnalysis
    active: ActiveAnalysis
    util_power: tuple[UtilPowerCell, ...]
    hours: tuple[HourRow, ...]
    trends: tuple[Trend, ...]
    by_model: tuple[GroupRow, ...]
    per_gpu: tuple[GpuRow, ...]
    by_namespace: tuple[GroupRow, ...]
    roi: tuple[RoiRow, ...]
    findings: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_known: tuple[NotKnown, ...]
    counted: CountedAnalysis | None = None
    health: HealthAnalysis = HealthAnalysis()  # noqa: RUF009  (frozen, so one for all is safe)
    by: By | None = None
    by_owner: tuple[GroupRow, ...] = ()

    @property
    def bottlenecked_gpus(self) -> tuple[GpuRow, ...]:
        """Analysis 6: the devices bottlenecked on most of their active days."""
        return tuple(g for g in self.per_gpu if g.consistently_bottlenecked)

    def as_json(self) -> Json:
        """The headline first, then every analysis under its own name."""
        found, counted = vars(self), self.fleet.rfu_counters_pct
        head = {name: found[name] for name in ("samples", "gpus", "clusters", "namespaces", "conflicts")}
        head |= {name: getattr(self.fleet, name) for name in _HEAD}
        head["rfu_counters_pct"] = point_of(counted)
        head["rfu_counters"] = counted
        head["bottlenecked_pct_of_active"] = self.active.bottlenecked_pct_of_active
        head["bottlenecked_gpus"] = [device_name(g.gpu_uuid, g.gpu_instance_id) for g in self.bottlenecked_gpus]
        head |= {"roi": self.roi, "start_ms": self.start_ms, "start_utc": iso(self.start_ms)}
        head |= {"end_ms": self.end_ms, "end_utc": iso(self.end_ms)}
        left_out = {"not_known", "by", "by_owner"} | (set() if self.counted else {"counted"})
        head |= {f"by_{self.by}": self.by_owner} if self.by_owner else {}
        return head | {name: value for name, value in found.items() if name not in left_out}


@takes()
def to_json(statement: EfficiencyStatement) -> Json:
    """The statement as JSON holds it."""
    return encode("efficiency", statement, named=((n.figure, n.why) for n in statement.not_known))
