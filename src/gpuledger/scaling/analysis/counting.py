"""How many requests were planned, answered, failed and lost, and how many were answered a second?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpuledger.bench.records import Request, Run
from gpuledger.scaling.figures import Counts, Figure, Ranged
from gpuledger.scaling.statistics import Interval, interval_of, rate_draws, wilson
from gpuledger.units import Unknown, ratio

NO_WALL = "the wall clock of the run is not known"
OVER_BY_RATIO = 1.001  # clocks of client and runner may differ by this much


def ok_requests(requests: Iterable[Request]) -> tuple[Request, ...]:
    """The answered ones."""
    return tuple(r for r in requests if r.ok)


def counts_of(run: Run, node: str | None = None) -> Counts:
    """What became of the requests of a node, or of all; a planned request without a line is lost."""
    names = run.names if node is None else (node,)
    known = not isinstance(run.planned, Unknown)
    planned = ok = failed = lost = 0
    for name in names:
        own = [r for r in run.measured if r.node == name]
        wanted = 0 if isinstance(run.planned, Unknown) else run.planned.get(name, 0)
        silent = max(0, wanted - len(own))
        planned += max(wanted, len(own))
        ok += sum(r.ok for r in own)
        failed += sum(not r.ok and not r.lost for r in own)
        lost += silent + sum(r.lost for r in own)
    share = wilson(ok, planned)
    success = share if isinstance(share, Unknown) else Interval(100 * share.value, 100 * share.low, 100 * share.high)
    answered = ok + failed
    survivors: Figure = 100 * ok / answered if answered else Unknown("no request came back")
    return Counts(planned, ok, failed, lost, success, survivors, known)


def wall_of(run: Run) -> tuple[Figure, str]:
    """How long the run took, and how that is known."""
    ends = [e for r in run.measured if not isinstance(e := r.end_s, Unknown)]
    last = max(ends, default=0.0)
    if not isinstance(run.wall_s, Unknown) and run.wall_s > 0:
        if last > run.wall_s * OVER_BY_RATIO:
            return last, f"the header says {run.wall_s:g} s, but the last request ended at {last:g} s: that is taken"
        return run.wall_s, "wall clock of the run, from its header"
    if last > 0:
        return last, f"from the common start to the end of the last request; {_no_wall(run)}"
    return Unknown(f"{NO_WALL}, and no request says when it ended"), NO_WALL


def _no_wall(run: Run) -> str:
    return run.wall_s.why if isinstance(run.wall_s, Unknown) else "the header's wall clock is 0"


def ends_of(requests: Sequence[Request]) -> np.ndarray:
    """When each ended; not-a-number where that is not known."""
    found = (r.end_s for r in requests)
    return np.array([np.nan if isinstance(e, Unknown) else e for e in found], dtype=float)


def throughput_of(requests: Sequence[Request], wall_s: Figure, seed: int) -> Ranged:
    """Answered requests over the wall clock, with its interval."""
    answered = ok_requests(requests)
    if isinstance(wall_s, Unknown) and (answered or not requests):
        return wall_s
    if isinstance(wall_s, Unknown) or not answered:
        return Interval(0.0, 0.0, 0.0)  # requests came to an end and none to an answer: 0, however long it took
    return interval_of(len(answered) / wall_s, _draws(requests, wall_s, seed))


def _draws(requests: Sequence[Request], wall_s: float, seed: int) -> np.ndarray:
    starts = [s for r in requests if not isinstance(s := r.start_s, Unknown)]
    ends = ends_of(ok_requests(requests)).tolist()
    together = in_flight(requests)
    known = 1.0 if isinstance(together, Unknown) else together
    return rate_draws(ends, min(starts, default=float("nan")), wall_s, seed, known)


def in_flight(requests: Sequence[Request]) -> Figure:
    """How many requests were under way on average, all nodes together: seconds in requests over seconds passed."""
    answered = ok_requests(requests)
    spans = [(r.start_s, r.end_s) for r in answered]
    known = [(s, e) for s, e in spans if not isinstance(s, Unknown) and not isinstance(e, Unknown)]
    if not known or len(known) < len(answered):
        return Unknown("the results do not say when every request started and ended")
    passed = max(e for _, e in known) - min(s for s, _ in known)
    return ratio(sum(e - s for s, e in known), passed, "no time passed")


def throughput_draws(run: Run, seed: int) -> np.ndarray | Unknown:
    """Resampled throughputs of a run."""
    wall, _ = wall_of(run)
    if isinstance(wall, Unknown):
        return wall
    if not ok_requests(run.measured):
        return Unknown("the run has no success")
    return _draws(run.measured, wall, seed)
