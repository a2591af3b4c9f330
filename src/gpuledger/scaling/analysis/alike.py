"""Are two runs sizes of one thing: same card, same model, as many requests under way?

Throughput rises with all three, so a baseline that differs in one of them makes any efficiency one wants. What a header
does not say is not held against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.bench.records import Run
from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.models import find_model
from gpuledger.scaling.analysis.settings import model_of, open_loop
from gpuledger.units import Unknown


def unlike(run: Run, other: Run, name: str) -> str:
    """Why the two are not sizes of one thing, the other called by `name`; empty where nothing speaks against it."""
    for what, r in (("the run", run), (name, other)):
        if kind := open_loop(r):
            return f"{what} sent requests at a set rate ({kind}): its throughput is that rate, measure a closed loop"
    ours, theirs = _cards(run), _cards(other)
    if ours and theirs and ours != theirs:
        return f"{name} ran on other cards: {_list(theirs)} there, {_list(ours)} in the run"
    names = _model(run), _model(other)
    if None not in names and names[0] != names[1]:
        return f"{name} served another model: {names[1]} there, {names[0]} in the run"
    return _load(run, other, name)


def _list(names: frozenset[str]) -> str:
    return " and ".join(sorted(names))


def _cards(run: Run) -> frozenset[str]:
    """The cards by the catalog's names; none where a node does not say."""
    named = [n.gpu for n in run.nodes.values()]
    if any(isinstance(n, Unknown) for n in named):
        return frozenset()
    found = ((n, find_gpu(n)) for n in named if isinstance(n, str))
    return frozenset(name if isinstance(card, Unknown) else card.name for name, card in found)


def _model(run: Run) -> str | None:
    name = model_of(run)
    if isinstance(name, Unknown):
        return None
    found = find_model(name)
    return name if isinstance(found, Unknown) else found.name


def _load(run: Run, other: Run, name: str) -> str:
    """Requests under way at each node, or in all: the same number of either is one kind of scaling."""
    ours, theirs = _said(run), _said(other)
    kinds = ours.get("kind"), theirs.get("kind")
    if None not in kinds and kinds[0] != kinds[1]:
        return f"the load of {name} is of another kind: {kinds[1]} there, {kinds[0]} in the run"
    swept = ours.get("batches"), theirs.get("batches")
    if None not in swept and swept[0] != swept[1]:
        return f"{name} swept other batches: {swept[1]} there, {swept[0]} in the run"
    here, there = ours.get("concurrency"), theirs.get("concurrency")
    if not isinstance(here, int) or not isinstance(there, int) or here == there:
        return ""
    if here * len(run.names) == there * len(other.names):
        return ""
    return (
        f"{name} had {there} requests under way at each node and the run {here}: nodes with more to do answer more; "
        f"measure it again with --concurrency {here}"
    )


def _said(run: Run) -> Mapping[str, Any]:
    load = run.more.get("load")
    return load if isinstance(load, Mapping) else {}
