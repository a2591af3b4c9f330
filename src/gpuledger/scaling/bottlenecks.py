"""What holds the run back most, and how much would mending it bring?"""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.scaling.coldstart import ColdStart
from gpuledger.scaling.figures import Facts, Figure
from gpuledger.scaling.statement import Bottleneck
from gpuledger.units import Unknown

WORTH_PCT = 1.0


def bottlenecks_of(facts: Facts) -> tuple[Bottleneck, ...]:
    """Those worth a percent of throughput or more, the largest first; those without a figure last."""
    found = [f for f in _found(facts) if isinstance(f[1], Unknown) or f[1] >= WORTH_PCT]
    found.sort(key=lambda f: (isinstance(f[1], Unknown), -(0.0 if isinstance(f[1], Unknown) else f[1])))
    return tuple(Bottleneck(i, *f) for i, f in enumerate(found, 1))


def mending_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if every planned request were answered in the same time."""
    counts = facts.counts
    if not counts.ok:
        return Unknown("no request was answered, so there is nothing to gain upon")
    return 100 * (counts.planned / counts.ok - 1)


def idle_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if the busiest node had requests in flight from start to end."""
    busy = [n.busy_s for n in facts.nodes if not isinstance(n.busy_s, Unknown)]
    if isinstance(facts.wall_s, Unknown) or not busy or max(busy) <= 0:
        return Unknown("the results do not say when requests started and ended")
    return max(0.0, 100 * (facts.wall_s / max(busy) - 1))


def cold_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if the cold requests had been warm."""
    if isinstance(facts.wall_s, Unknown):
        return facts.wall_s
    spent = [c.requests * (c.mean_s - c.warm_mean_s) for n in facts.nodes if isinstance(c := n.cold_start, ColdStart)]
    if not spent:
        return 0.0
    left = facts.wall_s - max(spent)
    # Requests in flight together overlap, so their surplus seconds may be more than the clock's.
    return 100 * (facts.wall_s / left - 1) if left > 0 else Unknown("cold requests overlapped")


def balance_gain_pct(facts: Facts) -> Figure:
    """Throughput gained if each node took what its warm speed allows, against an even split."""
    means = [n.warm.mean_s.value for n in facts.nodes if not isinstance(n.warm.mean_s, Unknown)]
    if len(means) < 2 or min(means) <= 0:
        return Unknown("fewer than two nodes answered")
    return 100 * (sum(1 / m for m in means) * max(means) / len(means) - 1)


def batch_gain_pct(facts: Facts) -> Figure:
    """Throughput gained by the best batch of the sweep over the smallest."""
    points = facts.batches.points
    if len(points) < 2:
        return Unknown("no batch sweep was run")
    return 100 * (max(p.throughput_per_s for p in points) / points[0].throughput_per_s - 1)


def _found(facts: Facts) -> Iterator[tuple[str, Figure, str]]:
    counts = facts.counts
    if counts.ok < counts.planned:
        where = ", ".join(
            f"{n.node} {n.counts.planned - n.counts.ok} of {n.counts.planned}"
            for n in facts.nodes
            if n.counts.ok < n.counts.planned
        )
        share = 100 * (counts.planned - counts.ok) / counts.planned
        yield (
            "Lost and failed requests",
            mending_gain_pct(facts),
            f"{counts.planned - counts.ok} of {counts.planned} ({share:.0f} % of the plan) were not answered: {where}",
        )
    idle = idle_gain_pct(facts)
    if not isinstance(idle, Unknown) and not isinstance(facts.wall_s, Unknown):
        share = 100 / (1 + idle / 100)
        yield "Time outside requests", idle, f"the busiest node had requests in flight {share:.0f} % of the wall clock"
    cold = cold_gain_pct(facts)
    if isinstance(cold, Unknown) or cold > 0:
        yield "Cold start", cold, "the first requests are slower than the warm ones"
    balance = balance_gain_pct(facts)
    if not isinstance(balance, Unknown) and any(n.outlier is True for n in facts.nodes):
        yield "Nodes that differ", balance, "an even split waits for the slowest node"
    if facts.client_bottleneck:
        yield "The client", Unknown("the client itself was the limit"), facts.client_bottleneck
    batch = batch_gain_pct(facts)
    if not isinstance(batch, Unknown):
        yield "Batch size", batch, facts.batches.note
