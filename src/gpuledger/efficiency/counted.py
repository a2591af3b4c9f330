"""What did jobs count themselves, on which devices, for how much of the time?

FLOPs a job counted are the best evidence of realized work (before pipe counters, before power). They cover the time
the job's meter ran, and nothing beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuledger.efficiency.statement import CountedAnalysis, CountedDevice, EfficiencyStatement, GpuRow, NotKnown
from gpuledger.lake.counted import CountedRun, CountedSpan, covered_ms, read_counted
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope, namespace_name
from gpuledger.physics.evidence import ModelFacts
from gpuledger.units import MS_PER_HOUR, MS_PER_S, Range, Unknown, count, ratio, some

EVIDENCE = "counted"
Found = tuple[CountedRun, tuple[CountedSpan, ...]]
_NO_FLOP = "the jobs counted steps but no FLOPs"


def with_counted(statement: EfficiencyStatement, lake: Lake, scope: Scope) -> EfficiencyStatement:
    """The statement with what jobs counted; unchanged where none did."""
    found = in_scope(read_counted(lake), scope)
    if not found:
        return statement
    analysis = counted_analysis(found, statement.per_gpu)
    missing = [
        NotKnown(f"rfu_counted_pct of {d.gpu_uuid}", d.rfu_counted_pct.why)
        for d in analysis.devices
        if isinstance(d.rfu_counted_pct, Unknown)
    ]
    return replace(
        statement,
        counted=analysis,
        findings=(*statement.findings[:1], *_sentence(analysis), *statement.findings[1:]),
        not_known=(*statement.not_known, *missing),
    )


def in_scope(runs: Iterable[CountedRun], scope: Scope) -> list[Found]:
    """The runs of the owners asked for, each with its spans that lie in the window."""
    found = []
    for run in runs:
        spans = tuple(s for span in run.spans if (s := _in_window(span, scope)))
        if spans and _owned(run, scope):
            found.append((run, spans))
    return found


def _in_window(span: CountedSpan, scope: Scope) -> CountedSpan | None:
    """The part of a span within the window, in proportion to time; the parts of adjoining windows add up."""
    low = span.start_ms if scope.since_ms is None else max(span.start_ms, scope.since_ms)
    high = span.end_ms if scope.until_ms is None else min(span.end_ms, scope.until_ms)
    length = span.end_ms - span.start_ms
    if high <= low or high - low == length:
        return span if high > low else None

    def whole(of: int | None) -> int | None:
        return None if of is None else of * (high - span.start_ms) // length - of * (low - span.start_ms) // length

    def amount(of: float | None) -> float | None:
        return None if of is None else of * (high - low) / length

    return CountedSpan(
        start_ms=low,
        end_ms=high,
        steps=whole(span.steps) or 0,
        tflop=amount(span.tflop),
        model_tflop=amount(span.model_tflop),
        tokens=whole(span.tokens),
        samples=whole(span.samples),
    )


def _owned(run: CountedRun, scope: Scope) -> bool:
    cluster, namespace, workload = (run.labels.get(k) for k in ("cluster", "namespace", "workload"))
    names = {workload, run.run_id, f"{namespace}/{workload}" if namespace and workload else None}
    return (
        (not scope.clusters or cluster in scope.clusters)
        and (not scope.namespaces or namespace_name(namespace or None) in scope.namespaces)
        and (not scope.owners or bool(names & set(scope.owners)))
    )


def counted_analysis(found: Sequence[Found], per_gpu: Sequence[GpuRow]) -> CountedAnalysis:
    """What was counted on the devices the ledger holds; what ran elsewhere is named in the note."""
    known = {(row.gpu_uuid, row.gpu_instance_id): row for row in per_gpu}
    by_device: dict[tuple[str, str | None], list[Found]] = {}
    elsewhere = set[str]()
    for run, spans in found:
        key = run.gpu_uuid or "", run.gpu_instance_id
        if key in known:
            by_device.setdefault(key, []).append((run, spans))
        else:
            elsewhere.add(run.run_id)
    devices = tuple(_device(known[key], members) for key, members in sorted(by_device.items(), key=str))
    covered_h = sum(d.covered_h for d in devices)
    observed_h = sum(row.means.observed_h for row in per_gpu)
    rated = [d for d in devices if not isinstance(d.rfu_counted_pct, Unknown)]
    weight = sum(d.covered_h for d in rated)
    mean = sum(d.rfu_counted_pct * d.covered_h for d in rated if not isinstance(d.rfu_counted_pct, Unknown))
    made = [d.realized_tflops.middle for d in devices if isinstance(d.realized_tflops, Range)]
    return CountedAnalysis(
        gpus=len({d.gpu_uuid for d in devices}),
        covered_h=covered_h,
        covered_pct_of_observed=ratio(100 * covered_h, observed_h, "nothing was observed"),
        realized_tflops=_exactly(sum(made)) if made else Unknown(_NO_FLOP),
        rfu_counted_pct=mean / weight if weight else Unknown("no counted device has a peak in the catalog"),
        devices=devices,
        note=_note(elsewhere),
    )


def _device(row: GpuRow, members: Sequence[Found]) -> CountedDevice:
    spans = [s for _, own in members for s in own]
    ms = covered_ms(spans)
    done, model = (_sum(getattr(s, k) for s in spans) for k in ("tflop", "model_tflop"))
    tokens = [s.tokens for s in spans if s.tokens is not None]
    seconds, no_flop, peak = ms / MS_PER_S, Unknown(_NO_FLOP), ModelFacts(row.gpu_model).peak_tflops
    return CountedDevice(
        gpu_uuid=row.gpu_uuid,
        gpu_instance_id=row.gpu_instance_id,
        gpu_model=row.gpu_model,
        host=row.host,
        gpu_index=row.gpu_index,
        runs=tuple(dict.fromkeys(run.run_id for run, _ in members)),
        covered_h=ms / MS_PER_HOUR,
        steps=sum(s.steps for s in spans),
        tokens=sum(tokens) if tokens else Unknown("the job's batches hold no tokens"),
        realized_tflops=no_flop if done is None else _exactly(done / seconds),
        model_tflops=no_flop if model is None else model / seconds,
        rfu_counted_pct=no_flop if done is None else peak if isinstance(peak, Unknown) else 100 * done / seconds / peak,
    )


def _exactly(tflops: float) -> Range:
    return Range(tflops, tflops, tflops, EVIDENCE)


def _sum(parts: Iterable[float | None]) -> float | None:
    known = [p for p in parts if p is not None]
    return sum(known) if known else None


def _note(elsewhere: set[str]) -> str:
    words = "counted on devices that have no samples in the window: record next to the job"
    return f"{some(sorted(elsewhere))} {words}" if elsewhere else ""


def _sentence(analysis: CountedAnalysis) -> tuple[str, ...]:
    rfu, part = analysis.rfu_counted_pct, analysis.covered_pct_of_observed
    if isinstance(rfu, Unknown) or isinstance(part, Unknown):
        return ()
    who = f"Jobs on {count(analysis.gpus, 'GPU')} counted their own FLOPs"
    return (f"{who} for {part:.0f} % of the observed time: {rfu:.0f} % of the dense peak.",)
