"""How did each node do, and is one of them apart from the others?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuledger.bench.records import Node, Request, Run
from gpuledger.scaling.analysis.counting import counts_of, ok_requests
from gpuledger.scaling.analysis.latency import by_node, distribution, seconds, split
from gpuledger.scaling.analysis.memory import memory_of
from gpuledger.scaling.analysis.settings import SWEPT, swept
from gpuledger.scaling.coldstart import cold_start
from gpuledger.scaling.figures import Counts, Distribution, Figure, NodeFigures, Telemetry
from gpuledger.scaling.grades import Thresholds
from gpuledger.scaling.symmetry import Apart, compare_nodes
from gpuledger.units import Unknown, ratio


def node_figures(
    run: Run, wall_s: Figure, limits: Thresholds, seed: int, telemetry: Telemetry
) -> tuple[NodeFigures, ...]:
    """Every node of a run, in the order of the header."""
    latencies = by_node(run)
    _, warm = split(latencies, swept_batches=swept(run))
    counts = {name: counts_of(run, name) for name in run.names}
    apart = compare_nodes(warm, {n: (c.ok, c.planned) for n, c in counts.items()}, limits.nodes.apart_from_pct, seed)
    return tuple(
        _one(run, name, counts[name], latencies[name], warm[name], apart[name], wall_s, seed, telemetry)
        for name in run.names
    )


def _one(
    run: Run,
    name: str,
    counts: Counts,
    latencies: Sequence[float],
    warm: Sequence[float],
    apart: Apart,
    wall_s: Figure,
    seed: int,
    telemetry: Telemetry,
) -> NodeFigures:
    own = [r for r in run.measured if r.node == name]
    answered = ok_requests(own)
    node = run.nodes.get(name, Node())
    used, card, card_bytes, pct = memory_of(run, name, telemetry)
    tokens = [r.output_tokens for r in answered if not isinstance(r.output_tokens, Unknown)]
    taken = [r.input_tokens for r in answered if not isinstance(r.input_tokens, Unknown)]
    spread = distribution(latencies, seed)
    problems = _problems(run, name, own)
    return NodeFigures(
        node=name,
        gpu=node.gpu,
        gpus=node.gpus,
        counts=counts,
        throughput_per_s=wall_s if isinstance(wall_s, Unknown) else counts.ok / wall_s,
        inverse_latency_per_s=_inverse(spread),
        tokens_per_s=_tokens_per_s(answered, tokens, wall_s),
        latency=spread,
        warm=distribution(warm, seed),
        cold_start=Unknown(SWEPT) if swept(run) else cold_start(latencies),
        slower_pct=apart.slower_pct,
        outlier=apart.outlier,
        loses_more=apart.loses_more,
        busy_s=busy_s(own),
        memory_used_bytes=used,
        card=card,
        card_bytes=card_bytes,
        memory_pct=pct,
        mean_input_tokens=ratio(sum(taken), len(taken), "no request says how many tokens went in"),
        mean_output_tokens=ratio(sum(tokens), len(tokens), "no request says how many tokens came out"),
        problems=problems,
        status=_status(counts, apart, problems, alone=len(run.names) == 1),
    )


def _inverse(spread: Distribution) -> Figure:
    return spread.mean_s if isinstance(spread.mean_s, Unknown) else ratio(1, spread.mean_s.value, "latency is 0")


def _tokens_per_s(answered: Sequence[Request], tokens: Sequence[int], wall_s: Figure) -> Figure:
    if isinstance(wall_s, Unknown):
        return wall_s
    if len(tokens) < len(answered):
        return Unknown("some answers do not say how many tokens they have")
    return sum(tokens) / wall_s


def busy_s(requests: Sequence[Request]) -> Figure:
    """Seconds in which at least one request was in flight."""
    spans = [(r.start_s, r.end_s) for r in requests]
    known = [(s, e) for s, e in spans if not isinstance(s, Unknown) and not isinstance(e, Unknown)]
    if not known:
        return Unknown("no request says when it started and ended")
    total, reached = 0.0, -np.inf
    for start, end in sorted(known):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return float(total)


def _problems(run: Run, name: str, own: Sequence[Request]) -> tuple[str, ...]:
    told = list(run.problems.get(name, ()))
    errors: dict[str, int] = {}
    for r in own:
        if not r.ok:
            key = r.error or "no reason was recorded"
            errors[key] = errors.get(key, 0) + 1
    told += [f"{n} x {error}" for error, n in sorted(errors.items(), key=lambda pair: (-pair[1], pair[0]))[:5]]
    faults = [f for f in run.faults if f.node == name]
    if faults:
        told.append(f"{len(faults)} fault{'s' * (len(faults) != 1)} in its lines, the first: {faults[0].why}")
    no_clock = len(own) - len(seconds(r.latency_s for r in own if r.ok)) - sum(not r.ok for r in own)
    if no_clock:
        told.append(f"{no_clock} answers without a latency")
    return tuple(told)


def _status(counts: Counts, apart: Apart, problems: Sequence[str], *, alone: bool) -> str:
    said = []
    if not counts.ok:
        said.append("no success" if counts.planned else "no requests")
    elif counts.ok < counts.planned:
        word = "loses requests" if apart.loses_more is not True else "loses more requests than the others"
        said.append(word)
    if apart.outlier is True and not isinstance(apart.slower_pct, Unknown):
        said.append("slower than the others" if apart.slower_pct.value > 0 else "faster than the others")
    if not said and problems:
        said.append("answers all, with problems")
    return ", ".join(said) or ("the only node" if alone else "as the others")
