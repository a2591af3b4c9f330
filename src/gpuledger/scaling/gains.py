"""What holds the run back, what could be changed and how much would that add, and what did others publish?

Figures of others are for the same model and GPU, and only with a date and a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import msgspec

from gpuledger.bench.records import present
from gpuledger.catalog.files import data_dir
from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.models import find_model
from gpuledger.scaling.figures import BatchPoint, ColdStart, Facts, Figure
from gpuledger.scaling.statement import Bottleneck, Horizon, Optimization, PublicFigure
from gpuledger.settings import convert, read_toml
from gpuledger.units import Unknown, ratio

WORTH_PCT = 1.0
ALONE_BELOW = 1.5
MEASURED = "computed from this run"
NO_FIGURE = "no figure is claimed"
Words = tuple[str, str, str]
Metric = Literal["single_stream_tokens_per_s", "tokens_per_gpu_per_s", "tokens_per_s"]


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the data file."""

    id: str
    name: str
    horizon: Horizon
    gain: str = ""
    source: str = ""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure of the data file."""

    model: str
    gpu: str
    what: str
    metric: Metric
    value: float
    unit: str
    source: str
    as_of: str
    note: str = ""


@cache
def _known() -> tuple[Known, ...]:
    file = data_dir("gpuledger.scaling", "data", "optimizations.toml")
    return convert(read_toml(file)["optimizations"], tuple[Known, ...], str(file))


def fixing_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if every planned request were answered in the same time."""
    counts = facts.counts
    return 100 * (counts.planned / counts.ok - 1) if counts.ok else Unknown("no request was answered")


def _idle_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if the busiest node had requests in flight from start to end."""
    most = max(present(n.busy_s for n in facts.nodes), default=0.0)
    if isinstance(facts.wall_s, Unknown) or most <= 0:
        return Unknown("start and end of the requests are not known")
    return max(0.0, 100 * (facts.wall_s / most - 1))


def _cold_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if the cold requests had been warm."""
    if isinstance(facts.wall_s, Unknown):
        return facts.wall_s
    spent = [c.requests * (c.mean_s - c.warm_mean_s) for n in facts.nodes if isinstance(c := n.cold_start, ColdStart)]
    left = facts.wall_s - max(spent, default=0.0)
    # Requests in flight together overlap, so their extra seconds may exceed those of the clock.
    return 100 * (facts.wall_s / left - 1) if left > 0 else Unknown("cold requests overlapped")


def _balance_gain_pct(facts: Facts) -> Figure:
    """Throughput gained over an even split if each node got the load its warm speed allows; 0 without an outlier."""
    means = [m.value for m in present(n.warm.mean_s for n in facts.nodes)]
    if not any(n.outlier is True for n in facts.nodes):
        return 0.0
    if len(means) < 2 or min(means) <= 0:
        return Unknown("fewer than two nodes answered")
    return 100 * (sum(1 / m for m in means) * max(means) / len(means) - 1)


def _batch_gain_pct(facts: Facts) -> Figure:
    """Throughput gained by the best batch of the sweep over the smallest."""
    points = facts.batches.points
    if len(points) < 2:
        return Unknown("no batch sweep was run")
    return 100 * (max(p.throughput_per_s for p in points) / points[0].throughput_per_s - 1)


def bottlenecks_of(facts: Facts) -> tuple[Bottleneck, ...]:
    """Those worth a percent of throughput or more, the largest first; those without a figure last."""
    found = [f for f in _found(facts) if isinstance(f[1], Unknown) or f[1] >= WORTH_PCT]
    found.sort(key=lambda f: (isinstance(f[1], Unknown), -(0.0 if isinstance(f[1], Unknown) else f[1])))
    return tuple(Bottleneck(i, *f) for i, f in enumerate(found, 1))


def _found(facts: Facts) -> Iterator[tuple[str, Figure, str]]:
    counts = facts.counts
    if counts.ok < counts.planned:
        gone = counts.planned - counts.ok
        where = ", ".join(
            f"{n.node} {n.counts.planned - n.counts.ok} of {n.counts.planned}"
            for n in facts.nodes
            if n.counts.ok < n.counts.planned
        )
        why = f"{gone} of {counts.planned} ({100 * gone / counts.planned:.0f} % of the plan) were not answered: {where}"
        yield "Lost and failed requests", fixing_gain_pct(facts), why
    idle = _idle_gain_pct(facts)
    if not isinstance(idle, Unknown):
        share = 100 / (1 + idle / 100)
        yield "Time outside requests", idle, f"the busiest node had requests in flight {share:.0f} % of the wall clock"
    yield "Cold start", _cold_gain_pct(facts), "the first requests are slower than the warm ones"
    balance, batch = _balance_gain_pct(facts), _batch_gain_pct(facts)
    if not isinstance(balance, Unknown):
        yield "Nodes that differ", balance, "an even split waits for the slowest node"
    if facts.client_bottleneck:
        yield "The client", Unknown("the client itself was the bottleneck"), facts.client_bottleneck
    if not isinstance(batch, Unknown):
        yield "Batch size", batch, facts.batches.note


def optimizations_of(facts: Facts) -> tuple[Optimization, ...]:
    """The changes that apply to this run."""
    found = ((known, _one(known, facts)) for known in _known())
    return tuple(Optimization(known.name, known.horizon, *words) for known, words in found if words is not None)


def _one(known: Known, facts: Facts) -> Words | None:
    """Gain, what it rests on, and why; None where the change does not apply."""
    if known.id == "batching" and _batched_already(facts):
        return None
    if known.id in _COMPUTED:
        compute, why = _COMPUTED[known.id]
        gain = compute(facts)
        if isinstance(gain, Unknown):
            return (known.gain, known.source or NO_FIGURE, why) if known.gain else None
        return (_times(gain), MEASURED, why) if gain >= WORTH_PCT else None
    if known.id in _PUBLISHED:
        return known.gain, known.source, _PUBLISHED[known.id]
    if known.id == "memory":
        return _memory(facts)
    return _parallel(facts) if known.id in {"model_parallelism", "pipeline_parallelism"} else _more_nodes(facts)


def _batched_already(facts: Facts) -> bool:
    """Whether nodes had several requests in flight without a sweep that shows the gain of more, or that is unknown."""
    if len(facts.batches.points) > 1:
        return False
    return isinstance(facts.in_flight, Unknown) or facts.in_flight >= ALONE_BELOW * max(facts.nodes_n, 1)


def _times(gain_pct: float) -> str:
    return f"+{gain_pct:.0f} % throughput" if gain_pct < 200 else f"{1 + gain_pct / 100:.1f} times the throughput"


def _memory(facts: Facts) -> Words | None:
    share = facts.memory_pct
    node = next((n for n in facts.nodes if not isinstance(n.memory_pct, Unknown)), None)
    if isinstance(share, Unknown) or share >= 90 or node is None:
        return None
    if isinstance(node.card_bytes, Unknown) or isinstance(node.memory_used_bytes, Unknown):
        return None
    free = (node.card_bytes - node.memory_used_bytes) / 1e9
    why = f"{share:.0f} % of the real card is in use: {free:.1f} GB per GPU are free"
    return "none by itself: free memory adds throughput only through a larger batch", "see batching", why


def _parallel(facts: Facts) -> Words:
    share = facts.memory_pct
    if isinstance(share, Unknown):
        return "not known", NO_FIGURE, f"needed only where the model does not fit one GPU: {share}"
    why = f"the model fits one GPU ({share:.0f} % of it): splitting it adds traffic; it pays where a model does not fit"
    return "none for throughput", "replicas need no traffic between GPUs", why


def _more_nodes(facts: Facts) -> Words:
    curve = facts.scaling.curve
    if curve.refused:
        return "not predicted", NO_FIGURE, curve.refused
    rates = ((p.size, p.throughput_per_s) for p in curve.predictions)
    gain = "; ".join(
        f"{size} {facts.scaling.unit}: {rate.value:.2f}/s ({rate.low:.2f} to {rate.high:.2f})" for size, rate in rates
    )
    return gain, "Universal Scalability Law", curve.note


_PUBLISHED = {
    "adaptive_batching": "requests of different lengths wait for the longest of a fixed batch",
    "pooling": "a cache reserved for the longest request stays empty for shorter ones; a server that pages it already "
    "gains nothing",
}
_COMPUTED = {
    "fix_failures": (fixing_gain_pct, "planned over answered requests, in the same time"),
    "warm_up": (_cold_gain_pct, "the extra seconds of cold requests over warm ones"),
    "fill_wall_clock": (
        _idle_gain_pct,
        "the wall clock over the seconds in which the busiest node had requests in flight; an upper limit",
    ),
    "batching": (
        _batch_gain_pct,
        "one reading of the weights serves every request of a batch; sweep it: gpuledger bench",
    ),
    "balance": (_balance_gain_pct, "an even split waits for the slowest node"),
}


@cache
def load_public() -> tuple[Published, ...]:
    """Every published figure."""
    file = data_dir("gpuledger.scaling", "data", "public_figures.toml")
    return convert(read_toml(file)["figures"], tuple[Published, ...], str(file))


def public_figures(facts: Facts) -> tuple[tuple[PublicFigure, ...], str]:
    """Those of the run's model and GPU, and a note on them."""
    named, cards = facts.model, {n.gpu for n in facts.nodes if isinstance(n.gpu, str)}
    if isinstance(named, Unknown):
        return (), f"No public figure: {named.why}."
    found_model = find_model(named)
    model = named if isinstance(found_model, Unknown) else found_model.name
    gpus = {found.key for card in cards if not isinstance(found := find_gpu(card), Unknown)}
    if len(gpus) != 1:
        return (), "No public figure: the nodes do not share one GPU of the catalog."
    gpu = gpus.pop()
    same = [f for f in load_public() if f.model == model and f.gpu == gpu]
    if not same:
        return (), f"No public figure is known for {model} on {gpu}, so the run cannot be ranked."
    shown = tuple(
        PublicFigure(f.model, f.gpu, f.what, f.value, f.unit, f.source, f.as_of, _ours(f.metric, facts), f.note)
        for f in same
    )
    return shown, "Settings differ: a published figure is a point of reference, not a rank."


def _ours(metric: Metric, facts: Facts) -> Figure:
    tokens, points = facts.tokens, facts.batches.points
    if len(points) > 1:  # of a sweep the comparable batch: one request at a time, or the best of all
        return _of_sweep(metric, points, facts.gpus)
    if metric == "single_stream_tokens_per_s":
        return tokens.single_stream_per_s
    if metric == "tokens_per_gpu_per_s":
        return tokens.per_gpu_per_s
    return tokens.per_s if isinstance(tokens.per_s, Unknown) else tokens.per_s.value


def _of_sweep(metric: Metric, points: Sequence[BatchPoint], gpus: int | Unknown) -> Figure:
    if metric == "single_stream_tokens_per_s":
        return next((p.tokens_per_s for p in points if p.batch == 1), Unknown("batch 1 was not in the sweep"))
    best = max(present(p.tokens_per_s for p in points), default=None)
    if best is None:
        return Unknown("no batch of the sweep reports its tokens")
    if metric == "tokens_per_s":
        return best
    return gpus if isinstance(gpus, Unknown) else ratio(best, gpus, "the run has no GPU")
