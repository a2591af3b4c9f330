"""What is the answer of a capacity plan in two sentences?"""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.statement import Basis, CapacityPlan, GpuRange
from gpuledger.units import MS_PER_DAY, Unknown, count, utc

BASES: dict[Basis, str] = {
    "held": "as held (nominal)",
    "working": "at work",
    "realized": "realized",
    "demand": "need",
}


def span(need: GpuRange | Unknown) -> str:
    """A need with its range."""
    if isinstance(need, Unknown):
        return "unknown"
    return str(need.middle) if need.low == need.high else f"{need.middle} ({need.low} to {need.high})"


def gpus_of(need: GpuRange | Unknown) -> str:
    """ "1 GPU", "108 (96 to 119) GPUs"."""
    one = isinstance(need, GpuRange) and need.low == need.middle == need.high == 1
    return f"{span(need)} {'GPU' if one else 'GPUs'}"


def is_old(age_days: int | None) -> bool:
    """Whether a history ended too long ago to call its end now."""
    return age_days is not None and age_days >= capacity_facts().old_from_days


def headline(plan: CapacityPlan) -> str:
    """GPUs now, GPUs needed on each basis, and what comes first."""
    return " ".join(_sentences(plan))


def _sentences(plan: CapacityPlan) -> Iterator[str]:
    until = f"{utc(plan.end_ms + plan.weeks * 7 * MS_PER_DAY):%Y-%m-%d}"
    past = "there" if plan.chosen == "demand" else f"on {utc(plan.end_ms):%Y-%m-%d}"
    then = past if is_old(plan.age_days) else "now"
    now = "" if plan.gpus_now is None else f"{count(plan.gpus_now, 'GPU')} {then}. "
    main = plan.needs[plan.chosen]
    if plan.chosen == "demand":
        yield f"{now}Demand up to {until} needs {gpus_of(main)}."
    else:
        parts = [f"{gpus_of(main)} as owners hold them today"]
        if not isinstance(working := plan.needs["working"], Unknown):
            parts.append(f"{span(working)} if idle GPUs go back to the pool")
        if isinstance(real := plan.needs["realized"], GpuRange):
            parts.append(f"{span(real)} at the share that the better GPUs reach")
        yield f"{now}Up to {until} the fleet needs {', '.join(parts)}."
    found = plan.investment
    if not isinstance(found, Unknown):
        if found.there:
            short = count(found.short.middle, "GPU")
            yield f"{found.there} of the {short} that are short are there already, without work."
        elif found.short.middle:
            yield f"{count(found.short.middle, 'GPU')} short; {_first_out(plan)}."
        elif found.surplus:
            yield f"{count(found.surplus, 'GPU')} more than needed."
    over = [m for m in plan.spending if m.verdict == "over"]
    if over:
        yield f"Over budget from {over[0].month} on ({over[0].name})."


def _first_out(plan: CapacityPlan) -> str:
    """Which pool runs out first, and when."""
    dates = [
        (p.runs_out.expected, p.name) for p in plan.pools if not isinstance(p.runs_out, Unknown) and p.runs_out.expected
    ]
    if not dates:
        return "the range passes what is there"
    when, name = min(dates)
    if len(plan.pools) == 1:
        return f"they run out in the week of {when}"
    return f"{name} runs out first, in the week of {when}"
