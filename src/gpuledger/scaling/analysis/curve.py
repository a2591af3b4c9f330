"""How much of N times one do N deliver, and how will N do? Against a measured baseline, and by a law over all sizes.

The law is the Universal Scalability Law (N. Gunther, "Guerrilla Capacity Planning", 2007):
X(N) = rate N / (1 + contention (N - 1) + coherency N (N - 1)).
N / X is linear in (1, N - 1, N (N - 1)), so least squares finds it without a starting point; negative shares are not
allowed. Only runs with the same GPU, model and requests in flight are sizes of one thing: throughput rises with all
three, so a baseline that differs in one can give any efficiency. What a header does not report does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from gpuledger.bench.records import Run, present
from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.models import find_model
from gpuledger.scaling.analysis.counting import (
    counts_of,
    gpus_of,
    load_of,
    model_of,
    open_loop,
    throughput_draws,
    throughput_of,
    tokens_in,
    wall_of,
)
from gpuledger.scaling.figures import Curve, Point, Prediction, Ranged, Scaling, Unit
from gpuledger.scaling.statistics import Interval, interval_of, quotient_of_draws
from gpuledger.units import Unknown

LEAST_SIZES = 3
BASELINE_SEED = 7919  # so that a run and its baseline are not drawn alike
FITS = 400  # laws fitted to resampled rates, for the range of their predictions


def unlike(run: Run, other: Run, name: str) -> str:
    """Why the two are not sizes of one thing, the other called by `name`; empty where they may be."""
    for what, r in (("the run", run), (name, other)):
        if kind := open_loop(r):
            return f"{what} sent requests at a set rate ({kind}): its throughput is that rate, measure a closed loop"
    ours, theirs = _cards(run), _cards(other)
    if ours and theirs and ours != theirs:
        return f"{name} ran on other GPUs: {' and '.join(theirs)} there, {' and '.join(ours)} in the run"
    models = _model(run), _model(other)
    if None not in models and models[0] != models[1]:
        return f"{name} served another model: {models[1]} there, {models[0]} in the run"
    return _other_load(run, other, name)


def _cards(run: Run) -> list[str]:
    """The GPUs by their catalog names; none where a node does not name its own."""
    named = [n.gpu for n in run.nodes.values()]
    found = {name: find_gpu(name) for name in named if isinstance(name, str)}
    cards = {name if isinstance(card, Unknown) else card.name for name, card in found.items()}
    return sorted(cards) if all(isinstance(n, str) for n in named) else []


def _model(run: Run) -> str | None:
    name = model_of(run)
    if isinstance(name, Unknown):
        return None
    found = find_model(name)
    return name if isinstance(found, Unknown) else found.name


def _other_load(run: Run, other: Run, name: str) -> str:
    """The same number of requests in flight at each node, or in all, is one kind of scaling."""
    ours, theirs = load_of(run), load_of(other)
    for field, words in (("kind", "had another kind of load"), ("batches", "swept other batches")):
        here, there = ours.get(field), theirs.get(field)
        if here is not None and there is not None and here != there:
            return f"{name} {words}: {there} there, {here} in the run"
    here, there = ours.get("concurrency"), theirs.get("concurrency")
    if not isinstance(here, int) or not isinstance(there, int) or here == there:
        return ""
    if here * len(run.names) == there * len(other.names):
        return ""
    return (
        f"{name} had {there} requests in flight at each node and the run {here}: nodes with more to do answer more; "
        f"measure it again with a concurrency of {here}"
    )


@dataclass(frozen=True)
class Law:
    """The fitted law: the rate of one, the cost of waiting in line, the cost of keeping each other consistent."""

    rate_per_s: float
    contention: float
    coherency: float

    def throughput_per_s(self, size: float) -> float:
        """The throughput of a size."""
        held = 1 + self.contention * (size - 1) + self.coherency * size * (size - 1)
        return self.rate_per_s * size / held

    @property
    def best_size(self) -> float | Unknown:
        """The size with the most throughput."""
        if self.coherency <= 0:
            return Unknown("the fit has no coherency cost, so throughput never turns down")
        return float(np.sqrt(max(0.0, 1 - self.contention) / self.coherency))


def fit(sizes: Sequence[float], rates_per_s: Sequence[float]) -> Law | Unknown:
    """The law closest to the measured rates, by relative error."""
    n, x = np.asarray(sizes, dtype=float), np.asarray(rates_per_s, dtype=float)
    distinct = sorted(set(n.tolist()))
    if len(distinct) < LEAST_SIZES:
        shown = ", ".join(f"{s:g}" for s in distinct) or "none"
        return Unknown(
            f"{len(distinct)} size{'s' * (len(distinct) != 1)} measured ({shown}): the law has three unknowns, "
            f"so {LEAST_SIZES} sizes are needed to fit it"
        )
    if (x <= 0).any():
        return Unknown("a run of one size had no success, so its rate is 0")
    table = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    weight = x / n  # 1 / (N / X): errors count relative to the value
    best: np.ndarray | None = None
    left = np.inf
    # Non-negative least squares with three unknowns: every set of those that may differ from zero is tried.
    for chosen in (c for k in (1, 2, 3) for c in combinations(range(3), k) if 0 in c):
        part, *_ = np.linalg.lstsq(table[:, chosen] * weight[:, None], np.ones_like(n), rcond=None)
        if part[0] <= 0 or (part < -1e-12).any():
            continue
        whole = np.zeros(3)
        whole[list(chosen)] = np.maximum(part, 0)
        error = float((((table @ whole) * weight - 1) ** 2).sum())
        if error < left * (1 - 1e-9) - 1e-18:  # of two equal fits the one with fewer costs
            best, left = whole, error
    if best is None:
        return Unknown("no law with a rate above 0 fits these figures")
    return Law(float(1 / best[0]), float(best[1] / best[0]), float(best[2] / best[0]))


def curve_of(judged: Run, sized: Sequence[tuple[int, Run]], predict: Sequence[int], seed: int) -> Curve:
    """The law and its predictions, or why there is none; over the runs that are comparable with the judged one."""
    points, drawn, left_out = [], [], []
    for i, (size, run) in enumerate(sorted(sized, key=lambda pair: pair[0])):
        name, draws, rate = Path(run.file).name, throughput_draws(run, seed + i), throughput_of(run, seed + i)
        if isinstance(draws, Unknown) or isinstance(rate, Unknown):
            left_out.append(f"{name}: {draws.why if isinstance(draws, Unknown) else rate}")
        elif why := unlike(judged, run, name):
            left_out.append(why)
        else:
            points.append(Point(run.file, size, rate))
            drawn.append(draws)
    omitted = "".join(f"; omitted: {why}" for why in dict.fromkeys(left_out))
    sizes = [p.size for p in points]
    law = fit(sizes, [p.throughput_per_s.value for p in points])
    if isinstance(law, Unknown):
        return Curve(law, law, law, law, tuple(points), (), f"{law.why}{omitted}", "")
    again = (fit(sizes, [float(d[i]) for d in drawn]) for i in range(min(FITS, *(len(d) for d in drawn))))
    laws = [found for found in again if isinstance(found, Law)]
    note = f"fitted to {len(points)} runs of {len(set(sizes))} sizes"
    if len(set(sizes)) == LEAST_SIZES:
        note += "; three sizes fix three unknowns, so the range shows the noise of the runs and not that of the law"
    return Curve(
        rate_per_s=interval_of(law.rate_per_s, np.array([x.rate_per_s for x in laws])),
        contention=interval_of(law.contention, np.array([x.contention for x in laws])),
        coherency=interval_of(law.coherency, np.array([x.coherency for x in laws])),
        best_size=law.best_size,
        points=tuple(points),
        predictions=tuple(_prediction(law, laws, size, max(sizes)) for size in sorted(set(predict))),
        refused=None,
        note=note + omitted,
    )


def _prediction(law: Law, laws: Sequence[Law], size: int, largest: int) -> Prediction:
    value = law.throughput_per_s(size)
    found = interval_of(value, np.array([x.throughput_per_s(size) for x in laws])).each(lambda v: max(0.0, v))
    return Prediction(size, found, 100 * value / (size * law.rate_per_s), size > largest)


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
    # `_unfit` has refused runs without a rate.
    sides = ((run, seed), (base, seed + BASELINE_SEED))
    ours, basis = present(throughput_of(r, s) for r, s in sides)
    own, theirs = present(throughput_draws(r, s) for r, s in sides)
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
