"""Why can this candidate not be considered, and what would change that?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.statement import Candidate, Job, Misfit, Placement, Refused, RefusedGroup
from gpuledger.units import Unknown

Place = Callable[[Job, Gpu, int, int], Placement | Misfit]
MONTH_H = Decimal(730)
# Speeds are reckoned for what writes tokens, and for training where the FLOP of a step are known.
SPEED_REMEDY = "measure it where it runs; `gpuledger plan fit` says on which other GPUs it fits"


def refuse(job: Job, candidate: Candidate, placed: Placement | Misfit | None) -> Refused | None:
    """The first reason that stands in the way, or None. `placed` is None where the GPU is not known."""
    for test in (_unknown_gpu, _no_price, _spot):
        if found := test(job, candidate):
            return found
    if isinstance(placed, Misfit):
        return Refused(candidate, placed.kind, placed.why, placed.remedies)
    assert placed is not None, "a known GPU has a placement"
    if isinstance(placed.rate, Unknown):
        return Refused(candidate, "SPEED", f"its speed is {placed.rate}", (SPEED_REMEDY,))
    return None


def too_slow(job: Job, candidate: Candidate, hours: Decimal, speed_ratio: float | Unknown) -> Refused | None:
    """A candidate that cannot do the month's work in a month, or not hold the load that was measured."""
    if hours > MONTH_H and hours > job.monthly_h:
        why = f"the month's work would take {hours:,.0f} hours, and a month has {MONTH_H}"
        return Refused(candidate, "SLOW", why, ("use more GPUs", "use a faster GPU"))
    if job.serves and not isinstance(speed_ratio, Unknown) and speed_ratio < busy(job):
        told = "is in use" if job.busy_ratio is not None else "is taken to be in use, as nobody measured it"
        able, used = f"{100 * speed_ratio:.1f} %", f"{100 * busy(job):.0f} %"
        why = f"it serves {able} of what the present setup can, and {used} of that {told}"
        measure = () if job.busy_ratio is not None else ("measure how busy the present setup is and give it (--busy)",)
        return Refused(candidate, "SLOW", why, ("use more GPUs", *measure))
    return None


def busy(job: Job) -> float:
    """The share of the present capacity that is in use: measured, or assumed."""
    return migrate_facts().limits.assumed_busy_ratio if job.busy_ratio is None else job.busy_ratio


def _unknown_gpu(_job: Job, candidate: Candidate) -> Refused | None:
    if not isinstance(candidate.gpu, Unknown):
        return None
    remedy = "set catalog_gpu to a GPU of `gpuledger catalog gpus`, or give memory_bandwidth_gb_per_s"
    return Refused(candidate, "GPU", candidate.gpu.why, (remedy,))


def _no_price(_job: Job, candidate: Candidate) -> Refused | None:
    if not isinstance(candidate.usd_per_h, Unknown):
        return None
    remedy = "give your own rate with `gpuledger prices update FILE`, or choose another region"
    return Refused(candidate, "PRICE", candidate.usd_per_h.why, (remedy,))


def _spot(job: Job, candidate: Candidate) -> Refused | None:
    if candidate.purchase != "spot":
        return None
    if not job.spot_suitable:
        why = f"spot capacity can be taken back at any time, and {job.use_case.replace('_', ' ')} must not stop"
        remedy = "on demand, or a use case that stands interruption: batch_inference, research_training"
        return Refused(candidate, "SPOT", why, (remedy,))
    if not job.spot_asked:
        return Refused(
            candidate, "SPOT NOT ASKED", "spot prices were not asked for", ("ask for spot: use_spot=True, --spot",)
        )
    return None


# These hold for a purchase option as such, whichever the instance.
OF_ALL = ("SPOT", "SPOT NOT ASKED")


def grouped(refused: Sequence[Refused]) -> tuple[RefusedGroup, ...]:
    """Refusals by GPU and kind of reason, as a reader wants them."""
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
