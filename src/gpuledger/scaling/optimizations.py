"""What could be changed, what would it bring, and when?"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.scaling.bottlenecks import (
    balance_gain_pct,
    batch_gain_pct,
    cold_gain_pct,
    idle_gain_pct,
    mending_gain_pct,
)
from gpuledger.scaling.figures import Facts, Figure
from gpuledger.scaling.statement import Horizon, Optimization
from gpuledger.units import Unknown

ALONE_BELOW = 1.5
MEASURED = "worked out from this run"


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the data file."""

    id: str
    name: str
    horizon: Horizon
    gain: str = ""
    source: str = ""


class OptimizationFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole data file."""

    version: int
    optimizations: tuple[Known, ...]


@cache
def _known() -> tuple[Known, ...]:
    return load_toml(data_dir("gpuledger.scaling", "data", "optimizations.toml"), OptimizationFile).optimizations


def optimizations_of(facts: Facts) -> tuple[Optimization, ...]:
    """The changes that apply to this run."""
    out = []
    for known in _known():
        found = _one(known, facts)
        if found is not None and not (known.id == "batching" and _batched_already(facts)):
            gain, basis, why = found
            out.append(Optimization(known.name, known.horizon, gain, basis, why))
    return tuple(out)


def _one(known: Known, facts: Facts) -> tuple[str, str, str] | None:
    computed = _COMPUTED.get(known.id)
    if computed is not None:
        gain, why = computed(facts), _WHY[known.id]
        if isinstance(gain, Unknown):
            return (known.gain or str(gain), known.source or "no figure is claimed", why) if known.gain else None
        return (_words(gain), MEASURED, why) if gain >= 1 else None
    if known.id == "adaptive_batching":
        return known.gain, known.source, "requests of different lengths wait for the longest of a fixed batch"
    if known.id == "memory":
        return _memory(facts)
    if known.id in {"model_parallelism", "pipeline_parallelism"}:
        return _parallel(facts)
    return _more_nodes(facts)


def _batched_already(facts: Facts) -> bool:
    """Whether nodes had several requests under way and no sweep says what more would bring, or that is not known."""
    if len(facts.batches.points) > 1:
        return False
    return isinstance(facts.in_flight, Unknown) or facts.in_flight >= ALONE_BELOW * max(facts.nodes_n, 1)


def _words(gain_pct: float) -> str:
    return f"+{gain_pct:.0f} % throughput" if gain_pct < 200 else f"{1 + gain_pct / 100:.1f} times the throughput"


def _memory(facts: Facts) -> tuple[str, str, str] | None:
    share = facts.memory_pct
    if isinstance(share, Unknown) or share >= 90:
        return None
    node = next((n for n in facts.nodes if not isinstance(n.memory_pct, Unknown)), None)
    if node is None or isinstance(node.card_bytes, Unknown) or isinstance(node.memory_used_bytes, Unknown):
        return None
    free = (node.card_bytes - node.memory_used_bytes) / 1e9
    why = f"{share:.0f} % of the real card is in use: {free:.1f} GB a GPU are free"
    return "none by itself: memory in use is no throughput; the batch it allows is", "see batching", why


def _parallel(facts: Facts) -> tuple[str, str, str]:
    share = facts.memory_pct
    if isinstance(share, Unknown):
        return "not known", "no figure is claimed", f"needed only where the model does not fit one GPU: {share}"
    return (
        "none for throughput",
        "replicas need no traffic between GPUs",
        f"the model fits one GPU ({share:.0f} % of it): splitting it adds traffic; it pays where a model does not fit",
    )


def _more_nodes(facts: Facts) -> tuple[str, str, str]:
    curve = facts.scaling.curve
    if curve.refused:
        return "not predicted", "no figure is claimed", curve.refused
    said = "; ".join(
        f"{p.size} {facts.scaling.unit}: {p.throughput_per_s.value:.2f}/s ({p.throughput_per_s.low:.2f} to "
        f"{p.throughput_per_s.high:.2f})"
        for p in curve.predictions
    )
    return said, "Universal Scalability Law", curve.note


def _balance(facts: Facts) -> Figure:
    return balance_gain_pct(facts) if any(n.outlier is True for n in facts.nodes) else 0.0


_COMPUTED = {
    "mend_failures": mending_gain_pct,
    "warm_up": cold_gain_pct,
    "fill_wall_clock": idle_gain_pct,
    "batching": batch_gain_pct,
    "balance": _balance,
}
_WHY = {
    "mend_failures": "planned over answered requests, in the same time",
    "warm_up": "the seconds that cold requests took over warm ones",
    "fill_wall_clock": "the wall clock over the seconds the busiest node had requests in flight; an upper limit",
    "batching": "one reading of the weights serves every request of a batch; sweep it: gpuledger bench",
    "balance": "an even split waits for the slowest node",
}
