"""What is known about one case: one owner's GPUs of one model that behave alike?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gpuledger.catalog.gpus import Gpu
from gpuledger.cost.statement import BUCKETS, Bucket, Dollars, Times
from gpuledger.efficiency.health import THERMAL_ABOVE_PCT
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.ledger.read.rollup import HEALTH
from gpuledger.ledger.read.scope import owner_name
from gpuledger.physics.purpose import By, Purpose
from gpuledger.physics.signals import Signals
from gpuledger.telemetry.series.exporters import fields_of
from gpuledger.units import MIB, MS_PER_S, PPM, Unknown, known

Figure = float | Unknown
Sums = Mapping[str, Any]
IDLE_CLASSES = ("idle", "idle-held")
NOT_RECORDED = Unknown("not recorded")
_NO_REASONS = Unknown("the reasons for held-down clocks are not recorded")
_URGENT = ("row_remap_failures", "xid_events", "thermal_ms")
# What shows work outside the tensor cores.
_VECTOR_PIPES = ("fp32_ratio", "fp16_ratio", "fp64_ratio")
# Up to this share of the working time may have pipes that are not recorded.
SEEN_WITHIN_RATIO = 0.02


@dataclass(frozen=True)
class Health:
    """Serious faults counted over the window; remapped rows and PCIe replays are repairs that worked.

    Faults are a board's own: where each MIG instance reports them again, the board counts them once. `affected` are
    the GPUs with driver errors, failed remappings or much heat, the worst first; `hottest_ratio` is the largest share
    of one GPU's time held down by heat. `failing`: how many GPUs have errors or failed remappings. The owner's ratios
    are over all of its GPUs: the share that fails, and the share of their time held down by heat.
    """

    xid_events: int = 0
    row_remap_failures: int = 0
    hottest_ratio: Figure = _NO_REASONS
    affected: tuple[str, ...] = ()
    failing: int = 0
    hot_ratio: float = 0.0
    owner_failing_ratio: float = 0.0
    owner_hot_ratio: float = 0.0


def health_of(parts: Iterable[tuple[str, str | None, Sums]]) -> Health:
    """From sums by board and MIG instance; a board counts the largest figure of its instances."""
    devices: dict[tuple[str, str | None], list[int]] = {}
    for board, instance, sums in parts:
        own, before = [int(sums[name]) for name in HEALTH], devices.get((board, instance))
        devices[board, instance] = own if before is None else [a + b for a, b in zip(before, own, strict=True)]
    boards: dict[str, dict[str, int]] = {}
    for (board, _), found in devices.items():
        had = boards.setdefault(board, dict.fromkeys(HEALTH, 0))
        had |= {name: max(had[name], value) for name, value in zip(HEALTH, found, strict=True) if value}
    heat = {name: b["thermal_ms"] / b["throttle_ms"] for name, b in boards.items() if b["throttle_ms"]}
    affected = [
        name
        for name, b in boards.items()
        if b["xid_events"] or b["row_remap_failures"] or 100 * heat.get(name, 0.0) > THERMAL_ABOVE_PCT
    ]
    known_ms = sum(b["throttle_ms"] for b in boards.values())
    return Health(
        sum(b["xid_events"] for b in boards.values()),
        sum(b["row_remap_failures"] for b in boards.values()),
        max(heat.values()) if heat else _NO_REASONS,
        tuple(sorted(affected, key=lambda n: (*(-boards[n][name] for name in _URGENT), n))),
        sum(bool(b["xid_events"] or b["row_remap_failures"]) for b in boards.values()),
        sum(b["thermal_ms"] for b in boards.values()) / known_ms if known_ms else 0.0,
    )


@dataclass(frozen=True)
class Demand:
    """What the case needs of its GPUs. Memory is over all of the time; the rest is while working.

    `tflops` is the work by pipe counters at the high end of what they can mean, unknown where pipes that may work are
    not recorded; `capped_ratio` is the share of the working time at a power limit below the board's own, `capped_w`
    that limit.
    """

    memory_max_ratio: Figure = NOT_RECORDED
    memory_mean_ratio: Figure = NOT_RECORDED
    memory_max_bytes: Figure = NOT_RECORDED
    tflops: Figure = NOT_RECORDED
    dram_bytes_per_s: Figure = NOT_RECORDED
    pcie_rx_bytes_per_s: Figure = NOT_RECORDED
    nvlink_bytes_per_s: Figure = NOT_RECORDED
    capped_ratio: float = 0.0
    capped_w: Figure = NOT_RECORDED


@dataclass(frozen=True)
class LongIdle:
    """The stretches without work of an hour and longer, in hours, by whether memory was held.

    `held_last_h` are those with memory held that last to the end of the window. `last_h`: the shortest time that all of
    the devices have done nothing up to there.
    """

    held_h: tuple[float, ...] = ()
    free_h: tuple[float, ...] = ()
    held_last_h: tuple[float, ...] = ()
    last_h: float = 0.0


@dataclass(frozen=True)
class Case:
    """One owner's GPUs of one model whose work is of one class. `own_pods`: whether each GPU has pods of its own.

    `spun_ratio`: the share of the working time in which a kernel was there and the board drew next to nothing.
    """

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
    long_idle: LongIdle = LongIdle()
    memory_known: bool = True
    health: Health = Health()
    busy_ratio: float = 0.0
    spun_ratio: float = 0.0
    precision: str | None = None
    tensor_kind: str | None = None
    purpose: Purpose | None = None
    purpose_by: By = "none"
    purpose_how: str = ""
    pod_words: frozenset[str] = frozenset()
    own_pods: bool = False
    quiet_hours: tuple[int, ...] = ()
    quiet_idle_ratio: float = 0.0
    sliced: bool = False
    purchase: str = "not said"
    instance: str | None = None
    energy_kwh: Figure = NOT_RECORDED
    usd_per_kwh: Decimal | None = None
    measured: tuple[MeasuredFinding, ...] = ()
    bucket_shares: Mapping[Bucket, Decimal] = field(init=False)

    def __post_init__(self) -> None:
        weights = self.weights
        total = sum(weights.values(), Decimal(0))
        shares = {b: weights[b] / total if total else Decimal(0) for b in BUCKETS}
        object.__setattr__(self, "bucket_shares", shares)

    @property
    def owner(self) -> str:
        """Namespace and workload, as the owner filter takes them."""
        return owner_name(self.namespace, self.workload)

    @property
    def key(self) -> tuple[str | None, str | None, str | None, str]:
        """What no two cases share: names may hold any character, so words cannot tell them apart."""
        return self.namespace, self.workload, self.gpu_model, self.klass

    @property
    def model(self) -> str:
        """The GPU's short name, or what the samples call it."""
        return self.gpu.name if isinstance(self.gpu, Gpu) else self.gpu_model or "no model name"

    @property
    def name(self) -> str:
        """The case in words; `key` tells cases apart."""
        return f"{self.owner} on {self.model} ({self.klass})"

    @property
    def weights(self) -> Mapping[Bucket, Decimal]:
        """What savings are fractions of: dollars, or paid time without a price."""
        if not isinstance(self.dollars, Unknown):
            return self.dollars.each()
        return {bucket: Decimal(ms) for bucket, ms in self.times.each().items()}

    @property
    def works(self) -> bool:
        """Whether it does enough for its work, not its idling, to be judged."""
        return self.klass not in IDLE_CLASSES

    @property
    def serves(self) -> bool:
        """Whether its name says that it is a server. Memory traffic does not: a stencil has as much of it."""
        return self.purpose == "inference" and self.purpose_by == "name"

    @property
    def by_counters(self) -> bool:
        """Whether its class was decided by activity counters, not by utilization and power alone."""
        return self.confidence == "counters"

    @property
    def words(self) -> frozenset[str]:
        """The words of its namespace and workload, and of its pods and containers where these are recorded."""
        return words_of(self.owner) | self.pod_words

    def share(self, *buckets: Bucket) -> float:
        """The share of the bill (of the paid time, without a price) in some buckets."""
        return float(sum((self.bucket_shares[b] for b in buckets), Decimal(0)))

    def phase(self, name: str) -> float | None:
        """Share of the time in one phase of utilization; None where utilization was not recorded."""
        return self.phases.get(name, 0.0) if self.phases else None


def words_of(name: str) -> frozenset[str]:
    """The words of a name, also without a number at their end."""
    found = re.split(r"[^a-z0-9]+", name.casefold())
    return frozenset(found) | {word.rstrip("0123456789") for word in found} - {""}


def demand_of(total: Sums, at_work: Sums, signals: Signals, gpu: Gpu | None) -> Demand:
    """Memory over all of the time, everything else while at work."""
    most, card = total["fb_max_bytes"], total["card_bytes"] or (known(gpu.figure("memory_bytes")) if gpu else None)

    def rate(name: str) -> Figure:
        ms = at_work[f"{name}_ms"]
        return at_work[f"{name}_bytes"] * MS_PER_S / ms if ms else Unknown(f"{name} traffic is not recorded")

    no_memory, dram = Unknown("memory use is not recorded"), Unknown("memory activity is not recorded")
    wide = gpu.figure("memory_bandwidth_bytes_per_s") if gpu else dram
    mean: Figure = no_memory
    if total["fb_ms"] and card:
        mean = float(min(1.0, total["fb_mib_ms"] * MIB / total["fb_ms"] / card))
    return Demand(
        memory_max_ratio=most / card if most is not None and card else no_memory,
        memory_mean_ratio=mean,
        memory_max_bytes=float(most) if most is not None else no_memory,
        tflops=_tflops(at_work, gpu),
        dram_bytes_per_s=dram
        if signals.dram_ratio is None
        else (wide if isinstance(wide, Unknown) else signals.dram_ratio * wide),
        pcie_rx_bytes_per_s=rate("pcie_rx"),
        nvlink_bytes_per_s=rate("nvlink"),
        capped_ratio=at_work["capped_ms"] / (at_work["observed_ms"] or 1),
        capped_w=at_work["capped_mw_ms"] / at_work["capped_ms"] / 1e3
        if at_work["capped_ms"]
        else Unknown("no time at a lowered power limit"),
    )


def _tflops(at_work: Sums, gpu: Gpu | None) -> Figure:
    """Work by pipe counters while working, at the high end of what they can mean."""
    peak = gpu.peak(gpu.reference_precision()) if gpu else Unknown("the GPU model is not in the catalog")
    if isinstance(peak, Unknown) or gpu is None:
        return peak
    if not at_work["work_ms"]:
        return Unknown("no pipe activity in the samples")
    if at_work["unseen_ms"] > SEEN_WITHIN_RATIO * at_work["observed_ms"]:
        fields = fields_of(gpu.vendor, _VECTOR_PIPES)
        enable = f": enable {', '.join(fields)}" if fields else ""
        return Unknown(f"not all compute pipes are recorded{enable}")
    return float(peak * at_work["done_high"] / PPM / at_work["work_ms"])
