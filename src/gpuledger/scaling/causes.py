"""What shapes the result, and which causes does the run support or rule out?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import msgspec
import numpy as np

from gpuledger.bench.records import Run
from gpuledger.catalog.files import data_dir
from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.models import find_model
from gpuledger.efficiency.trend import two_sided_p
from gpuledger.scaling.analysis.counting import model_of
from gpuledger.scaling.analysis.latency import warm_requests
from gpuledger.scaling.figures import ColdStart, Factor, Facts, NodeFigures, Tokens
from gpuledger.scaling.statement import Cause
from gpuledger.settings import convert, read_toml
from gpuledger.units import Unknown

BYTES_PER_PARAMETER = 2  # fp16 and bf16, the usual formats of serving
LEAST_PAIRS = 8
SURE_P = 0.05
TALKING = ("tensor_parallel", "pipeline_parallel", "parallelism")
Nodes = tuple[NodeFigures, ...]
Found = tuple[bool | Unknown, str]


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cause by name, and the words by which a claim about it is recognized."""

    name: str
    words: tuple[str, ...]


def length_effect(run: Run) -> tuple[bool, str] | Unknown:
    """Whether warm latency goes with the length of the answer, by their correlation; and the share of its variance."""
    pairs = [
        (r.output_tokens, r.latency_s)
        for r in warm_requests(run)
        if not isinstance(r.output_tokens, Unknown) and not isinstance(r.latency_s, Unknown)
    ]
    made, took = np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs], float)
    if len(pairs) < LEAST_PAIRS or not made.std() or not took.std():
        return Unknown("too few answers of different lengths")
    r = float(np.corrcoef(made, took)[0, 1])
    t = abs(r) * float(np.sqrt((len(pairs) - 2) / max(1 - r * r, 1e-12)))
    sure = two_sided_p(t, len(pairs) - 2) < SURE_P
    words = f"{100 * r * r:.0f} % of the variance of warm latency goes with the length of the answer"
    return sure, words if sure else f"{words}, which is within chance"


def factors_of(run: Run, tokens: Tokens, nodes: Nodes) -> tuple[Factor, ...]:
    """Lengths of answers, the weights that must be read, how requests were sent; each with its figure."""
    effect = length_effect(run)
    lengths = [("Input length", tokens.input_range), ("Output length", tokens.output_range)]
    return (
        *(Factor(name, str(span) if isinstance(span, Unknown) else _width(*span)) for name, span in lengths),
        Factor("Length against latency", str(effect) if isinstance(effect, Unknown) else effect[1]),
        Factor("Reading the weights", _weights(run, tokens, nodes)),
        *_sending(run, nodes),
    )


def _width(least: int, most: int) -> str:
    return "all alike" if least == most else f"from {least} to {most} tokens"


def _weights(run: Run, tokens: Tokens, nodes: Nodes) -> str:
    """One stream reads all weights for every token: bandwidth over bytes is the most it can reach."""
    name = model_of(run)
    model = name if isinstance(name, Unknown) else find_model(name)
    if isinstance(model, Unknown):
        return str(model)
    cards = {n.gpu for n in nodes if isinstance(n.gpu, str)}
    gpu = find_gpu(cards.pop()) if len(cards) == 1 else Unknown("the nodes have different GPUs or name none")
    if isinstance(gpu, Unknown):
        return str(gpu)
    params, bandwidth = float(model.params_active), gpu.figure("memory_bandwidth_bytes_per_s")
    if isinstance(bandwidth, Unknown):
        return str(bandwidth)
    size = params * BYTES_PER_PARAMETER
    most = bandwidth / size
    words = (
        f"{params / 1e9:.1f} billion parameters are {size / 1e9:.1f} GB at 2 bytes each; {gpu.name} reads "
        f"{bandwidth / 1e9:,.0f} GB/s, so one stream makes at most {most:.0f} tokens per second; only a larger batch "
        "shares one reading of the weights"
    )
    one = tokens.single_stream_per_s
    if isinstance(one, Unknown):
        return words
    return f"{words}. Measured one at a time: {one:.1f} ({100 * one / most:.0f} %)"


def _sending(run: Run, nodes: Nodes) -> Iterator[Factor]:
    wall = run.wall_s
    if not isinstance(wall, Unknown) and wall > 0:
        shares = [
            f"{n.node} {100 * n.busy_s / wall:.0f} % of the wall clock"
            for n in nodes
            if not isinstance(n.busy_s, Unknown)
        ]
        if shares:
            yield Factor("Time on requests", ", ".join(shares))


@cache
def _known() -> dict[str, Known]:
    file = data_dir("gpuledger.scaling", "data", "causes.toml")
    return convert(read_toml(file)["causes"], dict[str, Known], str(file))


def causes_of(facts: Facts, run: Run) -> tuple[Cause, ...]:
    """Every cause of the data file with the evidence of the run."""
    return tuple(Cause(known.name, *_LOOKS[name](facts, run), known.words) for name, known in _known().items())


def _cold_start(facts: Facts, _run: Run) -> Found:
    cold = [(n.node, c) for n in facts.nodes if isinstance(c := n.cold_start, ColdStart)]
    unseen = [c for n in facts.nodes if isinstance(c := n.cold_start, Unknown)]
    if not cold and unseen:
        return unseen[0], f"it is not known on {len(unseen)} of {len(facts.nodes)} nodes: {unseen[0].why}"
    if not cold:
        return False, "no node's first requests were slower than the rest"
    slower = ", ".join(f"{node} +{c.over_warm_pct:.0f} % over its warm requests" for node, c in cold)
    return True, f"first requests are slower: {slower}"


def _network(_facts: Facts, run: Run) -> Found:
    talk = [f"{k} = {run.more[k]}" for k in TALKING if run.more.get(k) not in (None, 1, "none", "replicas", {})]
    if talk:
        return Unknown("the results hold no measure of traffic between nodes"), f"the nodes work together ({talk[0]})"
    return False, "each request was answered whole by one node: replicas that do not talk have no traffic to wait for"


def _outliers(facts: Facts) -> str:
    return ", ".join(n.node for n in facts.nodes if n.outlier is True)


def _imbalance(facts: Facts, _run: Run) -> Found:
    if len(facts.nodes) < 2:
        return Unknown("one node only"), "the run has one node"
    if len({n.counts.planned for n in facts.nodes}) > 1:
        return True, f"planned requests differ: {', '.join(f'{n.node} {n.counts.planned}' for n in facts.nodes)}"
    if apart := _outliers(facts):
        return True, f"every node got the same number, but {apart} differs from the others"
    return False, "every node got the same number, and when warm none differs from the others"


def _hardware(facts: Facts, _run: Run) -> Found:
    cards = sorted({n.gpu for n in facts.nodes if isinstance(n.gpu, str)})
    if any(isinstance(n.gpu, Unknown) for n in facts.nodes):
        return Unknown("some node does not name its GPU"), "not all GPUs are known"
    if len(cards) > 1:
        return True, f"the nodes have different GPUs: {', '.join(cards)}"
    if apart := _outliers(facts):
        return Unknown("the results do not describe the machines further"), f"{apart} differs with the same GPU"
    return False, f"all nodes have {next(iter(cards), 'the same GPU')}, and when warm none differs from the others"


def _lost(facts: Facts, _run: Run) -> Found:
    gone = facts.counts.planned - facts.counts.ok
    if not gone:
        return False, "every planned request was answered"
    where = ", ".join(
        f"{n.node} {n.counts.planned - n.counts.ok}" for n in facts.nodes if n.counts.ok < n.counts.planned
    )
    why = next((p for n in facts.nodes for p in n.problems), "the results do not say why")
    return True, f"{gone} of {facts.counts.planned} were not answered ({where}); {why}"


def _client(facts: Facts, run: Run) -> Found:
    if facts.client_bottleneck:
        return True, facts.client_bottleneck
    if isinstance(run.client, Unknown):
        return Unknown(run.client.why), "whether the client was the bottleneck was not recorded"
    return False, "the client reports that it was not the bottleneck"


def _length(_facts: Facts, run: Run) -> Found:
    found = length_effect(run)
    return (found, "lengths and latencies are too few") if isinstance(found, Unknown) else found


_LOOKS: dict[str, Callable[[Facts, Run], Found]] = {
    "cold_start": _cold_start, "network": _network, "imbalance": _imbalance, "hardware": _hardware, "lost": _lost,
    "client": _client, "length": _length,
}  # fmt: skip
