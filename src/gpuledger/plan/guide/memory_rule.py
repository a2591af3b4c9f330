"""What do the memory rules of thumb give, and what does the job really need?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuledger.plan.guide.placed_job import Job
from gpuledger.plan.guide.placing import ways
from gpuledger.plan.guide.schema import WorkloadType, migrate_facts
from gpuledger.plan.guide.statement import RuleOfThumb
from gpuledger.plan.memory.facts import get_precision
from gpuledger.plan.memory.parts import memory
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
        words=_rule_words(job, (stored, multiplier, size_multiplier), real, parts),
    )


def breakdown(job: Job) -> Mapping[str, int]:
    """What the plainest way needs on one GPU; nothing where the precision cannot be trained in."""
    if job.workload is not WorkloadType.INFERENCE and not get_precision(job.precision).train_as and not job.adapts:
        return {}
    setup = next(iter(ways(job, 1, 1))).setup
    if setup.mode == "serve":
        setup = replace(setup, batch=migrate_facts().limits.serving_batch)
    return {name: size for name, size in memory(job.model, setup).parts.items() if size}


def _rule_words(
    job: Job, rule: tuple[int, float, float | Unknown], real: int | Unknown, parts: Mapping[str, int]
) -> str:
    stored, multiplier, of_size = rule
    words = f"rule of thumb: {stored / 1e9:.1f} GB of weights x {multiplier:g} = {stored * multiplier / 1e9:.1f} GB"
    if not isinstance(of_size, Unknown):
        words += f" by the kind of work, x {of_size:g} = {stored * of_size / 1e9:.1f} GB by the size"
    if isinstance(real, Unknown):
        return f"{words}; the real need is {real}"
    split = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in parts.items())
    limits = migrate_facts().limits
    what = "sequences of 4,096 tokens, one at a time, nothing recomputed"
    if job.workload is WorkloadType.INFERENCE:
        what = f"{limits.serving_batch} requests of {limits.serving_context:,} tokens"
    return f"{words}; with {what} it really is {real / 1e9:.1f} GB on one GPU of any size ({split})"
