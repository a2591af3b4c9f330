"""How many of its GPUs does a namespace or a pod use, and what share of a GPU do the better ones reach?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import numpy as np

from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.gpus.mig import smallest_slice
from gpuledger.cost.money import ZERO
from gpuledger.cost.projections import MONTH_H
from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.ledger_demand import PodUse, PoolHours
from gpuledger.plan.capacity.need import Asked, gpus_needed
from gpuledger.plan.capacity.series import quantile
from gpuledger.plan.capacity.statement import RightSize
from gpuledger.units import Unknown, count

# Dollars per hour of a GPU, by its UUID.
Rate = Callable[[str], Decimal | Unknown]
NOT_ONE_GPU = Unknown("a slice is for work on one GPU")
NOT_A_POD = Unknown("slices are for pods")
NO_MEMORY = Unknown("memory use is not recorded")
WORKS_TOO_MUCH = Unknown("its GPU works for too much of the time")
# A pod whose GPU is busy for less of the time than this may do with a slice.
SLICE_BELOW_RATIO = 0.3
# A slice must have this much more memory than the pod's high-water mark.
MEMORY_MARGIN = 1.1


def achievable(uses: Iterable[PodUse], set_ratio: float | None) -> tuple[float, float] | Unknown:
    """The share of working time that the better GPUs put to use, without and with what cannot be rated."""
    if set_ratio is not None:
        return set_ratio, set_ratio
    facts = capacity_facts()
    boards: dict[str, list[PodUse]] = {}
    for use in uses:
        boards.setdefault(use.gpu_uuid, []).append(use)
    shares = []
    for mine in boards.values():
        working, productive, unrated = (sum(u.hours[n] for u in mine) for n in ("working", "productive", "unrated"))
        if working >= facts.achievable_from_busy_h:
            shares.append((productive / working, (productive + unrated) / working))
    if len(shares) < facts.achievable_from_gpus:
        return Unknown(
            f"only {count(len(shares), 'GPU')} worked for {facts.achievable_from_busy_h:g} h or more: what the better "
            f"ones reach needs {facts.achievable_from_gpus}"
        )
    low, high = (float(np.quantile(each, facts.achievable_quantile)) for each in zip(*shares, strict=True))
    return (low, high) if low > 0 else Unknown("no GPU has time that is known to be put to use")


def of_namespaces(pools: Sequence[PoolHours], uses: Sequence[PodUse], asked: Asked, rate: Rate) -> list[RightSize]:
    """What each namespace holds and uses at the same time; its dollars are those of the GPUs that work least."""
    out = []
    for pool in (p for p in pools if p.held.observed_h):
        mine = [u for u in uses if u.space == pool.name]
        held = quantile(pool.held.values, asked.cover)
        used, working = float(np.nanmax(pool.used.values)), quantile(pool.working.values, asked.cover)
        spare = max(0, math.floor(round(held, 6)) - math.ceil(used))
        shared = max(spare, math.floor(round(held, 6)) - gpus_needed(working, asked.target))
        out.append(
            RightSize(
                kind="namespace",
                name=pool.name,
                cluster=pool.cluster,
                gpu_model=_one({u.gpu_model for u in mine}),
                held_gpus=held,
                used_gpus=used,
                working_gpus=working,
                give_back=spare,
                give_back_shared=shared,
                memory_max_bytes=_most(mine),
                slice_name=NOT_A_POD,
                usd_per_month=_dollars(list(_by_work(mine))[:shared], rate),
            )
        )
    return sorted(out, key=lambda r: (-r.give_back_shared, -r.give_back, r.name))


def of_pods(uses: Sequence[PodUse], asked: Asked, rate: Rate) -> list[RightSize]:
    """What each pod does with the GPUs it holds; time without a pod name is left out."""
    facts = capacity_facts()
    pods: dict[tuple[str, str | None, str], list[PodUse]] = {}
    for use in uses:
        if use.pod:
            pods.setdefault((use.space, use.cluster, use.pod), []).append(use)
    out = []
    for (space, cluster, pod), mine in pods.items():
        boards = _by_work(mine)
        length = max(boards.values())
        working, busy = (sum(u.hours[n] for u in mine) / length if length else 0.0 for n in ("working", "busy"))
        used = {u.gpu_uuid for u in mine if u.busiest_h >= facts.used_from_ratio}
        spare = [b for b in boards if b not in used]
        out.append(
            RightSize(
                kind="pod",
                name=f"{space}/{pod}",
                cluster=cluster,
                gpu_model=_one({u.gpu_model for u in mine}),
                held_gpus=float(len(boards)),
                used_gpus=float(len(used)),
                working_gpus=working,
                give_back=len(spare),
                give_back_shared=len(spare),
                memory_max_bytes=_most(mine),
                slice_name=_slice(mine, len(boards), busy, asked.target),
                usd_per_month=_dollars(spare, rate),
            )
        )
    return sorted(out, key=lambda r: (-r.give_back, isinstance(r.slice_name, Unknown), r.working_gpus, r.name))


def _slice(mine: Sequence[PodUse], boards: int, busy: float, target: float) -> str | Unknown:
    """The smallest MIG slice that would hold a pod, where its memory and its activity are known."""
    model, memory = _one({u.gpu_model for u in mine}), _most(mine)
    if boards != 1 or any(u.gpu_instance_id for u in mine):
        return NOT_ONE_GPU
    if isinstance(memory, Unknown):
        return memory
    gpu = find_gpu(model) if model else Unknown("the GPU's model is unknown")
    size = gpu if isinstance(gpu, Unknown) else gpu.figure("memory_bytes")
    if isinstance(gpu, Unknown):
        return gpu
    if isinstance(size, Unknown):
        return size
    if busy >= SLICE_BELOW_RATIO:
        return WORKS_TOO_MUCH
    found = smallest_slice(gpu.key, busy / target, memory * MEMORY_MARGIN / size)
    return found if isinstance(found, Unknown) else found.name or f"{found.compute}g"


def _most(uses: Sequence[PodUse]) -> float | Unknown:
    known = [u.memory_max_bytes for u in uses if u.memory_max_bytes is not None]
    return max(known) if known else NO_MEMORY


def _one(names: set[str | None]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def _by_work(uses: Iterable[PodUse]) -> dict[str, float]:
    """The hours each GPU was held, those that work for the least share of them first."""
    boards: dict[str, list[float]] = {}
    for use in uses:
        mine = boards.setdefault(use.gpu_uuid, [0.0, 0.0])
        mine[0] += use.hours["held"]
        mine[1] += use.hours["working"]
    order = sorted(boards, key=lambda b: (boards[b][1] / (boards[b][0] or 1.0), b))
    return {board: boards[board][0] for board in order}


def _dollars(boards: Sequence[str], rate: Rate) -> Decimal | Unknown:
    """What some GPUs cost in a month, each at its own price."""
    total = ZERO
    for found in map(rate, boards):
        if isinstance(found, Unknown):
            return found
        total += found * MONTH_H
    return total
