"""How do stored runs move from one to the next? In the order they started, else as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.bench.records import Run
from gpuledger.efficiency.trend import two_sided_p
from gpuledger.scaling.analysis.counting import counts_of, throughput_of, wall_of
from gpuledger.scaling.analysis.latency import latency_of
from gpuledger.scaling.compare import compare_runs
from gpuledger.scaling.figures import Figure, Ranged
from gpuledger.scaling.statement import Change
from gpuledger.units import Unknown

LEAST_RUNS = 4
SURE_P = 0.05


@dataclass(frozen=True)
class TrendPoint:
    """One run, and what changed since the one before it: its settings, and every figure."""

    file: str
    started: str | None
    nodes: int
    success_pct: Ranged
    throughput_per_s: Ranged
    warm_latency_mean_s: Ranged
    settings: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Slope:
    """The way of one figure over the runs: percent of its mean a run, and whether that is beyond chance."""

    figure: str
    per_run_pct: Figure
    direction: str


@dataclass(frozen=True)
class Trend:
    """Runs in order."""

    points: tuple[TrendPoint, ...]
    slopes: tuple[Slope, ...]
    order: str


def trend_of(runs: Sequence[Run], seed: int) -> Trend:
    """Every run with what is beyond noise since the last, and the slope of the main figures."""
    stamps = [_started(r) for r in runs]
    dated = all(s is not None for s in stamps)
    ordered = (
        [r for _, r in sorted(zip(map(str, stamps), runs, strict=True), key=lambda p: p[0])] if dated else list(runs)
    )
    points: list[TrendPoint] = []
    last: Run | None = None
    for run in ordered:
        wall, _ = wall_of(run)
        since = None if last is None else compare_runs(last, run, seed)
        points.append(
            TrendPoint(
                file=run.file,
                started=_started(run),
                nodes=len(run.names),
                success_pct=counts_of(run).success_pct,
                throughput_per_s=throughput_of(run.measured, wall, seed),
                warm_latency_mean_s=latency_of(run, seed).warm.mean_s,
                settings=() if since is None else since.settings,
                changes=() if since is None else since.changes,
            )
        )
        last = run
    fields = ("success_pct", "throughput_per_s", "warm_latency_mean_s")
    order = "by the start in each header" if dated else "as given: some header does not say when the run started"
    return Trend(tuple(points), tuple(_slope(f, points) for f in fields), order)


def _started(run: Run) -> str | None:
    found = run.more.get("started") or run.more.get("started_at") or run.more.get("started_utc")
    return str(found) if found is not None else None


def _slope(figure: str, points: Sequence[TrendPoint]) -> Slope:
    values = [v.value for p in points if not isinstance(v := getattr(p, figure), Unknown)]
    if len(values) < LEAST_RUNS:
        why = Unknown(f"too few runs for a slope: {len(values)}, at least {LEAST_RUNS} are needed")
        return Slope(figure, why, str(why))
    y = np.asarray(values)
    x = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    error = float(np.sqrt(left @ left / (len(y) - 2) / (x @ x)))
    per_run = 100 * slope / float(y.mean()) if y.mean() else 0.0
    sure = (error == 0 and slope != 0) or (error > 0 and two_sided_p(slope / error, len(y) - 2) < SURE_P)
    return Slope(figure, per_run, ("rising" if slope > 0 else "falling") if sure else "flat: within chance")
