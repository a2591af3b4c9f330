"""Which rank keeps the others waiting?

In synchronous training every rank's step takes equally long: ranks that are ready wait within the backward pass for the
gradients of the last. The slow one shows in its own time: everything but the backward pass and waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Seen = Mapping[str, Any]  # what a report holds of one rank
WAITED_IN = ("backward", "sync")
# Less than this of a step is a chance difference.
NAMED_FROM_RATIO = 0.02


@dataclass(frozen=True)
class RankRow:
    """One rank: its own time in a step, and what it spends in the backward pass and in waits."""

    rank: int
    host: str
    device: str
    own_ms: float
    waited_in_ms: float
    step_ms: float


@dataclass(frozen=True)
class Ranks:
    """All ranks of a run. `slow` is the rank the others wait for, None where they are even."""

    rows: tuple[RankRow, ...]
    slow: int | None
    behind_ms: float
    phase: str
    words: str


def compare(ranks: Sequence[Seen]) -> Ranks:
    """The ranks side by side, and the slow one by name; each as a report holds what was seen of it."""
    ordered = sorted(ranks, key=lambda seen: seen["who"]["rank"])
    rows = tuple(map(_row, ordered))
    if len(rows) < 2:
        return Ranks(rows, None, 0.0, "", "one rank: no other waits for it")
    last, slow = max(zip(rows, ordered, strict=True), key=lambda pair: pair[0].own_ms)
    behind = last.own_ms - median(r.own_ms for r in rows if r is not last)
    step = max(r.step_ms for r in rows)
    if not step or behind < NAMED_FROM_RATIO * step:
        even = f"{len(rows)} ranks are even within {100 * NAMED_FROM_RATIO:.0f} % of a step"
        return Ranks(rows, None, behind, "", even)
    others = [seen["phases_s"] for seen in ordered if seen is not slow]
    more = {p: s - median(phases.get(p, 0.0) for phases in others) for p, s in slow["phases_s"].items()}
    phase = max((p for p in more if p not in WAITED_IN), key=lambda p: more[p])
    words = (
        f"rank {last.rank} on {last.host or 'this host'} ({last.device}) keeps the others waiting {behind:.1f} ms per "
        f"step of {step:.1f} ms: {1000 * more[phase]:+.1f} ms in {phase}"
    )
    return Ranks(rows, last.rank, behind, phase, words)


def _row(seen: Seen) -> RankRow:
    who, phases = seen["who"], seen["phases_s"]
    waited, whole = sum(phases.get(p, 0.0) for p in WAITED_IN), sum(phases.values())
    return RankRow(
        who["rank"], who["host"], seen["place"]["name"], 1000 * (whole - waited), 1000 * waited, 1000 * whole
    )


def rank_and_size(torch: Any) -> tuple[int, int]:
    """Of the process group; one rank where there is none."""
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        return int(dist.get_rank()), int(dist.get_world_size())
    return 0, 1


def gather(torch: Any, seen: Seen) -> list[Seen]:
    """What was seen of every rank, on every rank. All ranks must call it, and they wait for each other."""
    _, size = rank_and_size(torch)
    if size == 1:
        return [seen]
    found: list[Any] = [None] * size
    torch.distributed.all_gather_object(found, seen)
    return found
