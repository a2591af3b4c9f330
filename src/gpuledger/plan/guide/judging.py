"""How good is each option, and what speaks against it: why is it refused, what does it risk, which rules break?

Seven measures are weighed by what the reader cares about. Each lies between 0 and 1, 1 the best. Dollars and throughput
are ratios to the best option there is, so that a price list in another currency, or a unit of work of another size,
ranks the same. An unknown measure is not a number: the score is the mean of the others, their shares scaled up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.placed_job import Candidate, Job, Misfit, Placement
from gpuledger.plan.guide.schema import MEASURES, Judgment, Measure, Weights, WorkloadType, migrate_facts
from gpuledger.plan.guide.statement import Judged, Level, Option, Refused, RefusedGroup, Verdict
from gpuledger.units import Unknown

Place = Callable[[Job, Gpu, int, int], Placement | Misfit]
MONTH_H = Decimal(730)
SCORES = ("cost", "performance", "reliability")
UNSCORED = Unknown("none of its measures is known")
# Speeds are estimated for what writes tokens, and for training where the FLOP of a step are known.
SPEED_REMEDY = "measure it where it runs; `gpuledger plan fit` shows on which other GPUs it fits"
# These hold for a purchase option or a number of GPUs as such, whichever the instance.
OF_ALL = ("SPOT", "SPOT NOT ASKED", "COUNT")
# Breaking one of these guidelines counts as a risk; the others are advice on price.
BINDING = ("training_p", "family")
# Less than this is a difference of rounding, not of cost.
EVEN_PCT = 0.5


def refuse(job: Job, candidate: Candidate, placed: Placement | Misfit) -> Refused | None:
    """The first reason that rules the candidate out, or None."""
    if isinstance(candidate.gpu, Unknown):
        remedy = "set catalog_gpu to a GPU of `gpuledger catalog gpus`, or give memory_bandwidth_gb_per_s"
        return Refused(candidate, "GPU", candidate.gpu.why, (remedy,))
    if isinstance(candidate.usd_per_h, Unknown):
        remedy = "give your own rate with `gpuledger prices update FILE`, or choose another region"
        return Refused(candidate, "PRICE", candidate.usd_per_h.why, (remedy,))
    if found := _not_wanted(job, candidate):
        return found
    if isinstance(placed, Misfit):
        return Refused(candidate, placed.kind, placed.why, placed.remedies)
    if isinstance(placed.rate, Unknown):
        return Refused(candidate, "SPEED", f"its speed is {placed.rate}", (SPEED_REMEDY,))
    return None


def _not_wanted(job: Job, candidate: Candidate) -> Refused | None:
    """Another number of GPUs where it is to stay, and spot where it does not do."""
    if job.fixed_gpus not in {None, candidate.gpus}:
        return Refused(candidate, "COUNT", f"the number of GPUs is to stay {job.fixed_gpus}", ("let it change",))
    if candidate.purchase != "spot":
        return None
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
        "network": placement.sure_ratio < facts.limits.network_ratio,
        "guideline": any(not v.kept for v in verdicts if v.rule in BINDING),
        "stale": candidate.stale,
        "scarce": candidate.zones is not None and candidate.zones < facts.limits.zones_wide // 2,
        "slower": job.serves and not isinstance(speed_ratio, Unknown) and speed_ratio < 1 and job.busy_ratio is None,
    }
    return _judged(facts.risks, signs, "{words}", "nothing stands out")


def effort(now: Candidate, then: Candidate) -> Judged:
    """Hours of work of a move, each step with its reason."""
    old, new = now.gpu, then.gpu
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
    return _judged(migrate_facts().efforts, steps, "{words} ({amount:g} h)", "stays as it is")


def _judged(facts: Judgment, signs: Mapping[str, bool], form: str, none: str) -> Judged:
    """The sum of what applies, its level, and each part in words."""
    found = [facts.parts[name] for name, there in signs.items() if there]
    amount = sum(part.amount for part in found)
    level: Level = "low" if amount <= facts.low_up_to else "medium" if amount <= facts.medium_up_to else "high"
    words = tuple(form.format(words=part.words, amount=part.amount) for part in found)
    return Judged(level, amount, words or (none,))


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


def scored(options: Sequence[Option], weights: Weights, *, serves: bool, enough: float | None = None) -> list[Option]:
    """The options with their scores, best first; a tie goes to the cheaper, then to the name.

    `serves`: dollars are for the hours of a month; else for a unit of work. `enough`: work per second above which more
    is not better, where the work does not end sooner for it. Speeds over several instances count as over the slower
    network: nothing is chosen for a network that it may not have.
    """
    if not options:
        return []
    now = next((o.monthly_usd for o in options if o.current), None)
    best_usd = min(price(o, serves=serves, now=now) for o in options)
    best_rate = min(max(_sure_speed(o) or 0.0 for o in options), math.inf if enough is None else enough)
    best_link = max(link_bytes_per_s(o) for o in options)
    made = []
    for option in options:
        facts, zones, own = migrate_facts(), option.candidate.zones, price(option, serves=serves, now=now)
        rate, linked = _sure_speed(option), option.placement.gpus_per_copy > 1
        found: dict[Measure, float | None] = {
            "dollars": float(best_usd / own) if own else 1.0,
            "throughput": min(1.0, rate / best_rate) if rate is not None and best_rate else None,
            "headroom": min(1.0, max(0.0, option.placement.headroom_ratio) / facts.limits.headroom_full_ratio),
            "interconnect": (link_bytes_per_s(option) / best_link if best_link else 0.0) if linked else 1.0,
            "availability": None if zones is None else min(1.0, zones / facts.limits.zones_wide),
            "risk": max(0.0, 1 - option.risk.amount / facts.risks.most),
            "effort": max(0.0, 1 - option.effort.amount / facts.efforts.most),
        }
        made.append(_score(option, {name: value for name, value in found.items() if value is not None}, weights))
    return sorted(made, key=lambda o: (-o.score, o.monthly_usd, o.candidate.id))


def price(option: Option, *, serves: bool, now: Decimal | None = None) -> Decimal:
    """Dollars for a month of a server, or for a million units of work that ends.

    Where a server costs less only because it does less, the dollars for as much work as `now` count.
    """
    if now is not None and less_for_less(option):
        return max(option.monthly_usd, now * (1 + Decimal(repr(option.same_work_pct)) / 100))
    if serves or isinstance(option.usd_per_million, Unknown):
        return option.monthly_usd
    return option.usd_per_million / Decimal(repr(option.placement.sure_ratio))


def costs_more(same_work_pct: float | Unknown) -> bool:
    """Whether the same work is known to cost more, by more than rounding."""
    return not isinstance(same_work_pct, Unknown) and same_work_pct > EVEN_PCT


def less_for_less(option: Option) -> bool:
    """Whether its month costs less than now only because it does less: the same work costs more."""
    return isinstance(option.saving_pct, Unknown) and costs_more(option.same_work_pct)


def _sure_speed(option: Option) -> float | None:
    speed = option.placement.speed
    return None if speed is None else speed * option.placement.sure_ratio


def link_bytes_per_s(option: Option) -> float:
    """The slowest link the work crosses; none is needed where every copy sits on one GPU."""
    gpu = option.candidate.gpu
    if isinstance(gpu, Unknown) or gpu.link is None:
        return 0.0
    return gpu.link.bytes_per_s.value / option.candidate.nodes


def mean(found: Mapping[Measure, float], shares: Mapping[Measure, float]) -> float | None:
    """The mean of some measures by their shares, over those that are known; None where none is."""
    weight = sum(share for name, share in shares.items() if name in found)
    return sum(found[name] * share for name, share in shares.items() if name in found) / weight if weight else None


def _score(option: Option, found: dict[Measure, float], weights: Weights) -> Option:
    parts = {name: mean(found, getattr(migrate_facts().scores, name)) for name in SCORES}
    known = {name: value for name, value in parts.items() if value is not None}
    weight = sum(getattr(weights, name) for name in known)
    total = sum(getattr(weights, name) * value for name, value in known.items())
    return replace(
        option,
        measures={str(name): value for name, value in found.items()},
        not_scored=tuple(name for name in MEASURES if name not in found),
        cost_score=known.get("cost", UNSCORED),
        performance_score=known.get("performance", UNSCORED),
        reliability_score=known.get("reliability", UNSCORED),
        score=total / weight if weight else 0.0,
    )
