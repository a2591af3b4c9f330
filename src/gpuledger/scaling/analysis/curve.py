"""What will sizes that were not measured do? The scalability law through those that were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpuledger.bench.records import Run
from gpuledger.scaling.analysis.alike import unlike
from gpuledger.scaling.analysis.counting import throughput_draws, throughput_of, wall_of
from gpuledger.scaling.figures import Curve, Point, Prediction
from gpuledger.scaling.statistics import Interval, interval_of
from gpuledger.scaling.usl import Law, fit
from gpuledger.units import Unknown

FITS = 400  # laws fitted to resampled rates, for the range of what they predict


def curve_of(judged: Run, sized: Sequence[tuple[int, Run]], predict: Sequence[int], seed: int) -> Curve:
    """The law and its predictions, or why it refuses; over the runs that are sizes of the judged one's kind."""
    points, drawn, left_out = [], [], []
    for i, (size, run) in enumerate(sorted(sized, key=lambda pair: pair[0])):
        draws = throughput_draws(run, seed + i)
        rate = throughput_of(run.measured, wall_of(run)[0], seed + i)
        if isinstance(draws, Unknown) or isinstance(rate, Unknown):
            left_out.append(f"{Path(run.file).name}: {draws.why if isinstance(draws, Unknown) else rate}")
        elif why := unlike(judged, run, Path(run.file).name):
            left_out.append(why)
        else:
            points.append(Point(run.file, size, rate))
            drawn.append(draws)
    said = "".join(f"; left out: {why}" for why in dict.fromkeys(left_out))
    law = fit([p.size for p in points], [p.throughput_per_s.value for p in points])
    if isinstance(law, Unknown):
        return Curve(law, law, law, law, tuple(points), (), f"{law.why}{said}", "")
    laws = _refitted(points, drawn)
    largest = max(p.size for p in points)
    note = f"fitted to {len(points)} runs of {len({p.size for p in points})} sizes"
    if len({p.size for p in points}) == 3:
        note += "; three sizes fix three unknowns, so the range shows the noise of the runs and not that of the law"
    note += said
    return Curve(
        rate_per_s=interval_of(law.rate_per_s, np.array([x.rate_per_s for x in laws])),
        contention=interval_of(law.contention, np.array([x.contention for x in laws])),
        coherency=interval_of(law.coherency, np.array([x.coherency for x in laws])),
        best_size=law.best_size,
        points=tuple(points),
        predictions=tuple(_prediction(law, laws, size, largest) for size in sorted(set(predict))),
        refused=None,
        note=note,
    )


def _refitted(points: Sequence[Point], drawn: Sequence[np.ndarray]) -> list[Law]:
    count = min(FITS, *(len(d) for d in drawn))
    sizes = [p.size for p in points]
    made = (fit(sizes, [float(d[i]) for d in drawn]) for i in range(count))
    return [law for law in made if isinstance(law, Law)]


def _prediction(law: Law, laws: Sequence[Law], size: int, largest: int) -> Prediction:
    value = law.throughput_per_s(size)
    found = interval_of(value, np.array([x.throughput_per_s(size) for x in laws]))
    return Prediction(size, Interval(*(max(0.0, v) for v in (found.value, found.low, found.high))),
                      100 * value / (size * law.rate_per_s), size > largest)  # fmt: skip
