"""What are the figures of a loop: where the step's time goes, MFU and HFU, tokens, dollars, joules, the slow rank?

MFU is what the model needs over the device's dense bf16 peak, so that a faster loop never scores lower; HFU is the same
with all the device did. Two more shares: over the peak of the precision in use, and over what matrix products were
measured to reach (mfu.py holds the denominators). An unknown device has no MFU, and neither has one without bf16. Where
the precision was not observed, the shares that rest on it are unknown; a share above 100 % is refused.

In synchronous training every rank's step takes equally long: ranks that are ready wait within the backward pass for the
gradients of the last. The slow one shows in its own time: everything but the backward pass and waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import market_price
from gpuledger.efficiency.calibration_files import BoardCalibration, calibration_file, read_board
from gpuledger.encode import encode
from gpuledger.lake.counted import CountedRun, CountedSpan, MeasuredFinding, write_counted
from gpuledger.lake.layout import Lake
from gpuledger.training.meter.observed import Figure, Observed
from gpuledger.training.mfu import Denominator, measured_achievable, mixed, peak_in_use, reference_peak
from gpuledger.units import Unknown, known, ratio

TERA, MEGA = 1e12, 1e6
SECONDS_PER_HOUR = 3600
CHECK = "more than the GPU can do; check the counted FLOPs of a step and the batches"
EMPTY_BATCHES = "the batches are empty"
Seen = Mapping[str, Any]  # what a report holds of one rank
WAITED_IN = ("backward", "sync")
# Less than this of a step is a chance difference.
NAMED_FROM_RATIO = 0.02


@dataclass(frozen=True)
class Price:
    """Dollars of one GPU-hour and what that rests on."""

    usd_per_gpu_h: float | Unknown
    words: str


@dataclass(frozen=True)
class MeterReport:
    """One rank's figures. Rates and phases are those of the timed steps; percentages are 0 to 100."""

    seen: Observed
    step_ms: Figure
    phases_ms: dict[str, float]
    phases_pct: dict[str, float]
    tokens_per_s: Figure
    samples_per_s: Figure
    model_tflops: Figure
    hardware_tflops: Figure
    mfu_pct: Figure
    hfu_pct: Figure
    mfu_of_precision_pct: Figure
    mfu_of_measured_pct: Figure
    denominator: str
    denominator_of_precision: str
    denominator_of_measured: str
    usd_per_million_tokens: Figure
    usd_per_million_samples: Figure
    price: Price
    joules_per_step: Figure
    joules_per_token: Figure
    findings: tuple[MeasuredFinding, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """All fields; step_ms is a length, not an instant."""
        return vars(self)


def to_json(report: MeterReport) -> dict[str, Any]:
    """The report as JSON."""
    return encode("train_report", report)


def price_of(gpu: Gpu | Unknown, usd_per_gpu_h: float | Decimal | None) -> Price:
    """The given price, else the dated market median of this GPU; never a guess."""
    if usd_per_gpu_h is not None:
        return Price(float(usd_per_gpu_h), "as given")
    found = gpu if isinstance(gpu, Unknown) else market_price(gpu.key)
    if isinstance(found, Unknown):
        return Price(found, f"not known: {found.why}")
    return Price(float(found.usd_per_gpu_h), found.words)


def make_report(
    seen: Observed, price: Price, boards: Sequence[BoardCalibration] = (), findings: tuple[MeasuredFinding, ...] = ()
) -> MeterReport:
    """All figures of one rank."""
    step_s: Figure = (
        seen.step if isinstance(seen.step, Unknown) else seen.step.mean or Unknown("the steps took no time")
    )
    tokens, samples = (_of(lambda n, s: n / s, n, step_s) for n in (seen.tokens_per_step, seen.samples_per_step))
    model, hardware = _tflops(seen, step_s)
    peak, in_use, measured = _denominators(seen, boards)
    total_s = sum(seen.phases_s.values())
    return MeterReport(
        seen=seen,
        step_ms=_of(lambda s: 1000 * s, step_s),
        phases_ms={p: 1000 * s for p, s in seen.phases_s.items()},
        phases_pct={p: 100 * s / total_s if total_s else 0.0 for p, s in seen.phases_s.items()},
        tokens_per_s=tokens,
        samples_per_s=samples,
        model_tflops=model,
        hardware_tflops=hardware,
        mfu_pct=_pct(model, peak),
        hfu_pct=_pct(hardware, peak),
        mfu_of_precision_pct=_pct(model, in_use),
        mfu_of_measured_pct=_pct(model, measured),
        denominator=peak.words,
        denominator_of_precision=in_use.words,
        denominator_of_measured=measured.words,
        usd_per_million_tokens=_of(_usd_per_million, price.usd_per_gpu_h, tokens),
        usd_per_million_samples=_of(_usd_per_million, price.usd_per_gpu_h, samples),
        price=price,
        joules_per_step=seen.energy_j_per_step,
        joules_per_token=_of(lambda j, n: ratio(j, n, EMPTY_BATCHES), seen.energy_j_per_step, seen.tokens_per_step),
        findings=findings,
    )


def _of(formula: Callable[..., Figure], *figures: Figure) -> Figure:
    """The formula of these figures, or the first of them that is unknown."""
    for figure in figures:
        if isinstance(figure, Unknown):
            return figure
    return formula(*figures)


def _usd_per_million(usd_per_h: float, per_s: float) -> Figure:
    return ratio(usd_per_h / SECONDS_PER_HOUR * MEGA, per_s, EMPTY_BATCHES)


def _tflops(seen: Observed, step_s: Figure) -> tuple[Figure, Figure]:
    """The model's and the hardware's."""
    work = seen.work
    if isinstance(work, Unknown):
        return work, work
    like = work.steps_like(1.0, known(seen.tokens_per_step), known(seen.samples_per_step))
    model, hardware = (like * flop / TERA for flop in (work.model_flop, work.hardware_flop))
    return _of(lambda s: model / s, step_s), _of(lambda s: hardware / s, step_s)


def _denominators(seen: Observed, boards: Sequence[BoardCalibration]) -> tuple[Denominator, Denominator, Denominator]:
    """The bf16 peak, the peak of the precision in use, and what was measured as achievable in it."""
    gpu, precision = seen.place.gpu, seen.precision
    if isinstance(gpu, Unknown):
        none = Denominator(gpu, f"none: {gpu.why}")
        return none, none, none
    if isinstance(precision, Unknown):
        none = Denominator(precision, f"none: {precision.why}")
        return reference_peak(gpu, above=CHECK), none, none
    ratios = seen.precision_ratios or {precision: 1.0}
    in_use = mixed({p: _peak_in_use(gpu, p) for p in ratios}, ratios)
    above = f"the products cannot all run in {' and '.join(ratios)}, so their precision is unknown"
    measured = mixed({p: measured_achievable(gpu, p, boards) for p in ratios}, ratios)
    return reference_peak(gpu, ratios, CHECK), replace(in_use, above=above), measured


def _peak_in_use(gpu: Gpu, precision: str) -> Denominator:
    """As in the catalog; fp64 products run on the tensor cores where these have fp64."""
    name = "fp64_tensor" if precision == "fp64" and "fp64_tensor" in gpu.peak_tflops else precision
    lacks = gpu.peak(name)
    return Denominator(lacks, f"none: {lacks.why}") if isinstance(lacks, Unknown) else peak_in_use(gpu, name)


def _pct(tflops: Figure, whole: Denominator) -> Figure:
    return _of(lambda _peak, work: whole.share_pct(work * TERA, 1), whole.tflops, tflops)


def store(lake: Lake, report: MeterReport, spans: tuple[CountedSpan, ...]) -> Path:
    """Write or replace what one rank counted."""
    seen, place = report.seen, report.seen.place
    run = CountedRun(
        run_id=seen.who.run_id, rank=seen.who.rank, world_size=seen.who.world_size, state=seen.state,
        gpu_uuid=place.gpu_uuid, gpu_instance_id=place.gpu_instance_id,
        gpu_model=place.name if place.kind == "cuda" else None, precision=known(seen.precision),
        labels=dict(seen.who.labels), spans=spans, findings=report.findings, report=to_json(report),
    )  # fmt: skip
    return write_counted(lake, run)


def boards_of(lake: Lake | None, gpu_uuid: str | None) -> list[BoardCalibration]:
    """What a calibration of this board found; none where it was not calibrated."""
    if lake is None or gpu_uuid is None:
        return []
    file = calibration_file(lake, gpu_uuid)
    return [read_board(file)] if file.is_file() else []


@dataclass(frozen=True)
class RankRow:
    """One rank: its own time in a step, and what it spends in the backward pass and in waits."""

    rank: int
    host: str
    device: str
    own_ms: float
    waited_in_ms: float
    step_ms: float


@dataclass(frozen=True)
class Ranks:
    """All ranks of a run. `slow` is the rank the others wait for, None where they are even."""

    rows: tuple[RankRow, ...]
    slow: int | None
    behind_ms: float
    phase: str
    words: str


def compare(ranks: Sequence[Seen]) -> Ranks:
    """The ranks side by side, and the slow one by name; each as a report holds what was seen of it."""
    ordered = sorted(ranks, key=lambda seen: seen["who"]["rank"])
    rows = tuple(map(_row, ordered))
    if len(rows) < 2:
        return Ranks(rows, None, 0.0, "", "one rank: no other waits for it")
    last, slow = max(zip(rows, ordered, strict=True), key=lambda pair: pair[0].own_ms)
    behind = last.own_ms - median(r.own_ms for r in rows if r is not last)
    step = max(r.step_ms for r in rows)
    if not step or behind < NAMED_FROM_RATIO * step:
        even = f"{len(rows)} ranks are even within {100 * NAMED_FROM_RATIO:.0f} % of a step"
        return Ranks(rows, None, behind, "", even)
    others = [seen["phases_s"] for seen in ordered if seen is not slow]
    more = {p: s - median(phases.get(p, 0.0) for phases in others) for p, s in slow["phases_s"].items()}
    phase = max((p for p in more if p not in WAITED_IN), key=lambda p: more[p])
    words = (
        f"rank {last.rank} on {last.host or 'this host'} ({last.device}) keeps the others waiting {behind:.1f} ms per "
        f"step of {step:.1f} ms: {1000 * more[phase]:+.1f} ms in {phase}"
    )
    return Ranks(rows, last.rank, behind, phase, words)


def _row(seen: Seen) -> RankRow:
    who, phases = seen["who"], seen["phases_s"]
    waited, whole = sum(phases.get(p, 0.0) for p in WAITED_IN), sum(phases.values())
    return RankRow(
        who["rank"], who["host"], seen["place"]["name"], 1000 * (whole - waited), 1000 * waited, 1000 * whole
    )


def rank_and_size(torch: Any) -> tuple[int, int]:
    """Of the process group; one rank where there is none."""
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        return int(dist.get_rank()), int(dist.get_world_size())
    return 0, 1


def gather(torch: Any, seen: Seen) -> list[Seen]:
    """What was seen of every rank, on every rank. All ranks must call it, and they wait for each other."""
    _, size = rank_and_size(torch)
    if size == 1:
        return [seen]
    found: list[Any] = [None] * size
    torch.distributed.all_gather_object(found, seen)
    return found
