"""Where should this job run instead, what does that save, and what does it risk?

Work that ends (training, fine-tuning, batch inference) keeps its amount: a faster option runs fewer hours. A server
keeps its hours: a slower option answers fewer requests, and the plan shows up to which load it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.plan.guide.judging import (
    Place,
    costs_more,
    effort,
    grouped,
    guidelines,
    less_for_less,
    refuse,
    risk,
    scored,
    too_slow,
)
from gpuledger.plan.guide.memory_rule import rule_of_thumb
from gpuledger.plan.guide.patterns import patterns
from gpuledger.plan.guide.placed_job import Candidate, Job, Misfit, Placement, Rate
from gpuledger.plan.guide.placing import place
from gpuledger.plan.guide.schema import Priority, migrate_facts
from gpuledger.plan.guide.sets import sharing
from gpuledger.plan.guide.statement import Current, MigrationPlan, Option, Refused, Scaling
from gpuledger.plan.guide.words import assumptions, recommendation, warnings
from gpuledger.units import Unknown

S_PER_H = 3600
MILLION = 1_000_000


@dataclass(frozen=True)
class Terms:
    """How options are judged: the priority, the preferred GPUs, the memory rules of thumb, the source of prices."""

    priority: Priority
    preferred: Collection[str]
    multiplier: float
    size_multiplier: float | Unknown
    prices: str
    illustrative: bool
    notes: tuple[str, ...] = ()


def plan_migration(
    job: Job, current: Candidate, candidates: Sequence[Candidate], terms: Terms, placing: Place = place
) -> MigrationPlan:
    """The whole answer; `current` is considered too, whether or not it is one of the candidates."""
    placed = _remembered(placing)
    now = Current(
        candidate=current,
        monthly_usd=_times(current.usd_per_h, job.monthly_h),
        whole_monthly_usd=_times(current.whole_usd_per_h, job.monthly_h),
        other_purchase_usd=_times(_other(current, candidates), job.monthly_h),
        placement=placed(job, current),
    )
    every = [current, *(c for c in candidates if c.id != current.id)]
    options: list[Option] = []
    refused: list[Refused] = []
    for candidate in every:
        found = _consider(job, candidate, now, terms, placed(job, candidate))
        if isinstance(found, Refused):
            refused.append(found)
        else:
            options.append(found)
    ranked = [
        replace(o, other_purchase_usd=_times(_other(o.candidate, every), o.monthly_h), scaling=_scaling(o, options))
        for o in scored(options, terms.priority.weights, serves=job.serves, enough=_enough(job, now))
    ]
    chosen, dates = _chosen(ranked), sorted({c.price_date for c in every})
    plan = MigrationPlan(
        job=job,
        current=now,
        verdict="nothing fits" if chosen is None else "already well optimized" if chosen.current else "move",
        recommendation="",
        chosen=chosen,
        cheapest=min(ranked, key=lambda o: (o.monthly_usd, o.candidate.id), default=None),
        fastest=max(ranked, key=lambda o: (o.placement.speed or 0.0, -o.monthly_usd), default=None),
        runners_up=_runners_up(ranked, chosen),
        options=tuple(ranked),
        refused=tuple(refused),
        refused_groups=grouped(refused),
        memory=rule_of_thumb(job, terms.multiplier, terms.size_multiplier),
        sharing=sharing(job, [current, *([chosen.candidate] if chosen and not chosen.current else [])]),
        patterns=patterns(job, now, ranked, refused),
        weights={k: getattr(terms.priority.weights, k) for k in ("cost", "performance", "reliability")},
        prices=terms.prices,
        price_dates=(dates[0], dates[-1]),
        illustrative=terms.illustrative,
        assumptions=(),
        warnings=(),
    )
    plan = replace(plan, assumptions=(*assumptions(plan), *terms.notes), warnings=warnings(plan))
    return replace(plan, recommendation=recommendation(plan))


def _remembered(placing: Place) -> Callable[[Job, Candidate], Placement | Misfit]:
    """Where a candidate places the job, each answer computed once: many offers are of the same GPU."""
    known: dict[tuple[str, float, int, int], Placement | Misfit] = {}

    def placed(job: Job, candidate: Candidate) -> Placement | Misfit:
        gpu, gpus, each = candidate.gpu, candidate.gpus, candidate.gpus_per_instance
        if isinstance(gpu, Unknown):
            return Misfit("GPU", gpu.why, ("set catalog_gpu in gpu_instances.json",))
        if isinstance(memory := gpu.figure("memory_bytes"), Unknown):
            return Misfit("GPU", memory.why, ("give the GPU's figures in gpu_instances.json",))
        key = (gpu.key, memory, gpus, each)
        if key not in known:
            found = placing(job, gpu, gpus, each)
            ends = [placing(job, end, gpus, each) for end in candidate.span or ()]
            known[key] = _spanned(found, ends)
        return known[key]

    return placed


def _spanned(found: Placement | Misfit, ends: Sequence[Placement | Misfit]) -> Placement | Misfit:
    """A placement whose speed spans the slow and the fast reading of its GPU."""
    rates = [end.rate for end in ends if isinstance(end, Placement) and isinstance(end.rate, Rate)]
    if isinstance(found, Misfit) or isinstance(found.rate, Unknown) or not rates:
        return found
    low, high = min(rate.low for rate in rates), max(rate.high for rate in rates)
    return replace(found, rate=Rate(min(low, found.rate.low), found.rate.middle, max(high, found.rate.high)))


def _consider(
    job: Job, candidate: Candidate, now: Current, terms: Terms, placed: Placement | Misfit
) -> Option | Refused:
    if found := refuse(job, candidate, placed):
        return found
    assert isinstance(placed, Placement)
    assert isinstance(placed.rate, Rate)
    assert isinstance(candidate.usd_per_h, Decimal)
    speed = now.rate if isinstance(now.rate, Unknown) else placed.rate.middle / now.rate.middle
    hours = job.monthly_h if job.serves or isinstance(speed, Unknown) else job.monthly_h / _exact(speed)
    if slow := too_slow(job, candidate, hours, speed):
        return slow
    usd, rate = candidate.usd_per_h, placed.rate
    monthly = usd * hours
    low, high = _range(candidate, monthly, rate, fixed_hours=job.serves or isinstance(speed, Unknown))
    verdicts = guidelines(job, candidate, terms.preferred)
    same_work = same_work_pct(job, now, candidate, hours, speed)
    saving = _saving(now, monthly, same_work)
    return Option(
        candidate=candidate,
        placement=placed,
        current=candidate.id == now.candidate.id,
        monthly_h=hours,
        monthly_usd=monthly,
        low_monthly_usd=low,
        high_monthly_usd=high,
        usd_per_million=usd * MILLION / (_exact(rate.middle) * S_PER_H),
        saving_usd=saving,
        saving_pct=_pct(saving, now.monthly_usd),
        same_work_pct=same_work,
        speed_ratio=speed,
        risk=risk(job, candidate, placed, verdicts, speed),
        effort=effort(now.candidate, candidate),
        guidelines=verdicts,
    )


def _range(candidate: Candidate, monthly: Decimal, rate: Rate, *, fixed_hours: bool) -> tuple[Decimal, Decimal]:
    """The month's dollars at the low and the high end of what is not known exactly."""
    price, highest = candidate.usd_per_gpu_h, candidate.high_usd_per_gpu_h
    most = Decimal(1)
    if not isinstance(price, Unknown) and not isinstance(highest, Unknown) and price:
        most = max(most, highest / price)
    if fixed_hours:
        return monthly, monthly * most
    return monthly * _exact(rate.middle / rate.high), monthly * most * _exact(rate.middle / rate.low)


def _scaling(option: Option, options: Sequence[Option]) -> Scaling | Unknown:
    """What each GPU does, compared with each of the fewest of the same GPU that can do the job."""
    gpu = option.candidate.gpu
    same = [o for o in options if getattr(o.candidate.gpu, "key", None) == getattr(gpu, "key", "")]
    first = min(same, key=lambda o: o.candidate.gpus)
    each, base = option.placement.speed, first.placement.speed
    if not each or not base:
        return Unknown("its speed is unknown")
    share = first.candidate.gpus / option.candidate.gpus / base
    return Scaling(first.candidate.gpus, each * share, (option.placement.slow_network or each) * share)


def _chosen(ranked: Sequence[Option]) -> Option | None:
    """The best option that does not only cost less for less work; the present setup where that gains less than
    estimates and prices vary by."""
    fair = [o for o in ranked if not less_for_less(o)]
    if not fair:
        return ranked[0] if ranked else None
    best, limits = _fewest(fair), migrate_facts().limits
    stay = next((o for o in ranked if o.current), None)
    if stay is None or best.current or isinstance(best.saving_pct, Unknown) or isinstance(best.speed_ratio, Unknown):
        return best
    little = best.saving_pct < limits.worth_saving_pct and best.speed_ratio < limits.worth_speed_ratio
    return stay if little else best


def _fewest(ranked: Sequence[Option]) -> Option:
    """The best option, or the fewest GPUs of the same offer that score as well."""
    first, near = ranked[0], migrate_facts().limits.same_score
    alike = [o for o in ranked if o.candidate.offer == first.candidate.offer and first.score - o.score <= near]
    return min(alike, key=lambda o: o.candidate.gpus)


def _enough(job: Job, now: Current) -> float | None:
    """The speed above which more is not better.

    A server answers what it is asked, not more; a month's work that is done within a day is done soon enough.
    """
    if isinstance(now.rate, Unknown):
        return None
    limits = migrate_facts().limits
    if job.serves:
        return now.rate.middle * limits.enough_speed_ratio
    return now.rate.middle * max(1.0, float(job.monthly_h) / limits.enough_h)


def _runners_up(ranked: Sequence[Option], chosen: Option | None) -> tuple[Option, ...]:
    """The next best, one for each GPU, count and purchase option."""
    found: dict[tuple[str, int, str], Option | None] = {}
    for option in sorted(ranked, key=lambda o: not (o is chosen or o.current)):  # what is known already comes first
        c = option.candidate
        found.setdefault((c.gpu_name, c.gpus, c.purchase), None if option is chosen or option.current else option)
    return tuple(o for o in found.values() if o is not None)[: migrate_facts().limits.runners_up]


def _other(candidate: Candidate, every: Sequence[Candidate]) -> Decimal | Unknown:
    place = (candidate.cloud, candidate.instance, candidate.gpus)
    for other in every:
        if (other.cloud, other.instance, other.gpus) == place and other.purchase != candidate.purchase:
            return other.usd_per_h
    return Unknown(f"no {'on-demand' if candidate.purchase == 'spot' else 'spot'} offer of it is listed")


def _saving(now: Current, monthly: Decimal, same_work: float | Unknown) -> Decimal | Unknown:
    if isinstance(now.placement, Misfit):
        assert isinstance(now.rate, Unknown)
        return now.rate
    if costs_more(same_work) and not isinstance(now.monthly_usd, Unknown) and monthly <= now.monthly_usd:
        return Unknown(f"the same work costs {same_work:.0f} % more there")
    return now.monthly_usd if isinstance(now.monthly_usd, Unknown) else now.monthly_usd - monthly


def same_work_pct(
    job: Job, now: Current, candidate: Candidate, hours: Decimal, speed: float | Unknown
) -> float | Unknown:
    """How much more the same work costs on a candidate than now, in percent.

    The hours of work that ends are those of the same work, and so are those of a server whose load was measured. A
    server without a measured load is compared by what it can do: by the price of the GPUs and by that of whole
    instances, as a cloud bills them unless others use the rest; the worse of the two counts.
    """
    if isinstance(speed, Unknown):
        return speed
    if not job.serves or job.busy_ratio is not None:
        pct = _pct(_times(candidate.usd_per_h, hours), now.monthly_usd)
        return pct if isinstance(pct, Unknown) else pct - 100
    work = _exact(speed)
    shares = _pct(_times(candidate.usd_per_h, hours / work), now.monthly_usd)
    whole = _pct(_times(candidate.whole_usd_per_h, hours / work), now.whole_monthly_usd)
    known = [pct - 100 for pct in (shares, whole) if not isinstance(pct, Unknown)]
    return max(known) if known else shares


def _times(price: Decimal | Unknown, hours: Decimal) -> Decimal | Unknown:
    return price if isinstance(price, Unknown) else price * hours


def _pct(part: Decimal | Unknown, whole: Decimal | Unknown) -> float | Unknown:
    if isinstance(part, Unknown):
        return part
    if isinstance(whole, Unknown):
        return whole
    return float(100 * part / whole) if whole else Unknown("the present setup costs nothing")


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))
