"""Which of the guide's rules speak about this option, and does it keep them?"""

from __future__ import annotations

from collections.abc import Callable, Collection

from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.statement import Candidate, Job, Verdict
from gpuledger.units import Unknown

# Breaking one of these counts as a risk; the others are advice on price.
BINDING = ("training_p", "family")


def preferred_gpus(config: Config, workload: WorkloadType) -> frozenset[str]:
    """Catalog keys of the GPUs in the instances and families the configuration prefers for a workload."""
    wanted = config.kinds[workload.value].preferred_families
    return frozenset(
        one.catalog_gpu
        for key, one in config.instances.items()
        if one.catalog_gpu and (key in wanted or one.family in wanted)
    )


def guidelines(job: Job, candidate: Candidate, preferred: Collection[str]) -> tuple[Verdict, ...]:
    """The rules that apply, kept or not."""
    found = []
    for rule, judge in _RULES.items():
        kept = judge(job, candidate, preferred)
        if kept is not None:
            found.append(Verdict(rule, migrate_facts().guidelines[rule].words, kept))
    return tuple(found)


def _training_p(job: Job, candidate: Candidate, _preferred: Collection[str]) -> bool | None:
    large = job.model.params_total >= migrate_facts().limits.large_from_params
    if job.workload is not WorkloadType.TRAINING or not large:
        return None
    return candidate.family == "P"


def _inference_g(job: Job, candidate: Candidate, _preferred: Collection[str]) -> bool | None:
    return candidate.family == "G" if job.workload is WorkloadType.INFERENCE else None


def _fine_tuning_g6e(job: Job, candidate: Candidate, _preferred: Collection[str]) -> bool | None:
    if job.workload is not WorkloadType.FINE_TUNING:
        return None
    return not isinstance(candidate.gpu, Unknown) and candidate.gpu.key == "l40s"


def _spot_training(job: Job, candidate: Candidate, _preferred: Collection[str]) -> bool | None:
    return job.spot_suitable if candidate.purchase == "spot" else None


def _family(_job: Job, candidate: Candidate, preferred: Collection[str]) -> bool | None:
    if isinstance(candidate.gpu, Unknown) or not preferred:
        return None
    return candidate.gpu.key in preferred


_RULES: dict[str, Callable[[Job, Candidate, Collection[str]], bool | None]] = {
    "training_p": _training_p,
    "inference_g": _inference_g,
    "fine_tuning_g6e": _fine_tuning_g6e,
    "spot_training": _spot_training,
    "family": _family,
}
