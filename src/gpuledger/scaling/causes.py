"""Which causes does the run speak to, and what does it say?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec

from gpuledger.bench.records import Run
from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.scaling.analysis.factors import WITHIN_CHANCE
from gpuledger.scaling.coldstart import ColdStart
from gpuledger.scaling.figures import Facts
from gpuledger.scaling.statement import Cause
from gpuledger.units import Unknown

TALKING = ("tensor_parallel", "pipeline_parallel", "parallelism")


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cause by name, and the words by which a claim about it is recognized."""

    name: str
    words: tuple[str, ...]


class CauseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole data file."""

    version: int
    causes: dict[str, Known]


Said = tuple[bool | Unknown, str]


@cache
def _known() -> dict[str, Known]:
    return load_toml(data_dir("gpuledger.scaling", "data", "causes.toml"), CauseFile).causes


def causes_of(facts: Facts, run: Run) -> tuple[Cause, ...]:
    """Every cause of the data file with what the run says to it."""
    out = []
    for name, known in _known().items():
        found, evidence = _LOOKS[name](facts, run)
        out.append(Cause(known.name, found, evidence, known.words))
    return tuple(out)


def _cold_start(facts: Facts, _run: Run) -> Said:
    cold = [(n.node, c) for n in facts.nodes if isinstance(c := n.cold_start, ColdStart)]
    unseen = [c for n in facts.nodes if isinstance(c := n.cold_start, Unknown)]
    if not cold and unseen:
        return unseen[0], f"it cannot be told on {len(unseen)} of {len(facts.nodes)} nodes: {unseen[0].why}"
    if not cold:
        return False, "no node's first requests were slower than the rest"
    said = ", ".join(f"{node} +{c.over_warm_pct:.0f} % over its warm requests" for node, c in cold)
    return True, f"first requests are slower: {said}"


def _network(_facts: Facts, run: Run) -> Said:
    talk = [f"{k} = {run.more[k]}" for k in TALKING if run.more.get(k) not in (None, 1, "none", "replicas", {})]
    if talk:
        return Unknown("the results hold no measure of traffic between nodes"), f"the nodes work together ({talk[0]})"
    return False, "each request was answered whole by one node: replicas that do not talk have no traffic to wait for"


def _imbalance(facts: Facts, _run: Run) -> Said:
    planned = {n.counts.planned for n in facts.nodes}
    if len(facts.nodes) < 2:
        return Unknown("one node only"), "there is no other node"
    if len(planned) > 1:
        return True, f"planned requests differ: {', '.join(f'{n.node} {n.counts.planned}' for n in facts.nodes)}"
    apart = [n.node for n in facts.nodes if n.outlier is True]
    if apart:
        return True, f"the same number for each, though {', '.join(apart)} is apart from the others"
    return False, "each node was to do the same number, and warm no node is apart from the others"


def _hardware(facts: Facts, _run: Run) -> Said:
    cards = {str(n.card if isinstance(n.gpu, Unknown) else n.gpu) for n in facts.nodes}
    if any(isinstance(n.gpu, Unknown) for n in facts.nodes):
        return Unknown("some node does not name its GPU"), "the cards are not all known"
    if len(cards) > 1:
        return True, f"the nodes have different cards: {', '.join(sorted(cards))}"
    apart = [n.node for n in facts.nodes if n.outlier is True]
    if apart:
        return Unknown("the results do not say more of the machines"), f"{', '.join(apart)} is apart on the same card"
    return False, f"all nodes have {next(iter(cards), 'the same card')}, and warm none is apart from the others"


def _lost(facts: Facts, _run: Run) -> Said:
    gone = facts.counts.planned - facts.counts.ok
    if not gone:
        return False, "every planned request was answered"
    where = ", ".join(
        f"{n.node} {n.counts.planned - n.counts.ok}" for n in facts.nodes if n.counts.ok < n.counts.planned
    )
    reasons = [p for n in facts.nodes for p in n.problems]
    why = f"; {reasons[0]}" if reasons else "; the results do not say why"
    return True, f"{gone} of {facts.counts.planned} were not answered ({where}){why}"


def _client(facts: Facts, run: Run) -> Said:
    if facts.client_bottleneck:
        return True, facts.client_bottleneck
    if isinstance(run.client, Unknown):
        return Unknown(run.client.why), "whether the client was the limit was not recorded"
    return False, "the client says that it was not the limit"


def _length(facts: Facts, _run: Run) -> Said:
    found = next((f.finding for f in facts.factors if f.name == "Length against latency"), "")
    span = facts.tokens.output_range
    if isinstance(span, Unknown) or not found or found.startswith("not known"):
        return Unknown("too few answers of different lengths"), "lengths and latencies are too few"
    return not found.endswith(WITHIN_CHANCE), found


_LOOKS: dict[str, Callable[[Facts, Run], Said]] = {
    "cold_start": _cold_start, "network": _network, "imbalance": _imbalance, "hardware": _hardware, "lost": _lost,
    "client": _client, "length": _length,
}  # fmt: skip
