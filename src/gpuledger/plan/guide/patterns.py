"""Which of the common migration patterns does this job follow, and what does each come to here?"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.plan.guide.placed_job import Candidate, Job, Misfit
from gpuledger.plan.guide.schema import WorkloadType, migrate_facts
from gpuledger.plan.guide.statement import Current, Option, Pattern, Refused
from gpuledger.units import Unknown

CANNOT_RUN = Unknown("the present setup cannot run it, so there is nothing to compare with")
NOT_SOUGHT = Unknown("the pattern does not apply")


def patterns(job: Job, now: Current, options: Sequence[Option], refused: Sequence[Refused]) -> tuple[Pattern, ...]:
    """All three, whether or not they apply."""
    return _inference(job, now, options, refused), _legacy(job, now, options), _spot(job, now)


def _made(
    name: str, why_not: str = "", option: str = "", saving_pct: float | Unknown = NOT_SOUGHT,
    speed_ratio: float | Unknown = NOT_SOUGHT,
) -> Pattern:  # fmt: skip
    facts = migrate_facts().patterns[name]
    return Pattern(name, facts.words, facts.claim, not why_not, why_not, option, saving_pct, speed_ratio)


def _inference(job: Job, now: Current, options: Sequence[Option], refused: Sequence[Refused]) -> Pattern:
    name, here = "over_provisioned_inference", now.candidate
    if job.workload is not WorkloadType.INFERENCE:
        return _made(name, "this is not inference")
    if here.family != "P":
        return _made(name, f"{here.instance} is not of the P-series")
    found = [option for option in options if option.candidate.family == "G"]
    if not found:
        why = next((r.why for r in refused if r.candidate.family == "G" and r.kind != "SPOT"), "none is offered")
        missing = Unknown(f"no G-series option can run it: {why}")
        return _made(name, saving_pct=missing, speed_ratio=missing)
    best = min(found, key=lambda option: (option.monthly_usd, option.candidate.id))
    return _made(name, "", best.candidate.name, best.saving_pct, best.speed_ratio)


def _legacy(job: Job, now: Current, options: Sequence[Option]) -> Pattern:
    name, here = "legacy_training", now.candidate
    if job.workload is WorkloadType.INFERENCE:
        return _made(name, "this is not training")
    if here.family != "P":
        return _made(name, f"{here.instance} is not of the P-series")
    newer = [option for option in options if option.candidate.family == "P" and _newer(option.candidate, here)]
    if not newer:
        return _made(name, f"no P-series option is newer than {here.gpu_name}")
    if isinstance(now.placement, Misfit):
        return _made(name, "", newer[0].candidate.name, CANNOT_RUN, CANNOT_RUN)
    same = [o for o in newer if (o.candidate.gpus, o.candidate.purchase) == (here.gpus, here.purchase)]
    if not same:
        missing = Unknown(f"{here.gpus} GPUs of no newer P-series can run it, {here.purchase}")
        return _made(name, "", newer[0].candidate.name, missing, missing)
    best = max(same, key=lambda option: (option.placement.speed or 0.0, -option.monthly_usd))
    return _made(name, "", best.candidate.name, best.saving_pct, best.speed_ratio)


def _newer(then: Candidate, now: Candidate) -> bool:
    """Whether both are of one maker, and the one of a later architecture."""
    if isinstance(then.gpu, Unknown) or isinstance(now.gpu, Unknown) or then.gpu.vendor != now.gpu.vendor:
        return False
    ages = migrate_facts().generations.get(now.gpu.vendor, ())
    both = then.gpu.architecture in ages and now.gpu.architecture in ages
    return both and ages.index(then.gpu.architecture) > ages.index(now.gpu.architecture)


def _spot(job: Job, now: Current) -> Pattern:
    name, here = "budget_research", now.candidate
    if not job.spot_suitable:
        return _made(name, f"{job.use_case.replace('_', ' ')} must not stop, and spot capacity can be taken back")
    paid, other = now.monthly_usd, now.other_purchase_usd
    full, cut = (other, paid) if here.purchase == "spot" else (paid, other)
    saving: float | Unknown
    if isinstance(full, Unknown):
        saving = full
    elif isinstance(cut, Unknown):
        saving = cut
    else:
        saving = float(100 * (1 - cut / full))
    how = "as now" if here.purchase == "spot" else "the same setup"
    return _made(name, "", f"{how}, at its spot price", saving, 1.0)
