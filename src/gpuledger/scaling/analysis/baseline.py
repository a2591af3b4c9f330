"""How much of N times one do N deliver? Only against a measured baseline, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuledger.bench.records import Run
from gpuledger.scaling.analysis.counting import (
    counts_of,
    gpus_of,
    throughput_draws,
    throughput_of,
    tokens_in,
    wall_of,
)  # fmt: skip
from gpuledger.scaling.analysis.curve import curve_of, unlike
from gpuledger.scaling.figures import Ranged, Scaling, Unit
from gpuledger.scaling.statistics import Interval, interval_of, quotient_of_draws
from gpuledger.units import Unknown

BASELINE_SEED = 7919  # so that a run and its baseline are not drawn alike


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


def scaling_of(run: Run, base: Run | Unknown, others: Sequence[Run], predict: Sequence[int], seed: int) -> Scaling:
    """Efficiency against the baseline, and the law over all sizes given."""
    every = [run, *others, *([] if isinstance(base, Unknown) or base in others else [base])]
    unit = unit_of(every)
    size = size_of(run, unit)
    curve = curve_of(run, [(size_of(r, unit), r) for r in every], predict, seed)
    file, refused = (None, base.why) if isinstance(base, Unknown) else (base.file, _unfit(run, base, unit))
    none = Unknown(refused)
    found = Scaling(unit, size, refused, file, none, none, none, none, none, none, none, curve)
    if isinstance(base, Unknown) or refused:
        return found
    ours, own = throughput_of(run, seed), throughput_draws(run, seed)
    basis, theirs = throughput_of(base, seed + BASELINE_SEED), throughput_draws(base, seed + BASELINE_SEED)
    # `_unfit` has refused runs without a rate.
    assert not isinstance(ours, Unknown)
    assert not isinstance(own, Unknown)
    assert not isinstance(basis, Unknown)
    assert not isinstance(theirs, Unknown)
    times = size / size_of(base, unit)
    factor = interval_of(ours.value / basis.value, quotient_of_draws(own, theirs))
    efficiency = factor.each(lambda v: 100 * v / times)
    return replace(
        found,
        refused=None,
        baseline_size=size_of(base, unit),
        baseline_per_s=basis,
        theoretical_per_s=basis.value * times,
        factor_x=factor,
        efficiency_pct=efficiency,
        token_factor_x=_tokens(run, base, factor),
        superlinear=efficiency.low > 100,
    )


def _unfit(run: Run, base: Run, unit: Unit) -> str:
    """Why a baseline cannot be compared with; empty where it can."""
    if same_run(run, base):
        return "the baseline is the run itself: a comparison with itself shows nothing"
    for what, r in (("the run", run), ("the baseline", base)):
        if not counts_of(r).ok:
            return f"{what} has no success, so its throughput cannot be compared"
        if isinstance(wall := wall_of(r)[0], Unknown):
            return f"{what}: {wall.why}"
    if size_of(base, unit) >= size_of(run, unit):
        sizes = f"{size_of(base, unit)} against {size_of(run, unit)} {unit}"
        return f"the baseline is not smaller than the run ({sizes}): that is a comparison, not scaling"
    return unlike(run, base, "the baseline")


def same_run(run: Run, base: Run) -> bool:
    """Whether a baseline is the run itself."""
    return base.requests == run.requests


def _tokens(run: Run, base: Run, factor: Interval) -> Ranged:
    """The factor in tokens: that of requests, times how much longer an answer is."""
    each = []
    for r in (run, base):
        made = tokens_in(r, "output_tokens")
        if isinstance(made, Unknown):
            return made
        each.append(made / counts_of(r).ok)
    if not each[1]:
        return Unknown("the baseline made no token")
    longer = each[0] / each[1]
    return factor.each(lambda v: v * longer)
