"""How much memory does a job need, by the rule of thumb and counted, and could one GPU hold several?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuledger.catalog.gpus.mig import smallest_slice
from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.placing import precision_refusal, ways
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.statement import Candidate, Job, RuleOfThumb, Sharing
from gpuledger.plan.memory.facts import capacity, get_precision
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup
from gpuledger.units import Unknown


def rule_of_thumb(job: Job, multiplier: float, size_multiplier: float | Unknown) -> RuleOfThumb:
    """Weights times the configured factor, compared with the breakdown on one GPU of any size."""
    stored = round(job.model.params_total * get_precision(job.precision).bits / 8)
    parts = breakdown(job)
    real: int | Unknown = sum(parts.values()) if parts else Unknown(f"{job.precision} is not for training")
    by_size = size_multiplier if isinstance(size_multiplier, Unknown) else round(stored * size_multiplier)
    return RuleOfThumb(
        weights_bytes=stored,
        multiplier=multiplier,
        rule_bytes=round(stored * multiplier),
        size_multiplier=size_multiplier,
        size_rule_bytes=by_size,
        real_bytes=real,
        real_parts=parts,
        words=_rule_words(job, stored, multiplier, real, parts),
    )


def breakdown(job: Job) -> Mapping[str, int]:
    """What the plainest way needs on one GPU; nothing where the precision cannot be trained in."""
    if job.workload is not WorkloadType.INFERENCE and not get_precision(job.precision).train_as and not job.adapts:
        return {}
    setup = next(iter(ways(job, 1, 1))).setup
    if setup.mode == "serve":
        setup = replace(setup, batch=migrate_facts().limits.serving_batch)
    return {name: size for name, size in memory(job.model, setup).parts.items() if size}


def _rule_words(job: Job, stored: int, multiplier: float, real: int | Unknown, parts: Mapping[str, int]) -> str:
    rule = f"rule of thumb: {stored / 1e9:.1f} GB of weights x {multiplier:g} = {stored * multiplier / 1e9:.1f} GB"
    if isinstance(real, Unknown):
        return f"{rule}; the real need is {real}"
    split = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in parts.items())
    limits = migrate_facts().limits
    what = "sequences of 4,096 tokens, one at a time, nothing recomputed"
    if job.workload is WorkloadType.INFERENCE:
        what = f"{limits.serving_batch} requests of {limits.serving_context:,} tokens"
    return f"{rule}; with {what} it really is {real / 1e9:.1f} GB on one GPU of any size ({split})"


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
    return tuple({one.on: one for one in found}.values())  # the same GPU is listed once


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
    several = f"{jobs} of them fit on one GPU, if together they are not busier than it" if jobs > 1 else "no other fits"
    size = f"one such server needs {need / 1e9:.1f} of {room / 1e9:.1f} GB on {gpu.name}, one request at a time"
    name: str | Unknown
    cut_usd: Decimal | Unknown = Unknown("no slice of it would do")
    if isinstance(cut, Unknown):
        name, mig = cut, f"MIG: {cut.why}"
    else:
        name, share = cut.name or f"{cut.compute} compute slices", max(cut.compute_ratio, cut.memory_ratio)
        cut_usd = month if isinstance(month, Unknown) else month * Decimal(repr(share))
        mig = f"a MIG slice {name} holds one, with its share of the speed"
    each = month if isinstance(month, Unknown) else month / jobs
    on = f"{gpu.name} ({candidate.instance}, {candidate.purchase})"
    return Sharing(on, jobs, each, name, cut_usd, f"{size}: {several}; {mig}")
