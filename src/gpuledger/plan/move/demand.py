"""What did each device really do for each namespace, on average and in its busiest hours?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from gpuledger.advice.case import Case
from gpuledger.advice.offers import MATTERS_FROM_RATIO, Need, pipes_not_recorded
from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.cost.statement import Bucket
from gpuledger.lake.batch import board_of
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.evidence import ModelFacts
from gpuledger.plan.move.busy_hours import ASSUMED, ENDS, PHASES, TENSOR, read_rows, tensor_precision
from gpuledger.plan.move.statement import Evidence, Measured
from gpuledger.units import MS_PER_HOUR, MS_PER_S, Unknown, known

T = TypeVar("T")
Figure = float | Unknown
# A demand is known where its counters are recorded for this share of the time: vector pipes against the tensor pipe.
RECORDED_FROM_RATIO = 0.9
NO_DRAM = Unknown("memory activity (DRAM) is not recorded")
NO_MEMORY = Unknown("memory use is not recorded")


@dataclass(frozen=True)
class Load:
    """One device's work for one namespace. Ratios are of observed time; `busy_hours` figures are p95 over hours.

    `tflops` is realized work, low to high; by power (`evidence`) it is a ceiling, not a count. `needs` and `working_*`
    are how fast it goes while it works: what another GPU must match. `unrecorded`: pipes that are not in `needs`
    because they were not recorded. Not `busy_known`: neither activity nor utilization is recorded for enough time.
    """

    device: str
    board: str
    sliced: bool
    namespace: str | None
    gpu_model: str | None
    gpu: Gpu | Unknown
    hours: int
    observed_h: float
    busy_ratio: float
    busy_hours_ratio: float
    evidence: Evidence
    tflops: tuple[float, float, float] | Unknown
    busy_hours_tflops: Figure
    needs: tuple[Need, ...] | Unknown
    busy_hours_dram_bytes_per_s: Figure
    working_dram_bytes_per_s: Figure
    memory_max_bytes: Figure
    nvlink_bytes_per_s: Figure
    phases_ms: Mapping[str, int]
    precision: str | None = None
    unrecorded: tuple[str, ...] = ()
    busy_known: bool = True


def read_loads(lake: Lake, scope: Scope) -> tuple[Load, ...]:
    """The load of every device and namespace in scope, in order of namespace and device."""
    rows, facts = read_rows(lake, scope)
    return tuple(_load(row, facts[row["gpu_model"]]) for row in rows)


def _load(row: Mapping[str, Any], facts: ModelFacts) -> Load:
    board, part = row["gpu_uuid"], row["gpu_instance_id"]
    observed = row["observed_ms"]
    evidence, tflops, busiest = _work(row, facts)
    wide = None if isinstance(facts.gpu, Unknown) else known(facts.gpu.figure("memory_bandwidth_bytes_per_s"))
    return Load(
        device=f"{board}/{part}" if part else board,
        board=board,
        sliced=bool(part),
        namespace=row["namespace"],
        gpu_model=row["gpu_model"],
        gpu=facts.gpu,
        hours=row["hours"],
        observed_h=observed / MS_PER_HOUR,
        busy_ratio=min(1.0, row["busy"] / observed),
        busy_hours_ratio=min(1.0, row["busy_p95"]),
        evidence=evidence,
        tflops=tflops,
        busy_hours_tflops=busiest,
        needs=_needs(row, facts.gpu),
        busy_hours_dram_bytes_per_s=_share(row["dram_p95"], wide, NO_DRAM),
        working_dram_bytes_per_s=_share(row["dram_working"] or row["dram_p95"], wide, NO_DRAM),
        memory_max_bytes=float(row["fb_max_bytes"]) if row["fb_max_bytes"] is not None else NO_MEMORY,
        nvlink_bytes_per_s=row["nvlink_bytes"] * MS_PER_S / row["nvlink_ms"]
        if row["nvlink_ms"]
        else Unknown("NVLink traffic is not recorded"),
        phases_ms={p: int(row[f"phase_{p}_ms"]) for p in PHASES},
        precision=tensor_precision(row["tensor_precision"], facts.gpu),
        unrecorded=tuple(pipe for pipe in ("fp64", "fp16") if not row[f"{pipe}_ms"]),
        busy_known=observed - row["unstated_ms"] >= RECORDED_FROM_RATIO * observed,
    )


def _share(ratio: float | None, whole: float | None, why: Unknown) -> Figure:
    """A share of what the GPU can do, never more than all of it: the division by busy time may overshoot."""
    return why if ratio is None or whole is None else min(ratio, 1.0) * whole


def _pipes_recorded(row: Mapping[str, Any]) -> bool:
    """Whether both the tensor pipe and the fp32 vector pipe were recorded, so that the sum is not a lower bound."""
    tensor_ms = max(row["tensor_ms"], row["hmma_ms"])
    return bool(tensor_ms) and row["fp32_ms"] >= RECORDED_FROM_RATIO * tensor_ms


def _needs(row: Mapping[str, Any], gpu: Gpu | Unknown) -> tuple[Need, ...] | Unknown:
    """TFLOPS while working by precision, each at most what the GPU can do; pipes that hardly work are left out."""
    if isinstance(gpu, Unknown):
        return gpu
    if not _pipes_recorded(row):
        return pipes_not_recorded(gpu)
    if row["done_high"] is None:
        return Unknown(f"the catalog cannot rate the pipes of {gpu.name}")
    if row["need_fp64"] is None and (row["fp64_working"] or 0.0) >= MATTERS_FROM_RATIO:
        return Unknown(f"the fp64 pipe is busy, and the catalog has no fp64 peak for {gpu.name}")
    found = []
    for name in (*TENSOR, ASSUMED, *sorted(VECTOR_PRECISIONS)):
        tflops, known = row[f"need_{name}"], name != ASSUMED
        precision = name if known else gpu.reference_precision()
        peak = gpu.peak(precision)
        most = tflops if isinstance(peak, Unknown) else peak
        if tflops and tflops >= MATTERS_FROM_RATIO * most:
            found.append(Need(precision, min(tflops, most), known))
    return tuple(found)


def _work(row: Mapping[str, Any], facts: ModelFacts) -> tuple[Evidence, tuple[float, float, float] | Unknown, Figure]:
    """Evidence, realized TFLOPS, and those of the busiest hours."""
    peak = facts.peak_tflops
    if isinstance(peak, Unknown):
        return "none", peak, peak
    if _pipes_recorded(row) and row["done_high"] is not None:
        low, middle, high = (peak * row[f"done_{e}"] / row["work_ms"] for e in ENDS)
        return "counters", (low, middle, high), peak * row["done_p95"]
    if row["pif"] is not None:
        ceiling = peak * min(row["pif"], 1.0)
        return "power", (0.0, ceiling, ceiling), peak * min(row["pif_p95"], 1.0)
    if row["work_ms"]:
        return "none", pipes_not_recorded(facts.gpu), pipes_not_recorded(facts.gpu)
    why = Unknown("neither pipe counters nor power are recorded")
    return "none", why, why


@dataclass(frozen=True)
class Holding:
    """A namespace's GPUs of one model: their loads, and what was paid for each device by bucket (time, unpriced).

    `by_market`: their cost is the market's median, not what was really paid. `unpriced`: devices without a price;
    where others have one, these are in no dollar figure and in no load.
    """

    namespace: str
    gpu_model: str | None
    gpu: Gpu | Unknown
    loads: tuple[Load, ...]
    paid: Mapping[str, Mapping[Bucket, Decimal]]
    paid_h: Mapping[str, float]
    usd_per_gpu_h: Decimal | Unknown
    by_market: bool = False
    cases: tuple[Case, ...] = ()
    purposes: frozenset[str | None] = field(default_factory=frozenset)
    unpriced: int = 0

    @property
    def serves(self) -> bool:
        """Whether all of it serves: copies of a server hold the same weights."""
        return self.purposes == {"inference"}


def measured(holding: Holding) -> Measured:
    """Means over observed time; the busy hours of each GPU added up; for memory and links the most of any GPU."""
    loads = holding.loads
    observed = sum(load.observed_h for load in loads)
    busy_h = sum(load.busy_ratio * load.observed_h for load in loads)
    phases = Counter[str]()
    for load in loads:
        phases.update(load.phases_ms)
    total, kinds = phases.total(), {load.evidence for load in loads}
    tflops = _all([load.tflops for load in loads])
    ends = tuple(tflops if isinstance(tflops, Unknown) else sum(each[end] for each in tflops) for end in range(3))
    return Measured(
        gpus=len({load.board for load in loads} or {board_of(device) for device in holding.paid}),
        observed_h=observed,
        busy_gpu_h=busy_h,
        busy_ratio=busy_h / observed if observed else 0.0,
        busy_hours_gpus=sum(load.busy_hours_ratio for load in loads),
        evidence="counters" if "counters" in kinds else "power" if "power" in kinds else "none",
        tflops_low=ends[0],
        tflops_middle=ends[1],
        tflops_high=ends[2],
        busy_hours_tflops=_over(sum, [load.busy_hours_tflops for load in loads]),
        busy_hours_dram_bytes_per_s=_over(sum, [load.busy_hours_dram_bytes_per_s for load in loads]),
        memory_max_bytes=_over(max, [load.memory_max_bytes for load in loads]),
        nvlink_bytes_per_s=_over(max, [load.nvlink_bytes_per_s for load in loads]),
        phases_pct={p: 100 * phases[p] / total if total else 0.0 for p in PHASES},
        purpose=next(iter(holding.purposes)) if len(holding.purposes) == 1 else None,
        classes=tuple(dict.fromkeys(c.klass for c in holding.cases)),
    )


def _all(figures: Sequence[T | Unknown]) -> list[T] | Unknown:
    """All figures, or why one of them is unknown."""
    missing = next((f for f in figures if isinstance(f, Unknown)), None)
    known = [f for f in figures if not isinstance(f, Unknown)]
    return missing if missing is not None else known or Unknown("no device was seen")


def _over(add: Callable[[list[float]], float], figures: Sequence[Figure]) -> Figure:
    known = _all(figures)
    return known if isinstance(known, Unknown) else add(known)
