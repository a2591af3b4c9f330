"""What do several moves come to together, and which of the jobs could share GPUs?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.errors import UnknownName
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.memory import one_request_bytes
from gpuledger.plan.guide.placing import precision_refusal
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.statement import MigrationPlan, Misfit
from gpuledger.plan.memory.facts import capacity
from gpuledger.plan.packing import Parcel, bins
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
