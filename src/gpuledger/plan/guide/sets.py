"""What do several moves come to together, and which jobs could share a GPU?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.catalog.gpus.mig import smallest_slice
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.guide.checks import pick
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.placed_job import Candidate, Job, Misfit
from gpuledger.plan.guide.placing import precision_refusal
from gpuledger.plan.guide.schema import WorkloadType, migrate_facts
from gpuledger.plan.guide.statement import MigrationPlan, Sharing
from gpuledger.plan.memory.facts import capacity
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.packing import Parcel, bins
from gpuledger.plan.setup import Setup
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Consolidation:
    """Servers of one GPU each that would fit together on fewer."""

    gpu: str
    jobs: tuple[str, ...]
    gpus_apart: int
    gpus_together: int
    groups: tuple[tuple[str, ...], ...]
    saving_usd: Decimal
    words: str


@dataclass(frozen=True)
class MigrationSet:
    """Several plans and their sum. `then_usd` counts the present cost where nothing fits.

    `cannot_run_now`: setups that cannot run where they are; running them costs `cannot_run_then_usd`, and nothing is
    saved by that.
    """

    name: str
    purpose: str
    use_case: str
    plans: tuple[MigrationPlan, ...]
    now_usd: Decimal | Unknown
    then_usd: Decimal | Unknown
    saving_usd: Decimal | Unknown
    saving_pct: float | Unknown
    consolidation: tuple[Consolidation, ...]
    cannot_run_now: int = 0
    cannot_run_then_usd: Decimal = Decimal(0)


def members(config: Config, name: str) -> tuple[str, ...]:
    """The workloads of a set of the configuration."""
    if name not in config.sets:
        raise UnknownName("workload set", name, config.sets)
    return config.sets[name]


def workload_named(config: Config, name: str) -> str:
    """The id of a workload of the configuration, if there is such a workload."""
    if name not in config.workloads:
        raise UnknownName("workload", name, config.workloads)
    return name


def tagged(config: Config, tags: Sequence[str]) -> tuple[str, ...]:
    """The workloads that have all of these tags."""
    known = sorted({tag for one in config.workloads.values() for tag in one.tags})
    wanted = [pick(tag, known, "tag") for tag in tags]
    found = tuple(id_ for id_, one in config.workloads.items() if set(wanted) <= set(one.tags))
    if not found:
        raise InputError(f"no workload has all of the tags {', '.join(wanted)}", hint="give fewer tags")
    return found


def plan_set(config: Config, name: str, plan: Callable[[str], MigrationPlan]) -> MigrationSet:
    """The plans of a set of the configuration; `plan` makes one from the id of a workload."""
    about = config.purposes.get(name)
    made = tuple(plan(id_) for id_ in members(config, name))
    return together(made, name, about.purpose if about else "", about.use_case if about else "")


def together(plans: Sequence[MigrationPlan], name: str = "", purpose: str = "", use_case: str = "") -> MigrationSet:
    """Several plans as one answer."""
    now = _sum([p.current.monthly_usd for p in plans])
    then = _sum([p.chosen.monthly_usd if p.chosen else p.current.monthly_usd for p in plans])
    missing = Unknown("one of the prices is unknown")
    saving: Decimal | Unknown = missing
    pct: float | Unknown = missing
    if not isinstance(now, Unknown) and not isinstance(then, Unknown):
        saving = now - then
        pct = float(100 * saving / now) if now else Unknown("the present setups cost nothing")
    lost = [p for p in plans if isinstance(p.current.placement, Misfit)]
    spent = sum((p.chosen.monthly_usd for p in lost if p.chosen), Decimal(0))
    return MigrationSet(
        name, purpose, use_case, tuple(plans), now, then, saving, pct, _consolidate(plans), len(lost), spent
    )  # fmt: skip


def _sum(values: Sequence[Decimal | Unknown]) -> Decimal | Unknown:
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    return unknown or sum((v for v in values if not isinstance(v, Unknown)), Decimal(0))


def _consolidate(plans: Sequence[MigrationPlan]) -> tuple[Consolidation, ...]:
    """For each GPU that was chosen for several one-GPU servers: how few of it hold them all."""
    by_gpu: dict[str, list[MigrationPlan]] = {}
    for plan in plans:
        chosen = plan.chosen
        if chosen is None or isinstance(chosen.candidate.gpu, Unknown) or chosen.candidate.gpus != 1:
            continue
        if plan.job.workload is WorkloadType.INFERENCE and precision_refusal(plan.job, chosen.candidate.gpu) is None:
            by_gpu.setdefault(chosen.candidate.gpu.key, []).append(plan)
    packed = (_pack(sharing) for sharing in by_gpu.values() if len(sharing) > 1)
    return tuple(found for found in packed if found is not None)


def _pack(plans: Sequence[MigrationPlan]) -> Consolidation | None:
    first = plans[0].chosen
    assert first is not None
    gpu = first.candidate.gpu
    assert not isinstance(gpu, Unknown)
    room, _ = capacity(gpu)
    names = [p.job.workload_id or p.job.name or f"job {i}" for i, p in enumerate(plans, 1)]
    needs = sorted(zip(names, (one_request_bytes(p.job) / room for p in plans), strict=True))
    fitting = [(name, Parcel(need, 0.0)) for name, need in needs if need <= 1]
    groups = tuple(tuple(fitting[i][0] for i in held) for held in bins([parcel for _, parcel in fitting], 1.0))
    if len(groups) >= len(plans):
        return None
    paid = [p.chosen.monthly_usd for p in plans if p.chosen]
    saving = sum(paid, Decimal(0)) - max(paid) * len(groups)
    words = (
        f"{len(plans)} servers fit on {len(groups)} x {gpu.name} by memory, one request at a time each; "
        "they share its speed, so measure how busy they are first"
    )
    return Consolidation(gpu.name, tuple(names), len(plans), len(groups), groups, max(saving, Decimal(0)), words)


def one_request_bytes(job: Job) -> int:
    """What a server of this model needs at least: one request at a time."""
    context = migrate_facts().limits.serving_context
    setup = Setup(mode="serve", precision=job.precision, context=context, batch=1)
    return memory(job.model, setup).total_bytes


def sharing(job: Job, candidates: Sequence[Candidate]) -> tuple[Sharing, ...]:
    """For each GPU in question: how many such jobs it holds, and which slice of it would do for one."""
    if job.workload is not WorkloadType.INFERENCE:
        return ()
    found = [on for c in candidates if (on := _on(job, c)) is not None]
    return tuple({one.on: one for one in found}.values())  # the same GPU is listed once


def _on(job: Job, candidate: Candidate) -> Sharing | None:
    gpu = candidate.gpu
    if isinstance(gpu, Unknown) or precision_refusal(job, gpu):
        return None
    need, (room, _) = one_request_bytes(job), capacity(gpu)
    jobs = room // need
    if not jobs:
        return None
    price = candidate.usd_per_gpu_h
    month: Decimal | Unknown = price if isinstance(price, Unknown) else price * job.monthly_h
    cut = smallest_slice(gpu.key, 0.0, need / room)
    several = f"{jobs} of them fit on one GPU, if together they are not busier than it" if jobs > 1 else "no other fits"
    size = f"one such server needs {need / 1e9:.1f} of {room / 1e9:.1f} GB on {gpu.name}, one request at a time"
    name: str | Unknown
    cut_usd: Decimal | Unknown = Unknown("no slice of it would do")
    if isinstance(cut, Unknown):
        name, mig = cut, f"MIG: {cut.why}"
    else:
        name, share = cut.name or f"{cut.compute} compute slices", max(cut.compute_ratio, cut.memory_ratio)
        cut_usd = month if isinstance(month, Unknown) else month * Decimal(repr(share))
        mig = f"a MIG slice {name} holds one, with its share of the speed"
    each = month if isinstance(month, Unknown) else month / jobs
    on = f"{gpu.name} ({candidate.instance}, {candidate.purchase})"
    return Sharing(on, jobs, each, name, cut_usd, f"{size}: {several}; {mig}")
