"""What is the least that must change so that it fits?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.errors import InputError
from gpuledger.plan.fit.changes import Case, Change, changes
from gpuledger.plan.memory.facts import capacity, overheads
from gpuledger.plan.memory.parts import Memory, memory
from gpuledger.plan.setup import Setup, check

MOST_REMEDIES = 6
MOST_CHANGES = 3


@dataclass(frozen=True)
class Remedy:
    """Changes that together make it fit; none of them can be left out, and none taken less far."""

    changes: tuple[str, ...]
    options: str
    costs: tuple[str, ...]
    effort: float
    gpu: str
    count: int
    per_gpu_bytes: dict[str, int]
    total_bytes: int
    capacity_bytes: int
    free_bytes: int
    at_least: bool
    close: bool  # the card lies within the error of what was measured


def search(model: Model, gpu: Gpu, setup: Setup) -> tuple[tuple[Remedy, ...], str]:
    """Remedies from the least effort up, or why there is none."""
    case = Case(setup, gpu)
    kinds = changes(model, case)
    found: list[tuple[dict[str, int], Remedy]] = []
    for chosen in _by_effort(kinds):
        levels = {change.kind: change.level for change in chosen}
        if any(all(levels.get(kind, 0) >= level for kind, level in less.items()) for less, _ in found):
            continue  # a part of these changes is enough
        if remedy := _tried(model, case, chosen):
            found.append((levels, remedy))
        if len(found) == MOST_REMEDIES:
            break
    if found:
        return tuple(remedy for _, remedy in found), ""
    last = _everything(model, case, kinds)
    if last:
        return (last,), ""
    return (), (
        f"nothing tried makes {model.name} fit: not all changes together, "
        f"with up to {max(_most(kinds, 'count', setup.count), setup.count):,} GPUs of any size in the catalog"
    )


def _most(kinds: dict[str, list[Change]], kind: str, now: int) -> int:
    levels = kinds.get(kind, [])
    return now * 2 ** len(levels) if levels else now


def _by_effort(kinds: dict[str, list[Change]]) -> Iterator[tuple[Change, ...]]:
    """Every choice of up to three kinds and a level of each, least effort first; ties in the order of kinds."""
    queue = [
        (_effort(kinds, names, (0,) * size), size, names, (0,) * size)
        for size in range(1, MOST_CHANGES + 1)
        for names in combinations(kinds, size)
    ]
    heapify(queue)
    seen = {(names, at) for _, _, names, at in queue}
    while queue:
        _, size, names, at = heappop(queue)
        yield tuple(kinds[name][level] for name, level in zip(names, at, strict=True))
        for place, name in enumerate(names):
            further = tuple(level + (1 if i == place else 0) for i, level in enumerate(at))
            if further[place] < len(kinds[name]) and (names, further) not in seen:
                seen.add((names, further))
                heappush(queue, (_effort(kinds, names, further), size, names, further))


def _effort(kinds: dict[str, list[Change]], names: tuple[str, ...], at: tuple[int, ...]) -> float:
    return round(sum(kinds[name][level].effort for name, level in zip(names, at, strict=True)), 6)


def _alter(case: Case, chosen: tuple[Change, ...]) -> Case:
    # More GPUs first: a split is then checked against them.
    for change in sorted(chosen, key=lambda change: change.kind != "count"):
        case = change.alter(case)
    return case


def _need(model: Model, case: Case) -> Memory | None:
    """What the case needs, or None where it cannot be run at all."""
    try:
        check(case.setup, model, case.gpu)
    except InputError:
        return None
    return memory(model, case.setup)


def _tried(model: Model, case: Case, chosen: tuple[Change, ...]) -> Remedy | None:
    changed = _alter(case, chosen)
    need, room = _need(model, changed), capacity(changed.gpu)[0]
    if need is None or need.total_bytes > room:
        return None
    return Remedy(
        changes=tuple(change.words for change in chosen),
        options=" ".join(change.options for change in chosen),
        costs=tuple(change.costs for change in chosen),
        effort=_total(chosen),
        gpu=changed.gpu.key,
        count=changed.setup.count,
        per_gpu_bytes=dict(need.parts),
        total_bytes=need.total_bytes,
        capacity_bytes=room,
        free_bytes=room - need.total_bytes,
        at_least=bool(need.not_known),
        close=overheads().error.of(changed.setup.mode).span(need.total_bytes)[1] > room,
    )


def _total(chosen: tuple[Change, ...]) -> float:
    return round(sum(change.effort for change in chosen), 6)


def _everything(model: Model, case: Case, kinds: dict[str, list[Change]]) -> Remedy | None:
    """All changes at their furthest, then each taken back as far as it goes, the greatest effort first."""
    levels = {kind: len(found) for kind, found in kinds.items()}

    def tried() -> Remedy | None:
        return _tried(model, case, tuple(kinds[kind][level - 1] for kind, level in levels.items() if level))

    best = tried()
    if best is None:
        return None
    for kind in sorted(kinds, key=lambda name: -kinds[name][0].effort):
        while levels[kind]:
            levels[kind] -= 1
            less = tried()
            if less is None:
                levels[kind] += 1
                break
            best = less
    return best
