"""Which model was served, and did requests wait for answers or come at a set rate?"""

from __future__ import annotations

from collections.abc import Mapping

from gpuledger.bench.records import Run
from gpuledger.units import Unknown

OPEN_LOOPS = frozenset({"poisson", "trace", "open"})


def model_of(run: Run) -> str | Unknown:
    """The model the header or every node names."""
    own = run.more.get("model")
    if isinstance(own, str) and own:
        return own
    named = {str(n.more["model"]) for n in run.nodes.values() if n.more.get("model")}
    if len(named) == 1:
        return named.pop()
    return Unknown("the nodes serve different models" if named else "the results do not name the model")


SWEPT = "batches were swept: latencies of different batches are no one distribution"


def swept(run: Run) -> bool:
    """Whether requests ran in batches of several sizes."""
    return len({r.batch for r in run.measured if not isinstance(r.batch, Unknown)}) > 1


def open_loop(run: Run) -> str | None:
    """How requests came, where they came at a set rate: then throughput shows the rate, not what the nodes can do."""
    load = run.more.get("load")
    kind = load.get("kind") if isinstance(load, Mapping) else run.more.get("loop")
    return kind if isinstance(kind, str) and kind in OPEN_LOOPS else None
