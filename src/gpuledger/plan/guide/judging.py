"""What speaks against an option: why is it refused, what does it risk, how much work is it, which rules break?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.statement import (
    Candidate,
    Job,
    Judged,
    Level,
    Misfit,
    Placement,
    Refused,
    RefusedGroup,
    Verdict,
)
from gpuledger.units import Unknown

Place = Callable[[Job, Gpu, int, int], Placement | Misfit]
MONTH_H = Decimal(730)
# Speeds are estimated for what writes tokens, and for training where the FLOP of a step are known.
SPEED_REMEDY = "measure it where it runs; `gpuledger plan fit` shows on which other GPUs it fits"
# These hold for a purchase option as such, whichever the instance.
OF_ALL = ("SPOT", "SPOT NOT ASKED")
# Breaking one of these guidelines counts as a risk; the others are advice on price.
BINDING = ("training_p", "family")


def refuse(job: Job, candidate: Candidate, placed: Placement | Misfit | None) -> Refused | None:
    """The first reason that rules the candidate out, or None. `placed` is None where the GPU is unknown."""
    if isinstance(candidate.gpu, Unknown):
        remedy = "set catalog_gpu to a GPU of `gpuledger catalog gpus`, or give memory_bandwidth_gb_per_s"
        return Refused(candidate, "GPU", candidate.gpu.why, (remedy,))
    if isinstance(candidate.usd_per_h, Unknown):
        remedy = "give your own rate with `gpuledger prices update FILE`, or choose another region"
        return Refused(candidate, "PRICE", candidate.usd_per_h.why, (remedy,))
    if candidate.purchase == "spot" and (found := _not_spot(job, candidate)):
        return found
    if isinstance(placed, Misfit):
        return Refused(candidate, placed.kind, placed.why, placed.remedies)
    assert placed is not None, "a known GPU has a placement"
    if isinstance(placed.rate, Unknown):
        return Refused(candidate, "SPEED", f"its speed is {placed.rate}", (SPEED_REMEDY,))
    return None


def _not_spot(job: Job, candidate: Candidate) -> Refused | None:
    if not job.spot_suitable:
        why = f"spot capacity can be taken back at any time, and {job.use_case.replace('_', ' ')} must not stop"
        remedy = "on demand, or a use case that tolerates interruption: batch_inference, research_training"
        return Refused(candidate, "SPOT", why, (remedy,))
    if not job.spot_asked:
        return Refused(candidate, "SPOT NOT ASKED", "spot prices were not asked for", ("ask for spot",))
    return None


def too_slow(job: Job, candidate: Candidate, hours: Decimal, speed_ratio: float | Unknown) -> Refused | None:
    """A candidate that cannot do the month's work in a month, or cannot hold the measured load."""
    if hours > MONTH_H and hours > job.monthly_h:
        why = f"the month's work would take {hours:,.0f} hours, and a month has {MONTH_H}"
        return Refused(candidate, "SLOW", why, ("use more GPUs", "use a faster GPU"))
    if job.serves and not isinstance(speed_ratio, Unknown) and speed_ratio < busy(job):
        basis = "is in use" if job.busy_ratio is not None else "is assumed to be in use, as it was not measured"
        able, used = f"{100 * speed_ratio:.1f} %", f"{100 * busy(job):.0f} %"
        why = f"it serves {able} of what the present setup can, and {used} of that {basis}"
        measure = () if job.busy_ratio is not None else ("measure how busy the present setup is and give it",)
        return Refused(candidate, "SLOW", why, ("use more GPUs", *measure))
    return None


def busy(job: Job) -> float:
    """The share of the present capacity that is in use: measured, or assumed."""
    return migrate_facts().limits.assumed_busy_ratio if job.busy_ratio is None else job.busy_ratio


def grouped(refused: Sequence[Refused]) -> tuple[RefusedGroup, ...]:
    """Refusals by GPU and kind of reason."""
    groups: dict[tuple[str, str], list[Refused]] = {}
    for one in refused:
        gpu = "every GPU" if one.kind in OF_ALL else one.candidate.gpu_name
        groups.setdefault((gpu, one.kind), []).append(one)
    found = []
    for (gpu, kind), members in groups.items():
        largest = max(members, key=lambda r: (r.candidate.gpus, r.candidate.gpus_per_instance))
        instances = () if kind in OF_ALL else tuple(dict.fromkeys(r.candidate.instance for r in members))
        counts = tuple(sorted({r.candidate.gpus for r in members}))
        found.append(RefusedGroup(gpu, instances, kind, counts, len(members), largest.why, largest.remedies))
    return tuple(found)


def risk(
    job: Job, candidate: Candidate, placement: Placement, verdicts: Iterable[Verdict], speed_ratio: float | Unknown
) -> Judged:
    """Points of risk, each with its reason."""
    facts = migrate_facts()
    signs = {
        "spot": candidate.purchase == "spot",
        "thin": placement.headroom_ratio < facts.limits.headroom_thin_ratio,
        "nodes": candidate.nodes > 1 and placement.gpus_per_copy > candidate.gpus_per_instance,
        "guideline": any(not v.kept for v in verdicts if v.rule in BINDING),
        "stale": candidate.stale,
        "scarce": candidate.zones is not None and candidate.zones < facts.limits.zones_wide // 2,
        "slower": job.serves and not isinstance(speed_ratio, Unknown) and speed_ratio < 1 and job.busy_ratio is None,
    }
    found = [facts.risks.points[name] for name, there in signs.items() if there]
    points = sum(one.points for one in found)
    level = _level(points, facts.risks.low_up_to, facts.risks.medium_up_to)
    return Judged(level, points, tuple(one.words for one in found) or ("nothing stands out",))


def effort(now: Candidate, then: Candidate) -> Judged:
    """Hours of work of a move, each step with its reason."""
    facts, old, new = migrate_facts().efforts, now.gpu, then.gpu
    both = None if isinstance(old, Unknown) or isinstance(new, Unknown) else (old, new)
    same_gpu = both is not None and both[0].key == both[1].key
    steps = {
        "count": same_gpu and now.gpus != then.gpus,
        "instance": same_gpu and now.instance != then.instance,
        "gpu": not same_gpu,
        "architecture": both is not None and both[0].architecture != both[1].architecture,
        "vendor": both is not None and both[0].vendor != both[1].vendor,
        "nodes": now.nodes == 1 and then.nodes > 1,
        "spot": now.purchase != "spot" and then.purchase == "spot",
        "cloud": now.cloud != then.cloud,
    }
    found = [facts.steps[name] for name, there in steps.items() if there]
    hours = sum(step.hours for step in found)
    level = _level(hours, facts.low_up_to, facts.medium_up_to)
    return Judged(level, hours, tuple(f"{s.words} ({s.hours:g} h)" for s in found) or ("stays as it is",))


def _level(amount: float, low: float, medium: float) -> Level:
    return "low" if amount <= low else "medium" if amount <= medium else "high"


def preferred_gpus(config: Config, workload: WorkloadType) -> frozenset[str]:
    """Catalog keys of the GPUs in the instances and families the configuration prefers for a workload."""
    wanted, instances = config.kinds[workload.value].preferred_families, config.instances.items()
    return frozenset(i.catalog_gpu for key, i in instances if i.catalog_gpu and (key in wanted or i.family in wanted))


def guidelines(job: Job, candidate: Candidate, preferred: Collection[str]) -> tuple[Verdict, ...]:
    """The guidelines that apply, kept or not."""
    facts, kind = migrate_facts(), job.workload
    key = None if isinstance(candidate.gpu, Unknown) else candidate.gpu.key
    large = kind is WorkloadType.TRAINING and job.model.params_total >= facts.limits.large_from_params
    rules = {  # by name: whether it applies, and whether it is kept
        "training_p": (large, candidate.family == "P"),
        "inference_g": (kind is WorkloadType.INFERENCE, candidate.family == "G"),
        "fine_tuning_g6e": (kind is WorkloadType.FINE_TUNING, key == "l40s"),
        "spot_training": (candidate.purchase == "spot", job.spot_suitable),
        "family": (key is not None and bool(preferred), key in preferred),
    }
    return tuple(Verdict(rule, facts.guidelines[rule], kept) for rule, (applies, kept) in rules.items() if applies)
