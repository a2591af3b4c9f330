"""What shapes the result? Lengths of answers, the weights that must be read, how requests were sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpuledger.bench.records import Run
from gpuledger.catalog.gpus import find_gpu
from gpuledger.efficiency.trend import two_sided_p
from gpuledger.scaling.analysis.latency import warm_requests
from gpuledger.scaling.analysis.settings import model_of
from gpuledger.scaling.figures import Factor, NodeFigures, Tokens
from gpuledger.units import Unknown

BYTES_PER_PARAMETER = 2  # fp16 and bf16, which serving uses unless told otherwise
LEAST_PAIRS = 8
SURE_P = 0.05
WITHIN_CHANCE = ", which is within chance"


def factors_of(run: Run, tokens: Tokens, nodes: tuple[NodeFigures, ...]) -> tuple[Factor, ...]:
    """Each with the figure that says so."""
    return (*_lengths(run, tokens), *_weights(run, tokens, nodes), *_sending(run, nodes))


def _lengths(run: Run, tokens: Tokens) -> Iterator[Factor]:
    for name, span in (("Input length", tokens.input_range), ("Output length", tokens.output_range)):
        if isinstance(span, Unknown):
            yield Factor(name, str(span))
        else:
            wide = "all alike" if span[0] == span[1] else f"from {span[0]} to {span[1]} tokens"
            yield Factor(name, wide)
    pairs = [
        (r.output_tokens, r.latency_s)
        for r in warm_requests(run)
        if not isinstance(r.output_tokens, Unknown) and not isinstance(r.latency_s, Unknown)
    ]
    made, took = np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs], float)
    if len(pairs) < LEAST_PAIRS or not made.std() or not took.std():
        yield Factor("Length against latency", "not known: too few answers of different lengths")
        return
    r = float(np.corrcoef(made, took)[0, 1])
    t = abs(r) * float(np.sqrt((len(pairs) - 2) / max(1 - r * r, 1e-12)))
    sure = "" if two_sided_p(t, len(pairs) - 2) < SURE_P else WITHIN_CHANCE
    share = f"{100 * r * r:.0f} % of the variance of warm latency goes with the length of the answer{sure}"
    yield Factor("Length against latency", share)


def _weights(run: Run, tokens: Tokens, nodes: tuple[NodeFigures, ...]) -> Iterator[Factor]:
    """One stream reads all weights for every token: bandwidth over bytes is the most it can do."""
    name = model_of(run)
    params = name if isinstance(name, Unknown) else _params(name)
    if isinstance(params, Unknown):
        yield Factor("Reading the weights", str(params))
        return
    cards = {n.gpu for n in nodes if isinstance(n.gpu, str)}
    found = find_gpu(cards.pop()) if len(cards) == 1 else Unknown("the nodes have no one card in common")
    if isinstance(found, Unknown):
        yield Factor("Reading the weights", str(found))
        return
    size = params * BYTES_PER_PARAMETER
    most = found.memory_bandwidth_bytes_per_s.value / size
    words = (
        f"{params / 1e9:.1f} billion parameters are {size / 1e9:.1f} GB at 2 bytes each; {found.name} reads "
        f"{found.memory_bandwidth_bytes_per_s.value / 1e9:,.0f} GB/s, so one stream makes at most {most:.0f} tokens a "
        "second, whatever else is done; only a larger batch shares one reading of the weights"
    )
    if not isinstance(tokens.single_stream_per_s, Unknown):
        one = tokens.single_stream_per_s
        words += f". Measured one at a time: {one:.1f} ({100 * one / most:.0f} %)"
    yield Factor("Reading the weights", words)


def _params(name: str) -> float | Unknown:
    from gpuledger.catalog.models import find_model

    found = find_model(name)
    return found if isinstance(found, Unknown) else float(found.params_active)


def _sending(run: Run, nodes: tuple[NodeFigures, ...]) -> Iterator[Factor]:
    busy = [n.busy_s for n in nodes if not isinstance(n.busy_s, Unknown)]
    if busy and not isinstance(run.wall_s, Unknown) and run.wall_s > 0:
        yield Factor("Time on requests", ", ".join(
            f"{n.node} {100 * n.busy_s / run.wall_s:.0f} % of the wall clock"
            for n in nodes if not isinstance(n.busy_s, Unknown)
        ))  # fmt: skip
