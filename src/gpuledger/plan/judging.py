"""How risky is a move to this option, and how much work is it?"""

from __future__ import annotations

from collections.abc import Iterable

from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.guidelines import BINDING
from gpuledger.plan.guide.statement import Candidate, Job, Judged, Level, Placement, Verdict
from gpuledger.units import Unknown


def risk(
    job: Job, candidate: Candidate, placement: Placement, verdicts: Iterable[Verdict], speed_ratio: float | Unknown
) -> Judged:
    """Points of risk, each with its reason."""
    facts = migrate_facts()
    slower = job.serves and not isinstance(speed_ratio, Unknown) and speed_ratio < 1 and job.busy_ratio is None
    signs = {
        "spot": candidate.purchase == "spot",
        "thin": placement.headroom_ratio < facts.limits.headroom_thin_ratio,
        "nodes": candidate.nodes > 1 and placement.gpus_per_copy > candidate.gpus_per_instance,
        "guideline": any(not v.kept for v in verdicts if v.rule in BINDING),
        "stale": candidate.stale,
        "scarce": candidate.zones is not None and candidate.zones < facts.limits.zones_wide // 2,
        "slower": slower,
    }
    found = [facts.risks.points[name] for name, there in signs.items() if there]
    points = sum(one.points for one in found)
    level = _level(points, facts.risks.low_up_to, facts.risks.medium_up_to)
    return Judged(level, points, tuple(one.words for one in found) or ("nothing stands out",))


def effort(now: Candidate, then: Candidate) -> Judged:
    """Hours of work of a move, each step with its reason."""
    facts = migrate_facts().efforts
    both = not isinstance(now.gpu, Unknown) and not isinstance(then.gpu, Unknown)
    same_gpu = both and now.gpu.key == then.gpu.key  # type: ignore[union-attr]
    steps = {
        "count": same_gpu and now.gpus != then.gpus,
        "instance": same_gpu and now.instance != then.instance,
        "gpu": not same_gpu,
        "architecture": both and now.gpu.architecture != then.gpu.architecture,  # type: ignore[union-attr]
        "vendor": both and now.gpu.vendor != then.gpu.vendor,  # type: ignore[union-attr]
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
