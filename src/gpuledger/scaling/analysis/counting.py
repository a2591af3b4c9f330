"""How many requests were planned, answered, failed and lost, and how many requests and tokens came per second?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpuledger.bench.records import Request, Run, present
from gpuledger.scaling.figures import Counts, Figure, Ranged, Tokens
from gpuledger.scaling.statistics import Interval, interval_of, rate_draws, wilson
from gpuledger.units import Unknown, ratio

NO_WALL = "the wall clock of the run is not known"
SWEPT = "batches were swept: latencies of different batches do not form one distribution"
OPEN_LOOPS = frozenset({"poisson", "trace", "open"})
OVER_BY_RATIO = 1.001  # clocks of client and runner may differ by this much


def model_of(run: Run) -> str | Unknown:
    """The model that the header or every node names."""
    own = run.more.get("model")
    if isinstance(own, str) and own:
        return own
    named = {str(n.more["model"]) for n in run.nodes.values() if n.more.get("model")}
    if len(named) == 1:
        return named.pop()
    return Unknown("the nodes serve different models" if named else "the results do not name the model")


def gpus_of(run: Run) -> int | Unknown:
    """All GPUs of a run."""
    known = present(run.nodes[name].gpus for name in run.names if name in run.nodes)
    return sum(known) if len(known) == len(run.names) else Unknown("the number of GPUs of some node is not known")


def swept(run: Run) -> bool:
    """Whether requests ran in batches of several sizes."""
    return len(set(present(r.batch for r in run.measured))) > 1


def load_of(run: Run) -> Mapping[str, object]:
    """The load as the header has it; empty where it has none."""
    load = run.more.get("load")
    return load if isinstance(load, Mapping) else {"kind": run.more.get("loop")}


def open_loop(run: Run) -> str | None:
    """The kind of load where requests came at a set rate: throughput then shows the rate, not the capacity."""
    kind = load_of(run).get("kind")
    return kind if isinstance(kind, str) and kind in OPEN_LOOPS else None


def counts_of(run: Run, node: str | None = None) -> Counts:
    """The outcome of the requests of a node, or of all; a planned request without a line is lost."""
    plan = {} if isinstance(run.planned, Unknown) else run.planned
    planned = ok = failed = lost = 0
    for name in run.names if node is None else (node,):
        own = [r for r in run.measured if r.node == name]
        wanted = plan.get(name, 0)
        planned += max(wanted, len(own))
        ok += sum(r.ok for r in own)
        failed += sum(not r.ok and not r.lost for r in own)
        lost += max(0, wanted - len(own)) + sum(r.lost for r in own)
    share = wilson(ok, planned)
    success = share if isinstance(share, Unknown) else share.each(lambda v: 100 * v)
    survivors = ratio(100 * ok, ok + failed, "every request was lost")
    return Counts(planned, ok, failed, lost, success, survivors, not isinstance(run.planned, Unknown))


def wall_of(run: Run) -> tuple[Figure, str]:
    """How long the run took, and how that is known."""
    last = max(present(r.end_s for r in run.measured), default=0.0)
    if not isinstance(run.wall_s, Unknown) and run.wall_s > 0:
        if last > run.wall_s * OVER_BY_RATIO:
            return last, f"the header has {run.wall_s:g} s, but the last request ended at {last:g} s, which is used"
        return run.wall_s, "wall clock of the run, from its header"
    if last > 0:
        why = run.wall_s.why if isinstance(run.wall_s, Unknown) else "the header's wall clock is 0"
        return last, f"from the common start to the end of the last request; {why}"
    return Unknown(f"{NO_WALL}, and no request has an end"), NO_WALL


def throughput_of(run: Run, seed: int) -> Ranged:
    """Answered requests over the wall clock, with its interval."""
    wall, answered = wall_of(run)[0], run.answered
    if isinstance(wall, Unknown) and (answered or not run.measured):
        return wall
    if isinstance(wall, Unknown) or not answered:
        return Interval(0.0, 0.0, 0.0)  # requests ended and none was answered: 0, however long it took
    return interval_of(len(answered) / wall, _draws(run, wall, seed))


def throughput_draws(run: Run, seed: int) -> np.ndarray | Unknown:
    """Resampled throughputs of a run."""
    wall, _ = wall_of(run)
    if isinstance(wall, Unknown):
        return wall
    return _draws(run, wall, seed) if run.answered else Unknown("the run has no success")


def _draws(run: Run, wall_s: float, seed: int) -> np.ndarray:
    starts = present(r.start_s for r in run.measured)
    ends = [float("nan") if isinstance(r.end_s, Unknown) else r.end_s for r in run.answered]
    together = in_flight(run)
    known = 1.0 if isinstance(together, Unknown) else together
    return rate_draws(ends, min(starts, default=float("nan")), wall_s, seed, known)


def in_flight(run: Run) -> Figure:
    """How many requests were in flight on average, all nodes together: seconds in requests over seconds passed."""
    answered = run.answered
    known = present(r.span_s for r in answered)
    if not known or len(known) < len(answered):
        return Unknown("start and end of some request are not known")
    passed = max(e for _, e in known) - min(s for s, _ in known)
    return ratio(sum(e - s for s, e in known), passed, "no time passed")


def tokens_in(run: Run, field: str) -> int | Unknown:
    """All input_tokens or output_tokens of the answers."""
    answered = run.answered
    known = present(getattr(r, field) for r in answered)
    if len(known) < len(answered) or not answered:
        return Unknown(f"{len(answered) - len(known)} of {len(answered)} answers do not report their {field}")
    return sum(known)


def tokens_of(run: Run, rate: Ranged) -> Tokens:
    """Tokens of the answered requests. Their interval is that of the throughput, times the tokens of an answer."""
    answered, total = run.answered, tokens_in(run, "output_tokens")
    per_s = _per_s(total, len(answered), wall_of(run)[0], rate)
    gpus = gpus_of(run)
    per_gpu: Figure = Unknown("the run has no GPU")
    if isinstance(per_s, Unknown) or isinstance(gpus, Unknown):
        per_gpu = next(v for v in (per_s, gpus) if isinstance(v, Unknown))
    elif gpus:
        per_gpu = per_s.value / gpus
    return Tokens(
        input_tokens=tokens_in(run, "input_tokens"),
        output_tokens=total,
        per_s=per_s,
        per_gpu_per_s=per_gpu,
        single_stream_per_s=_single(answered),
        input_range=_range(present(r.input_tokens for r in answered)),
        output_range=_range(present(r.output_tokens for r in answered)),
    )


def _per_s(total: int | Unknown, answers: int, wall_s: Figure, rate: Ranged) -> Ranged:
    if isinstance(total, Unknown):
        return total
    if isinstance(wall_s, Unknown) or isinstance(rate, Unknown):
        return wall_s if isinstance(wall_s, Unknown) else Unknown("throughput is not known")
    each = total / answers
    return Interval(total / wall_s, each * rate.low, each * rate.high)


def _single(answered: Sequence[Request]) -> Figure:
    alone = [r for r in answered if isinstance(r.batch, Unknown) or r.batch == 1]
    if answered and not alone:
        return Unknown("every request ran in a batch with others")
    rates = [
        r.output_tokens / r.latency_s
        for r in alone
        if not isinstance(r.output_tokens, Unknown) and not isinstance(r.latency_s, Unknown) and r.latency_s > 0
    ]
    return sum(rates) / len(rates) if rates else Unknown("no answer has both tokens and latency")


def _range(values: Sequence[int]) -> tuple[int, int] | Unknown:
    return (min(values), max(values)) if values else Unknown("no answer reports it")
