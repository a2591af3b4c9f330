"""How does the guide's memory rule compare with what the job really needs?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.statement import Job, RuleOfThumb
from gpuledger.plan.memory.facts import get_precision
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.placing import ways
from gpuledger.units import Unknown


def weights_bytes(params: int, precision: str) -> int:
    """The weights alone, as stored."""
    return round(params * get_precision(precision).bits / 8)


def rule_of_thumb(job: Job, multiplier: float, size_multiplier: float | Unknown) -> RuleOfThumb:
    """Weights times the guide's factor, beside the breakdown on one GPU of any size."""
    stored = weights_bytes(job.model.params_total, job.precision)
    parts = breakdown(job)
    real: int | Unknown = sum(parts.values()) if parts else Unknown(f"{job.precision} is not for training")
    by_size: int | Unknown = (
        size_multiplier if isinstance(size_multiplier, Unknown) else round(stored * size_multiplier)
    )
    return RuleOfThumb(
        weights_bytes=stored,
        multiplier=multiplier,
        rule_bytes=round(stored * multiplier),
        size_multiplier=size_multiplier,
        size_rule_bytes=by_size,
        real_bytes=real,
        real_parts=parts,
        words=_words(job, stored, multiplier, real, parts),
    )


def breakdown(job: Job) -> Mapping[str, int]:
    """What the plainest way needs on one GPU; nothing where the precision cannot be trained in."""
    adapters = job.workload is WorkloadType.FINE_TUNING and job.method != "full"
    if job.workload is not WorkloadType.INFERENCE and not get_precision(job.precision).train_as and not adapters:
        return {}
    setup = next(iter(ways(job, 1, 1))).setup
    if setup.mode == "serve":
        setup = replace(setup, batch=migrate_facts().limits.serving_batch)
    return {name: size for name, size in memory(job.model, setup).parts.items() if size}


def _words(job: Job, stored: int, multiplier: float, real: int | Unknown, parts: Mapping[str, int]) -> str:
    rule = f"the guide: {stored / 1e9:.1f} GB of weights x {multiplier:g} = {stored * multiplier / 1e9:.1f} GB"
    if isinstance(real, Unknown):
        return f"{rule}; the real need is {real}"
    split = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in parts.items())
    limits = migrate_facts().limits
    what = (
        f"{limits.serving_batch} requests of {limits.serving_context:,} tokens"
        if job.workload is WorkloadType.INFERENCE
        else "sequences of 4,096 tokens, one at a time, nothing recomputed"
    )
    return f"{rule}; with {what} it really is {real / 1e9:.1f} GB on one GPU of any size ({split})"
