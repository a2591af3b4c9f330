"""What are the main figures of a benchmark: by node, and by batch where batches were swept?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import TypeVar

from gpuledger.bench.records import NO_TOKEN, SOME_TOKENS, Node, Request, Run, present
from gpuledger.cost.pricing import Price, PriceChoice, price_for
from gpuledger.units import Unknown

MILLION = 1_000_000
Figure = float | Unknown
M = TypeVar("M", float, Decimal)


@dataclass(frozen=True)
class NodeSummary:
    """One node, without warm-up. `failed` ended with an error, `lost` were never answered."""

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
    """One batch size of a sweep, by the wall clock of its own requests, prompt processing included."""

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
    """The main figures; dollars by the price chosen, else the market price of each node's GPU."""
    nodes = tuple(_node(run, name) for name in run.names)
    tokens = total_tokens(run.answered)
    price = hourly_price(run, choice)
    return Summary(
        wall_s=run.wall_s,
        planned=run.planned if isinstance(run.planned, Unknown) else sum(run.planned.values()),
        ok=len(run.answered),
        failed=sum(n.failed for n in nodes),
        lost=sum(n.lost for n in nodes),
        ok_per_s=_over(len(run.answered), run.wall_s),
        output_tokens_per_s=_over(tokens, run.wall_s),
        nodes=nodes,
        levels=levels_of(run, price),
        price_words="" if isinstance(price, Unknown) else price.words,
    )


def hourly_price(run: Run, choice: PriceChoice) -> Price | Unknown:
    """Dollars per hour for all GPUs of the run, with their range and what the price rests on."""
    prices: list[tuple[int, Price]] = []
    for name in run.names:
        node = run.nodes.get(name, Node())
        if isinstance(node.gpus, Unknown):
            return Unknown(f"the number of GPUs of node {name} is not known: {node.gpus.why}")
        price = price_for(None if isinstance(node.gpu, Unknown) else node.gpu, choice)
        if isinstance(price, Unknown):
            return price
        prices.append((node.gpus, price))
    if not prices:
        return Unknown("the run has no GPU")
    usd, low, high = (
        sum((n * getattr(p, name) for n, p in prices), Decimal(0)) for name in ("usd_per_h", "low_usd", "high_usd")
    )
    return Price(usd, prices[0][1].basis, "; ".join(dict.fromkeys(p.words for _, p in prices)), low, high)


def levels_of(run: Run, price: Price | Unknown) -> tuple[Level, ...]:
    """Every batch size of a sweep, smallest first; none where batches were not swept."""
    batches = sorted(set(present(r.batch for r in run.measured)))
    return tuple(_level(run, b, [r for r in run.measured if r.batch == b], price) for b in batches)


def _node(run: Run, name: str) -> NodeSummary:
    own = [r for r in run.measured if r.node == name]
    ok = [r for r in own if r.ok]
    return NodeSummary(
        node=name,
        planned=run.planned if isinstance(run.planned, Unknown) else run.planned.get(name, 0),
        ok=len(ok),
        failed=sum(not r.ok and not r.lost for r in own),
        lost=sum(r.lost for r in own),
        ttft_median_s=_median(r.ttft_s for r in ok),
        latency_median_s=_median(r.latency_s for r in ok),
        first_error=next((r.error for r in own if not r.ok and r.error), ""),
    )


def _level(run: Run, batch: int, own: Sequence[Request], price: Price | Unknown) -> Level:
    ok = [r for r in own if r.ok]
    starts, ends = present(r.start_s for r in own), present(r.end_s for r in own)
    wall = max(ends) - min(starts) if starts and ends else 0.0
    tokens, energy, per_token = total_tokens(ok), metered_j(ok), _median(r.per_token_s for r in ok)
    usd = price if isinstance(price, Unknown) else price.usd_per_h / 3600 * Decimal(repr(wall))
    return Level(
        batch=batch,
        requests=len(own),
        ok=len(ok),
        wall_s=wall,
        output_tokens=tokens,
        tokens_per_s=_over(tokens, wall),
        ttft_median_s=_median(r.ttft_s for r in ok),
        per_token_median_s=per_token,
        weights_read_bytes_per_s=_over(_read_bytes(run, own), per_token),
        energy_j=energy,
        joules_per_million_tokens=per_million(energy, tokens),
        usd_per_million_tokens=per_million(usd, tokens),
    )


def total_tokens(answered: Sequence[Request]) -> int | Unknown:
    """The output tokens of all answers."""
    found = present(r.output_tokens for r in answered)
    return sum(found) if len(found) == len(answered) else Unknown(SOME_TOKENS)


def metered_j(answered: Sequence[Request]) -> Figure:
    """The energy that the driver counted around each request, where a local model read its counter."""
    spent = [r.more.get("energy_j") for r in answered]
    known = [float(e) for e in spent if isinstance(e, int | float) and not isinstance(e, bool)]
    return sum(known) if spent and len(known) == len(spent) else Unknown("the driver did not report energy")


def per_million(amount: M | Unknown, tokens: int | Unknown) -> M | Unknown:
    """An amount of joules or dollars per million tokens."""
    if isinstance(amount, Unknown):
        return amount
    if isinstance(tokens, Unknown):
        return tokens
    return amount / tokens * MILLION if tokens else Unknown(NO_TOKEN)


def _read_bytes(run: Run, own: Sequence[Request]) -> int | Unknown:
    """The bytes of weights that one step reads, where the node is a local model."""
    node = run.nodes.get(own[0].node) if own else None
    read = node.more.get("weights_bytes_read_per_step") if node is not None else None
    return int(read) if read else Unknown("the weights of a remote model cannot be counted")


def _median(values: Iterable[float | Unknown]) -> Figure:
    found = present(values)
    return median(found) if found else Unknown("no answer reports it")


def _over(amount: float | Unknown, seconds: Figure) -> Figure:
    if isinstance(amount, Unknown) or isinstance(seconds, Unknown):
        return amount if isinstance(amount, Unknown) else seconds
    return amount / seconds if seconds else Unknown("no time passed")
