"""What came of a benchmark, in a few figures: by node, and by batch where batches were swept?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import Any

from gpuledger.bench.records import Node, Request, Run
from gpuledger.cost.pricing import PriceChoice, price_for
from gpuledger.units import Unknown, known

MILLION = 1_000_000
Figure = float | Unknown


@dataclass(frozen=True)
class NodeSummary:
    """One node, warm-up left out. `failed` came to an answer that is none, `lost` to no answer at all."""

    node: str
    planned: int | Unknown
    ok: int
    failed: int
    lost: int
    ttft_median_s: Figure
    latency_median_s: Figure
    first_error: str


@dataclass(frozen=True)
class Level:
    """One batch size of a sweep, by the wall clock of its own requests, reading the prompts included."""

    batch: int
    requests: int
    ok: int
    wall_s: float
    output_tokens: int | Unknown
    tokens_per_s: Figure
    ttft_median_s: Figure
    per_token_median_s: Figure
    weights_read_bytes_per_s: Figure
    energy_j: Figure
    joules_per_million_tokens: Figure
    usd_per_million_tokens: Decimal | Unknown


@dataclass(frozen=True)
class Summary:
    """A run in short. The full statement is `gpuledger scaling`."""

    wall_s: Figure
    planned: int | Unknown
    ok: int
    failed: int
    lost: int
    ok_per_s: Figure
    output_tokens_per_s: Figure
    nodes: tuple[NodeSummary, ...]
    levels: tuple[Level, ...]
    price_words: str


def summary_of(run: Run, choice: PriceChoice) -> Summary:
    """The few figures; dollars by the price chosen, or the market's for the card of the first node."""
    measured = run.measured
    ok = [r for r in measured if r.ok]
    nodes = tuple(_node(run, name) for name in run.names)
    tokens = _sum(r.output_tokens for r in ok)
    price, words = _usd_per_s(run, choice)
    wall = run.wall_s
    batches = sorted({r.batch for r in measured if not isinstance(r.batch, Unknown)})
    return Summary(
        wall_s=wall,
        planned=run.planned if isinstance(run.planned, Unknown) else sum(run.planned.values()),
        ok=len(ok),
        failed=sum(n.failed for n in nodes),
        lost=sum(n.lost for n in nodes),
        ok_per_s=_over(len(ok), wall),
        output_tokens_per_s=_over(tokens, wall),
        nodes=nodes,
        levels=tuple(_level(run, b, [r for r in measured if r.batch == b], price) for b in batches),
        price_words=words,
    )


def _node(run: Run, name: str) -> NodeSummary:
    own = [r for r in run.measured if r.node == name]
    ok = [r for r in own if r.ok]
    errors = [r.error for r in own if not r.ok and r.error]
    planned = run.planned if isinstance(run.planned, Unknown) else run.planned.get(name, 0)
    return NodeSummary(
        node=name,
        planned=planned,
        ok=len(ok),
        failed=sum(not r.ok and not r.lost for r in own),
        lost=sum(r.lost for r in own),
        ttft_median_s=_median(r.ttft_s for r in ok),
        latency_median_s=_median(r.latency_s for r in ok),
        first_error=errors[0] if errors else "",
    )


def _level(run: Run, batch: int, own: Sequence[Request], usd_per_s: Decimal | Unknown) -> Level:
    ok = [r for r in own if r.ok]
    starts = [s for r in own if (s := known(r.start_s)) is not None]
    ends = [e for r in own if (e := known(r.end_s)) is not None]
    wall = max(ends) - min(starts) if starts and ends else 0.0
    tokens = _sum(r.output_tokens for r in ok)
    spent = [r.more.get("energy_j") for r in ok]
    silent = Unknown("the driver told no energy")
    energy: Figure = sum(float(e) for e in spent if e is not None) if spent and None not in spent else silent
    return Level(
        batch=batch,
        requests=len(own),
        ok=len(ok),
        wall_s=wall,
        output_tokens=tokens,
        tokens_per_s=_over(tokens, wall),
        ttft_median_s=_median(r.ttft_s for r in ok),
        per_token_median_s=_median(r.per_token_s for r in ok),
        weights_read_bytes_per_s=_over(_read_bytes(run.nodes, own), _median(r.per_token_s for r in ok)),
        energy_j=energy,
        joules_per_million_tokens=_each_million(energy, tokens),
        usd_per_million_tokens=_dollars(usd_per_s, wall, tokens),
    )


def _each_million(amount: Figure, tokens: int | Unknown) -> Figure:
    if isinstance(amount, Unknown):
        return amount
    if isinstance(tokens, Unknown):
        return tokens
    return amount / tokens * MILLION if tokens else Unknown("no token came out")


def _dollars(usd_per_s: Decimal | Unknown, wall_s: float, tokens: int | Unknown) -> Decimal | Unknown:
    if isinstance(usd_per_s, Unknown):
        return usd_per_s
    if isinstance(tokens, Unknown):
        return tokens
    return usd_per_s * Decimal(repr(wall_s)) / tokens * MILLION if tokens else Unknown("no token came out")


def _read_bytes(nodes: Any, own: Sequence[Request]) -> int | Unknown:
    """What a step reads of the weights, where the node is a local model."""
    node: Node | None = nodes.get(own[0].node) if own else None
    read = node.more.get("weights_bytes_read_per_step") if node is not None else None
    return int(read) if read else Unknown("the weights are not ours to count")


def _usd_per_s(run: Run, choice: PriceChoice) -> tuple[Decimal | Unknown, str]:
    """Dollars a second for all cards of the run, and what the price rests on."""
    total, words = Decimal(0), []
    for name in run.names:
        node = run.nodes.get(name, Node())
        if isinstance(node.gpus, Unknown):
            return Unknown(f"node {name}: {node.gpus.why}"), ""
        price = price_for(None if isinstance(node.gpu, Unknown) else node.gpu, choice)
        if isinstance(price, Unknown):
            return price, ""
        total += node.gpus * price.usd_per_h
        words.append(price.words)
    return total / 3600, "; ".join(dict.fromkeys(words))


def _median(values: Iterable[float | Unknown]) -> Figure:
    found = [v for v in values if not isinstance(v, Unknown)]
    return median(found) if found else Unknown("no answer says")


def _sum(values: Iterable[int | Unknown]) -> int | Unknown:
    found = list(values)
    if any(isinstance(v, Unknown) for v in found):
        return Unknown("some answers do not say how many tokens they have")
    return sum(v for v in found if not isinstance(v, Unknown))


def _over(amount: float | Unknown, seconds: Figure) -> Figure:
    if isinstance(amount, Unknown):
        return amount
    if isinstance(seconds, Unknown):
        return seconds
    return amount / seconds if seconds else Unknown("no time passed")
