"""How did each node do, and does one of them differ from the others?

Each node's warm latencies are compared with those of all others (ratio of means, both sides resampled). With m nodes m
comparisons are made, so each gets an m-th of the error allowed. The node furthest off is an outlier where its interval
excludes 0 and the difference is as large as the thresholds require; it is then set aside and the rest compared again,
so that one slow node does not make the others look fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.bench.records import SOME_TOKENS, Node, Request, Run, present
from gpuledger.scaling.analysis.counting import SWEPT, counts_of, swept
from gpuledger.scaling.analysis.latency import by_node, cold_and_warm, cold_start, distribution
from gpuledger.scaling.analysis.telemetry import memory_of
from gpuledger.scaling.figures import Counts, Figure, NodeFigures, Telemetry
from gpuledger.scaling.grades import Thresholds
from gpuledger.scaling.statistics import LEVEL, Interval, fisher_p, ratio_of_means
from gpuledger.units import Unknown, ratio

LEAST_SAMPLES = 2
Seconds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Apart:
    """One node against the others: how much slower (%), whether that is beyond chance, and whether it loses more."""

    slower_pct: Interval | Unknown
    outlier: bool | Unknown
    loses_more: bool | Unknown


def node_figures(
    run: Run, wall_s: Figure, limits: Thresholds, seed: int, telemetry: Telemetry
) -> tuple[NodeFigures, ...]:
    """Every node of a run, in the order of the header."""
    latencies, (_, warm) = by_node(run), cold_and_warm(run)
    counts = {name: counts_of(run, name) for name in run.names}
    apart = compare_nodes(warm, {n: (c.ok, c.planned) for n, c in counts.items()}, limits.nodes.apart_from_pct, seed)
    batches = swept(run)
    out = []
    for name in run.names:
        own = [r for r in run.measured if r.node == name]
        node, problems = run.nodes.get(name, Node()), _problems(run, name, own)
        used, card, card_bytes, pct = memory_of(run, name, telemetry)
        tokens, taken = (present(getattr(r, f) for r in own if r.ok) for f in ("output_tokens", "input_tokens"))
        spread = distribution(latencies[name], seed)
        out.append(
            NodeFigures(
                node=name,
                gpu=node.gpu,
                gpus=node.gpus,
                counts=counts[name],
                throughput_per_s=wall_s if isinstance(wall_s, Unknown) else counts[name].ok / wall_s,
                inverse_latency_per_s=spread.mean_s
                if isinstance(spread.mean_s, Unknown)
                else ratio(1, spread.mean_s.value, "latency is 0"),
                tokens_per_s=_tokens_per_s(tokens, counts[name].ok, wall_s),
                latency=spread,
                warm=distribution(warm[name], seed),
                cold_start=Unknown(SWEPT) if batches else cold_start(latencies[name]),
                **vars(apart[name]),
                busy_s=busy_s(own),
                memory_used_bytes=used,
                card=card,
                card_bytes=card_bytes,
                memory_pct=pct,
                mean_input_tokens=ratio(sum(taken), len(taken), "no request reports its input tokens"),
                mean_output_tokens=ratio(sum(tokens), len(tokens), "no request reports its output tokens"),
                problems=problems,
                status=_status(counts[name], apart[name], problems, alone=len(run.names) == 1),
            )
        )
    return tuple(out)


def _tokens_per_s(tokens: Sequence[int], answers: int, wall_s: Figure) -> Figure:
    if isinstance(wall_s, Unknown):
        return wall_s
    return sum(tokens) / wall_s if len(tokens) == answers else Unknown(SOME_TOKENS)


def busy_s(requests: Sequence[Request]) -> Figure:
    """Seconds in which at least one request was in flight."""
    spans = present(r.span_s for r in requests)
    if not spans:
        return Unknown("no request has both start and end")
    total, reached = 0.0, -np.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return float(total)


def _problems(run: Run, name: str, own: Sequence[Request]) -> tuple[str, ...]:
    found = list(run.problems.get(name, ()))
    errors = Counter(r.error or "no reason was recorded" for r in own if not r.ok)
    found += [f"{n} x {error}" for error, n in sorted(errors.items(), key=lambda pair: (-pair[1], pair[0]))[:5]]
    faults = [f for f in run.faults if f.node == name]
    if faults:
        found.append(f"{len(faults)} fault{'s' * (len(faults) != 1)} in its lines, the first: {faults[0].why}")
    if no_clock := sum(r.ok and isinstance(r.latency_s, Unknown) for r in own):
        found.append(f"{no_clock} answers without a latency")
    return tuple(found)


def _status(counts: Counts, apart: Apart, problems: Sequence[str], *, alone: bool) -> str:
    said = []
    if not counts.ok:
        said.append("no success" if counts.planned else "no requests")
    elif counts.ok < counts.planned:
        said.append("loses more requests than the others" if apart.loses_more is True else "loses requests")
    if apart.outlier is True and not isinstance(apart.slower_pct, Unknown):
        said.append("slower than the others" if apart.slower_pct.value > 0 else "faster than the others")
    if not said and problems:
        said.append("answers all, with problems")
    return ", ".join(said) or ("the only node" if alone else "as the others")


def compare_nodes(
    warm_s: Seconds, counts: Mapping[str, tuple[int, int]], beyond_pct: float, seed: int
) -> dict[str, Apart]:
    """Every node against the rest, from warm latencies and from (successes, planned)."""
    if len(counts) < 2:
        only = Unknown("a single node has no other to be compared with")
        return {name: Apart(only, only, only) for name in counts}
    error = (1 - LEVEL) / len(counts)
    slower = {name: _slower(name, warm_s, 1 - error, seed + i) for i, name in enumerate(counts)}
    apart = _outliers(slower, warm_s, 1 - error, beyond_pct, seed)
    return {
        name: Apart(found, found if isinstance(found, Unknown) else name in apart, _loses_more(name, counts, error))
        for name, found in slower.items()
    }


def _outliers(
    slower: Mapping[str, Interval | Unknown], warm_s: Seconds, level: float, beyond_pct: float, seed: int
) -> set[str]:
    """The nodes apart, one after another."""
    apart: set[str] = set()
    left = dict(slower)
    while True:
        far = {
            name: abs(found.value)
            for name, found in left.items()
            if not isinstance(found, Unknown) and not found.holds(0) and abs(found.value) >= beyond_pct
        }
        if not far:
            return apart
        apart.add(max(far, key=far.__getitem__))
        rest = {name: values for name, values in warm_s.items() if name not in apart}
        left = {name: _slower(name, rest, level, seed + i) for i, name in enumerate(rest)} if len(rest) > 1 else {}


def _slower(name: str, warm_s: Seconds, level: float, seed: int) -> Interval | Unknown:
    own = warm_s.get(name, ())
    rest = [v for other, values in warm_s.items() if other != name for v in values]
    if min(len(own), len(rest)) < LEAST_SAMPLES:
        return Unknown(f"fewer than {LEAST_SAMPLES} warm answers on one side")
    found = ratio_of_means(own, rest, seed, level)
    return found if isinstance(found, Unknown) else found.each(lambda v: 100 * (v - 1))


def _loses_more(name: str, counts: Mapping[str, tuple[int, int]], error: float) -> bool | Unknown:
    good, planned = counts[name]
    others = [c for other, c in counts.items() if other != name]
    good_rest, planned_rest = sum(g for g, _ in others), sum(n for _, n in others)
    if not planned or not planned_rest:
        return Unknown("nothing was planned on one side")
    return fisher_p(good, planned, good_rest, planned_rest) < error
