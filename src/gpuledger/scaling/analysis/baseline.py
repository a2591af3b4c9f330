"""How much of N times one do N deliver? Against a measured baseline only, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.bench.records import Run
from gpuledger.scaling.analysis.alike import unlike
from gpuledger.scaling.analysis.counting import counts_of, throughput_draws, throughput_of, wall_of
from gpuledger.scaling.analysis.curve import curve_of
from gpuledger.scaling.analysis.tokens import tokens_of
from gpuledger.scaling.figures import Ranged, Scaling, Unit
from gpuledger.scaling.statistics import Interval, interval_of
from gpuledger.units import Unknown

BASELINE_SEED = 7919  # so that a run and its baseline are not drawn alike


@dataclass(frozen=True)
class Baseline:
    """The run to compare with, or why there is none."""

    run: Run | None
    why: str


def gpus_of(run: Run) -> int | Unknown:
    """All GPUs of a run."""
    known = [n.gpus for n in (run.nodes[name] for name in run.names if name in run.nodes)]
    if len(known) < len(run.names) or any(isinstance(g, Unknown) for g in known):
        return Unknown("some node does not say how many GPUs it has")
    return sum(g for g in known if not isinstance(g, Unknown))


def unit_of(runs: Sequence[Run]) -> Unit:
    """What sizes are counted in: nodes, or GPUs where nodes have more of them in one run than in another."""
    counted = [(g, len(r.names)) for r in runs if not isinstance(g := gpus_of(r), Unknown) and g]
    if len(counted) < len(runs):
        return "nodes"
    first, nodes = counted[0]
    return "GPUs" if any(g * nodes != first * n for g, n in counted) else "nodes"


def size_of(run: Run, unit: Unit) -> int:
    """How large a run is."""
    gpus = gpus_of(run)
    return gpus if unit == "GPUs" and not isinstance(gpus, Unknown) else len(run.names)


def scaling_of(run: Run, baseline: Baseline, others: Sequence[Run], predict: Sequence[int], seed: int) -> Scaling:
    """Efficiency against the baseline, and the law over all sizes given."""
    base = baseline.run
    every = [run, *others, *([base] if base is not None and base not in others else [])]
    unit = unit_of(every)
    sized = [(size_of(r, unit), r) for r in every]
    curve = curve_of(run, sized, predict, seed)
    size = size_of(run, unit)
    refused = baseline.why if base is None else _unfit(run, base, unit)
    if base is None or refused:
        none = Unknown(refused)
        return Scaling(
            unit, size, refused, base.file if base else None, none, none, none, none, none, none, none, curve
        )
    own, theirs = throughput_draws(run, seed), throughput_draws(base, seed + BASELINE_SEED)
    rates = [throughput_of(r.measured, wall_of(r)[0], s) for r, s in ((run, seed), (base, seed + BASELINE_SEED))]
    assert not isinstance(own, Unknown)
    assert not isinstance(theirs, Unknown)
    ours, basis = (r for r in rates if not isinstance(r, Unknown))
    times = size / size_of(base, unit)
    factor = _ratio(ours, basis, own, theirs)
    efficiency = Interval(*(100 * v / times for v in (factor.value, factor.low, factor.high)))
    return Scaling(
        unit=unit,
        size=size,
        refused=None,
        baseline_file=base.file,
        baseline_size=size_of(base, unit),
        baseline_per_s=basis,
        theoretical_per_s=basis.value * times,
        factor_x=factor,
        efficiency_pct=efficiency,
        token_factor_x=_tokens(run, base, factor),
        superlinear=efficiency.low > 100,
        curve=curve,
    )


def _unfit(run: Run, base: Run, unit: Unit) -> str:
    """Why a baseline cannot be compared with; empty where it can."""
    if base.requests == run.requests:
        return "the baseline is the run itself: a comparison with itself says nothing"
    for what, r in (("the run", run), ("the baseline", base)):
        if not counts_of(r).ok:
            return f"{what} has no success, so there is no throughput to compare"
        if isinstance(wall := wall_of(r)[0], Unknown):
            return f"{what}: {wall.why}"
    if size_of(base, unit) >= size_of(run, unit):
        sizes = f"{size_of(base, unit)} against {size_of(run, unit)} {unit}"
        return f"the baseline is not smaller than the run ({sizes}): that is a comparison, not scaling"
    return unlike(run, base, "the baseline")


def _ratio(ours: Interval, basis: Interval, own: np.ndarray, theirs: np.ndarray) -> Interval:
    kept = min(len(own), len(theirs))
    with np.errstate(divide="ignore", invalid="ignore"):
        return interval_of(ours.value / basis.value, own[:kept] / theirs[:kept])


def _tokens(run: Run, base: Run, factor: Interval) -> Ranged:
    """The factor in tokens: that of requests, times how much longer an answer is."""
    each = []
    for r in (run, base):
        made = tokens_of(r, Unknown(""), Unknown(""), Unknown("")).output_tokens
        if isinstance(made, Unknown):
            return made
        each.append(made / counts_of(r).ok)
    if not each[1]:
        return Unknown("the baseline made no token")
    longer = each[0] / each[1]
    return Interval(factor.value * longer, factor.low * longer, factor.high * longer)
