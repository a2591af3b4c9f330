"""Which figures does a run give, before any of them is judged?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from gpuledger.scaling.statistics import Interval
from gpuledger.units import Range, Unknown, known

Figure = float | Unknown
Ranged = Interval | Unknown
Unit = Literal["nodes", "GPUs"]


@dataclass(frozen=True)
class Counts:
    """What became of the planned requests; `failed` came back with an error, `lost` never came back."""

    planned: int
    ok: int
    failed: int
    lost: int
    success_pct: Ranged
    survivors_pct: Figure
    planned_known: bool


@dataclass(frozen=True)
class Distribution:
    """Latencies of answered requests. `consistency_pct`: the share within 15 % of the median."""

    n: int
    min_s: Figure
    max_s: Figure
    mean_s: Ranged
    sd_s: Figure
    p50_s: Ranged
    p90_s: Ranged
    p95_s: Ranged
    p99_s: Ranged
    consistency_pct: Figure

    def as_json(self) -> dict[str, Any]:
        """Names without their unit; each point figure with its interval in `interval`."""
        plain = {name: getattr(self, f"{name}_s") for name in ("min", "max", "sd")}
        ranged = {name: getattr(self, f"{name}_s") for name in ("mean", "p50", "p90", "p95", "p99")}
        intervals = {k: None if isinstance(v, Unknown) else [v.low, v.high] for k, v in ranged.items()}
        points = {k: v if isinstance(v, Unknown) else v.value for k, v in ranged.items()}
        figures = {**plain, **points, "interval": intervals, "consistency_pct": self.consistency_pct}
        # Without requests of this kind its figures are not a gap in what is known.
        return {"n": self.n, **(figures if self.n else {k: known(v) for k, v in figures.items()})}


@dataclass(frozen=True)
class ColdStart:
    """The first `requests` latencies of a node; percentages show how far their mean is above the others."""

    requests: int
    mean_s: float
    warm_mean_s: float
    over_mean_pct: float
    over_min_pct: float
    over_warm_pct: float


@dataclass(frozen=True)
class Latency:
    """All answers; warm and cold ones apart; requests marked as warm-up, which count nowhere else."""

    all: Distribution
    warm: Distribution
    cold: Distribution
    warmup: Distribution
    ttft: Distribution
    per_token: Distribution


@dataclass(frozen=True)
class NodeFigures:
    """One node. `inverse_latency_per_s` is 1 / mean latency, which is not throughput.

    `cold_start` is None where it was looked for and not found.
    """

    node: str
    gpu: str | Unknown
    gpus: int | Unknown
    counts: Counts
    throughput_per_s: Figure
    inverse_latency_per_s: Figure
    tokens_per_s: Figure
    latency: Distribution
    warm: Distribution
    cold_start: ColdStart | Unknown | None
    slower_pct: Ranged
    outlier: bool | Unknown
    loses_more: bool | Unknown
    busy_s: Figure
    memory_used_bytes: int | Unknown
    card: str | Unknown
    card_bytes: float | Unknown
    memory_pct: Figure
    mean_input_tokens: Figure
    mean_output_tokens: Figure
    problems: tuple[str, ...]
    status: str


@dataclass(frozen=True)
class Tokens:
    """Tokens by wall clock. `single_stream_per_s`: the mean over single requests of tokens over latency."""

    input_tokens: int | Unknown
    output_tokens: int | Unknown
    per_s: Ranged
    per_gpu_per_s: Figure
    single_stream_per_s: Figure
    input_range: tuple[int, int] | Unknown
    output_range: tuple[int, int] | Unknown


@dataclass(frozen=True)
class Point:
    """One measured size."""

    file: str
    size: int
    throughput_per_s: Interval


@dataclass(frozen=True)
class Prediction:
    """The throughput of a size by the law; beyond the largest size measured it is extrapolated."""

    size: int
    throughput_per_s: Interval
    efficiency_pct: float
    extrapolated: bool


@dataclass(frozen=True)
class Curve:
    """The Universal Scalability Law over the measured sizes."""

    rate_per_s: Ranged
    contention: Ranged
    coherency: Ranged
    best_size: Figure
    points: tuple[Point, ...]
    predictions: tuple[Prediction, ...]
    refused: str | None
    note: str


@dataclass(frozen=True)
class Scaling:
    """Throughput against a measured baseline; `refused`: why there is none."""

    unit: Unit
    size: int
    refused: str | None
    baseline_file: str | None
    baseline_size: int | Unknown
    baseline_per_s: Ranged
    theoretical_per_s: Figure
    factor_x: Ranged
    efficiency_pct: Ranged
    token_factor_x: Ranged
    superlinear: bool | Unknown
    curve: Curve


@dataclass(frozen=True)
class BatchPoint:
    """One batch size of a sweep, by the wall clock of its own requests, for which the GPUs are paid."""

    batch: int
    requests: int
    throughput_per_s: float
    tokens_per_s: Figure
    mean_latency_s: float
    ttft_median_s: Figure
    per_token_median_s: Figure
    usd_per_million_tokens: Decimal | Unknown
    joules_per_million_tokens: Figure


@dataclass(frozen=True)
class Batches:
    """Throughput by batch size, and the batch beyond which a larger one adds little."""

    points: tuple[BatchPoint, ...]
    knee: int | Unknown
    note: str


@dataclass(frozen=True)
class GpuPeak:
    """The most memory one GPU used in any sample of the run."""

    host: str
    gpu_uuid: str
    memory_bytes: int


@dataclass(frozen=True)
class Telemetry:
    """What the GPUs did during the run, from its samples; `gpus`: the memory of each."""

    gpu_util_pct: Figure
    rfu_power_pct: Figure
    rfu_counters_pct: Range | Unknown
    energy_j: Figure
    memory_peak_bytes: int | Unknown
    gpus: tuple[GpuPeak, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Dollars and joules per million output tokens; all GPUs of the run are paid for its whole wall clock."""

    usd_per_gpu_h: Decimal | Unknown
    price_words: str
    usd: Decimal | Unknown
    usd_per_million_tokens: Decimal | Unknown
    low_usd_per_million_tokens: Decimal | Unknown
    high_usd_per_million_tokens: Decimal | Unknown
    joules_per_million_tokens: Figure


@dataclass(frozen=True)
class Factor:
    """Something that shapes the result, with its figure."""

    name: str
    finding: str


@dataclass(frozen=True)
class Sample:
    """One answered request, for a chart: its place among its node's, and whether it was cold."""

    node: str
    place: int
    latency_s: float
    cold: bool


@dataclass(frozen=True)
class Source:
    """One file the report was made from."""

    file: str
    sha256: str
    requests: int
    started: str | None


@dataclass(frozen=True)
class Facts:
    """Everything measured or computed from one run, before it is judged."""

    file: str
    files: tuple[str, ...]
    config: Mapping[str, Any]
    model: str | Unknown
    nodes_n: int
    gpus: int | Unknown
    wall_s: Figure
    wall_words: str
    counts: Counts
    throughput_per_s: Ranged
    inverse_latency_per_s: Figure
    in_flight: Figure
    latency: Latency
    nodes: tuple[NodeFigures, ...]
    tokens: Tokens
    scaling: Scaling
    batches: Batches
    memory_pct: Figure
    telemetry: Telemetry
    cost: Cost
    client_bottleneck: str | None
    factors: tuple[Factor, ...]
    samples: tuple[Sample, ...]
    samples_note: str
    sources: tuple[Source, ...]
    faults: tuple[str, ...]
    assumptions: tuple[str, ...]
    seed: int
