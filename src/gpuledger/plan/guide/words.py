"""What are the sentences of a plan: its recommendation, assumptions and warnings?"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from gpuledger.plan.guide.judging import busy, less_for_less
from gpuledger.plan.guide.placed_job import Misfit
from gpuledger.plan.guide.schema import DENSE_WORDS, WorkloadType, migrate_facts
from gpuledger.plan.guide.statement import MigrationPlan, Option
from gpuledger.plan.speed.facts import network
from gpuledger.units import Unknown


def dollars(value: Decimal | Unknown) -> str:
    """Dollars, without cents from a hundred on."""
    if isinstance(value, Unknown):
        return str(value)
    sign, amount = "-" if value < 0 else "", abs(value)
    return f"{sign}${amount:,.0f}" if amount >= 100 else f"{sign}${amount:,.2f}"


def recommendation(plan: MigrationPlan) -> str:
    """The answer in one or two sentences."""
    chosen = plan.chosen
    if chosen is None:
        first = next((r for r in plan.refused if r.remedies), None)
        remedy = f" {first.why}. What would help: {first.remedies[0]}." if first else ""
        return f"No option can run this.{remedy}"
    if chosen.current:
        return _stay(plan, chosen)
    now = plan.current.monthly_usd
    cannot = " for a setup that cannot run it" if isinstance(plan.current.placement, Misfit) else ""
    there, here = chosen.candidate, plan.current.candidate
    move = f"Use {there.name} instead of {here.gpus}" if there.offer == here.offer else f"Move to {there.name}"
    words = [
        f"{move}: {dollars(chosen.monthly_usd)} per month instead of {dollars(now)}{cannot}",
        _saving(chosen),
        _speed(plan, chosen),
        _scaling(plan, chosen),
        f"Risk {chosen.risk.level}, effort {chosen.effort.level} ({chosen.effort.amount:g} h)",
    ]
    return ". ".join(w for w in words if w) + "."


def _stay(plan: MigrationPlan, chosen: Option) -> str:
    """Already well optimized; the nearest alternative, where there is one."""
    first = f"Already well optimized: keep {chosen.candidate.name} at {dollars(chosen.monthly_usd)} per month"
    other = next((o for o in plan.options if not o.current), None)
    if other is None:
        return f"{first}. Nothing else can run this."
    better = f"The best other option is {other.candidate.name} at {dollars(other.monthly_usd)}"
    speed = "" if isinstance(other.speed_ratio, Unknown) else f", {other.speed_ratio:.2f} x the speed"
    return f"{first}. {better}{speed}."


def _saving(option: Option) -> str:
    if less_for_less(option):
        return f"The same work costs {option.same_work_pct:.0f} % more"
    if isinstance(option.saving_usd, Unknown) or isinstance(option.saving_pct, Unknown):
        return ""
    if option.saving_usd < 0:
        return f"Costs {dollars(-option.saving_usd)} more ({-option.saving_pct:.0f} %)"
    return f"Saves {dollars(option.saving_usd)} ({option.saving_pct:.0f} %)"


def _speed(plan: MigrationPlan, option: Option) -> str:
    ratio = option.speed_ratio
    if isinstance(ratio, Unknown):
        if isinstance(plan.current.placement, Misfit):
            return f"For {float(option.monthly_h):g} hours per month, as now"
        return f"How much faster is {ratio}"
    if not plan.job.serves:
        return f"{ratio:.2f} x the speed: the month's work takes {option.monthly_h:,.0f} hours"
    if ratio >= 1 or plan.job.busy_ratio is not None:
        return f"{ratio:.2f} x the speed"
    return f"{ratio:.2f} x the speed: it holds the load if the present setup is at most {100 * ratio:.0f} % busy"


def _scaling(plan: MigrationPlan, option: Option) -> str:
    """What more GPUs than now lose by working together."""
    found = option.scaling
    if isinstance(found, Unknown) or option.candidate.gpus <= max(plan.current.candidate.gpus, found.base_gpus):
        return ""
    less = round(100 * found.low_ratio) < round(100 * found.ratio)
    low = f" ({100 * found.low_ratio:.0f} % if the network has {slow_network()})" if less else ""
    many, alone = option.candidate.gpus, "one" if found.base_gpus == 1 else f"each of {found.base_gpus}"
    if round(100 * found.ratio) >= 100:
        return f"Each of the {many} GPUs does as much as {alone}{low}"
    return f"Each of the {many} GPUs does {100 * found.ratio:.0f} %{low} of what {alone} does"


def slow_network() -> str:
    """The network that the low end of a range over several instances is for."""
    return f"{migrate_facts().limits.slow_network_gbps:g} Gb/s per GPU"


def warnings(plan: MigrationPlan) -> tuple[str, ...]:
    """What the reader should not overlook."""
    found: list[str] = []
    now = plan.current
    if isinstance(now.placement, Misfit):
        helps = "; ".join(now.placement.remedies)
        found.append(f"the present setup: {now.placement.why}. What would help: {helps}")
    if now.candidate.purchase == "spot" and not plan.job.spot_suitable:
        found.append("the present setup serves production on spot capacity, which can be taken back at any time")
    paid, whole = now.monthly_usd, now.whole_monthly_usd
    if not isinstance(paid, Unknown) and not isinstance(whole, Unknown) and whole > paid:
        c = now.candidate
        found.append(
            f"{c.gpus} of the {c.nodes * c.gpus_per_instance} GPUs of {c.instance} are counted, {dollars(paid)} "
            f"per month; if nothing else uses the rest, the instance costs {dollars(whole)}"
        )
    if now.candidate.stale:
        found.append(
            f"the price of the present setup is of {now.candidate.price_date}, which is old: "
            "give what you pay with `gpuledger prices update FILE`"
        )
    chosen = plan.chosen
    if chosen and not chosen.current and chosen.candidate.stale:
        dated = chosen.candidate.price_date
        found.append(f"the price of the chosen option is of {dated}, which is old: ask again before you move")
    return tuple(found)


def _counts(plan: MigrationPlan) -> str:
    """Which numbers of GPUs were looked at."""
    limits, now = migrate_facts().limits, plan.current.candidate.gpus
    if plan.job.fixed_gpus is not None:
        return f"the number of GPUs stays {plan.job.fixed_gpus}, as asked"
    if isinstance(plan.current.placement, Misfit):
        return (
            "GPU counts: up to the fewest that fit; on more, the hours are unknown, as the present setup cannot run it"
        )
    most = (
        f"up to {limits.counts_times} times the present {now}, or the fewest that fit, and {limits.most_gpus} at most"
    )
    few = "; counts above both only if they cost no more than now" if plan.job.serves else ""
    return f"GPU counts: {most}{few}"


def assumptions(plan: MigrationPlan) -> tuple[str, ...]:
    """Everything the plan assumes."""
    job, limits = plan.job, migrate_facts().limits
    found = [plan.prices]
    if job.size:
        found.append(DENSE_WORDS)
    if job.workload is WorkloadType.INFERENCE:
        found.append(
            f"serving: context {limits.serving_context:,}, fp16 cache, up to {limits.serving_batch} requests at a time "
            "for each copy, as many as fit"
        )
    else:
        adapters = {"full": "every weight trained", "lora": "LoRA adapters of rank 16", "qlora": "QLoRA, rank 16"}
        how = adapters[job.method] if job.workload is WorkloadType.FINE_TUNING else "every weight trained"
        found.append(
            f"{how}, AdamW in mixed precision, sequence 4096, micro-batch 1; sharded or recomputed only if need be"
        )
    if job.serves:
        basis = "as given" if job.busy_ratio is not None else "assumed, as it was not measured"
        found.append(
            f"a server runs {float(job.monthly_h):g} hours per month whatever its speed; "
            f"the present one is {100 * busy(job):.0f} % busy, {basis}"
        )
    else:
        found.append(
            "the amount of work stays: a faster option runs fewer hours; a month's work done within "
            f"{limits.enough_h:g} hours is not scored higher for being done sooner"
        )
        if any(option.candidate.nodes > 1 for option in plan.options):
            over = f"GPUs of several instances exchange over {network()}"
            found.append(f"{over}; ranges reach down to {slow_network()}, and scores use that")
    found.append(_counts(plan))
    if not plan.current.candidate.whole:
        found.append("GPUs of an instance that the job does not use are paid by whoever uses them")
    missing = Counter(name for option in plan.options for name in option.not_scored)
    found += [
        f"{name} is unknown for {without} of {len(plan.options)} options: their scores are made of the other "
        "measures, whose shares are scaled up to 1"
        for name, without in missing.items()
    ]
    found.append(
        "hours and load are as given, not measured: the saving is of this job's whole bill, so it overlaps with what "
        "an audit of the same GPUs would save, and the two must not be added"
    )
    found.append(
        f"risk, effort and the shares of the seven measures are judgments of {migrate_facts().as_of}, written down in "
        "plan/data/migrate.toml"
    )
    return tuple(found)
