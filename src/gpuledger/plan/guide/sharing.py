"""Could one GPU hold several such jobs, or a slice of it hold one?"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gpuledger.catalog.gpus.mig import smallest_slice
from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.statement import Candidate, Job, Sharing
from gpuledger.plan.memory.facts import capacity
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.placing import precision_refusal
from gpuledger.plan.setup import Setup
from gpuledger.units import Unknown


def one_request_bytes(job: Job) -> int:
    """What a server of this model needs at least: one request at a time."""
    context = migrate_facts().limits.serving_context
    setup = Setup(mode="serve", precision=job.precision, context=context, batch=1)
    return memory(job.model, setup).total_bytes


def sharing(job: Job, candidates: Sequence[Candidate]) -> tuple[Sharing, ...]:
    """For each GPU in question: how many such jobs it holds, and which slice of it would do for one."""
    if job.workload is not WorkloadType.INFERENCE:
        return ()
    found = [on for c in candidates if (on := _on(job, c)) is not None]
    return tuple({one.on: one for one in found}.values())  # to stay, or to take fewer of the same, is said once


def _on(job: Job, candidate: Candidate) -> Sharing | None:
    gpu = candidate.gpu
    if isinstance(gpu, Unknown) or precision_refusal(job, gpu):
        return None
    need, (room, _) = one_request_bytes(job), capacity(gpu)
    jobs = room // need
    if not jobs:
        return None
    price = candidate.usd_per_gpu_h
    month: Decimal | Unknown = price if isinstance(price, Unknown) else price * job.monthly_h
    cut = smallest_slice(gpu.key, 0.0, need / room)
    share = None if isinstance(cut, Unknown) else Decimal(repr(max(cut.compute_ratio, cut.memory_ratio)))
    name = cut if isinstance(cut, Unknown) else cut.name or f"{cut.compute} compute slices"
    return Sharing(
        on=f"{gpu.name} ({candidate.instance}, {candidate.purchase})",
        jobs_per_gpu=jobs,
        usd_per_job_month=month if isinstance(month, Unknown) else month / jobs,
        slice=name,
        slice_usd_per_month=Unknown("there is no such slice")
        if share is None
        else month
        if isinstance(month, Unknown)
        else month * share,
        words=_words(gpu.name, need, room, jobs, name),
    )


def _words(gpu: str, need: int, room: int, jobs: int, name: str | Unknown) -> str:
    size = f"one such server needs {need / 1e9:.1f} of {room / 1e9:.1f} GB on {gpu}, one request at a time"
    several = (
        f": {jobs} of them fit on one GPU, if together they are not busier than it" if jobs > 1 else ": no second fits"
    )
    cut = (
        f"; MIG: {name.why}"
        if isinstance(name, Unknown)
        else f"; a MIG slice {name} holds one, with its share of the speed"
    )
    return size + several + cut


def pack(needs: Sequence[tuple[str, int]], room: int) -> list[list[str]]:
    """Jobs packed on as few GPUs as first fit, largest first, finds; what fits nowhere is left out."""
    bins: list[tuple[int, list[str]]] = []
    for name, need in sorted(needs, key=lambda pair: (-pair[1], pair[0])):
        if need > room:
            continue
        for i, (used, names) in enumerate(bins):
            if used + need <= room:
                bins[i] = (used + need, [*names, name])
                break
        else:
            bins.append((need, [name]))
    return [names for _, names in bins]
