"""What are the sentences of a batch plan: what it assumes, and what it did not take and why?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuledger.plan.batching.grid import Grid
from gpuledger.plan.batching.pools import Terms
from gpuledger.plan.batching.statement import Outcome, PoolUse, dollars
from gpuledger.plan.outcome import Refused
from gpuledger.units import MS_PER_MIN, count


def headline(plan: Outcome, fifo: Outcome, due: bool) -> str:
    """The answer in two sentences: dollars, deadlines, and what is saved against a plain queue.

    `due`: whether any job has a deadline of the user's.
    """
    limit = "deadline" if due else "longest wait"
    if plan.missed:
        met = f"{plan.met:,} of {plan.jobs:,} {limit}s met"
    elif due:
        met = f"all {plan.jobs:,} deadlines met" if plan.jobs > 1 else "its deadline met"
    else:
        met = "none waits too long"
    first = f"{count(plan.jobs, 'job')} for {dollars(plan.usd)}, {met}."
    misses = f" and miss {count(fifo.missed, limit)}" if fifo.missed else ""
    if not fifo.more_usd:
        return f"{first} FIFO would cost the same{misses}."
    queue = f"FIFO would cost {dollars(fifo.usd)}{misses}"
    if fifo.more_usd < 0:
        return f"{first} {queue}."
    return f"{first} {queue}: the plan saves {dollars(fifo.more_usd)} ({100 * fifo.more_usd / fifo.usd:.0f} %)."


def assumptions(grid: Grid, notes: Sequence[str]) -> tuple[str, ...]:
    """What the plan rests on."""
    jobs, pools = [t.job for t in grid.tasks], [lane.pool for lane in grid.lanes]
    step = f"{grid.step_ms / MS_PER_MIN:g}"
    out = [
        "All jobs and their hours are known in advance. Queues, and planning on arrival, know a job when it arrives.",
        f"Jobs start on a grid of {step} minutes, hold GPUs for whole steps, and are billed for the time they run.",
    ]
    if any(job.preemptible for job in jobs):
        pause = f"{grid.restart_ms / MS_PER_MIN:g}"
        out.append(
            f"Preemptible jobs may pause and start again on the same pool; each restart adds {pause} minutes. All"
            " others run once, without a break."
        )
    if any(p.terms is Terms.RESERVED for p in pools):
        out.append("Reserved pools are paid from the start to the last deadline, used or not; using them adds nothing.")
    if any(p.terms is not Terms.RESERVED for p in pools):
        out.append("On-demand and spot pools are paid by the GPU and the time used; hosts are not rented whole.")
    without = sum(not job.due for job in jobs)
    if without:
        out.append(f"{count(without, 'job has', 'jobs have')} no deadline; the longest wait (--wait) holds instead.")
    out += [f"Price of {p.name}: {p.basis}." for p in pools if p.basis]
    return (*out, *notes)


def refused(plan: Outcome, others: Sequence[Outcome], pools: Sequence[PoolUse]) -> tuple[Refused, ...]:
    """Queues and pools that were not taken."""
    out = []
    for other in others:
        why = []
        if other.more_usd > 0:
            why.append(f"costs {dollars(other.more_usd)} more")
        if other.missed > plan.missed:
            why.append(f"misses {count(other.missed, 'deadline')} ({other.late_h:,.1f} h late in all)")
        if why:
            out.append(Refused(other.name, " and ".join(why), "later deadlines or more GPUs" if other.missed else ""))
    idle = Refused("", "no job is cheaper there", "a lower price, or less room elsewhere")
    out += [replace(idle, what=f"pool {pool.pool}") for pool in pools if not pool.jobs]
    return tuple(out)
