"""What do several moves come to together, and which of the jobs could share GPUs?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.errors import UnknownName
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.sharing import one_request_bytes, pack
from gpuledger.plan.guide.statement import MigrationPlan, Misfit
from gpuledger.plan.memory.facts import capacity
from gpuledger.plan.placing import precision_refusal
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

    `cannot_run_now`: setups that cannot run where they are; `cannot_run_then_usd` is what running them costs, which no
    saving can be measured against.
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
    """The id of a workload of the configuration."""
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
    known = not isinstance(now, Unknown) and not isinstance(then, Unknown)
    saving: Decimal | Unknown = now - then if known else Unknown("one of the prices is not known")  # type: ignore[operator]
    pct: float | Unknown = Unknown("one of the prices is not known")
    if not isinstance(saving, Unknown) and not isinstance(now, Unknown):
        pct = float(100 * saving / now) if now else Unknown("the present setups cost nothing")
    lost = [p for p in plans if isinstance(p.current.placement, Misfit)]
    spent = sum((p.chosen.monthly_usd for p in lost if p.chosen), Decimal(0))
    return MigrationSet(
        name, purpose, use_case, tuple(plans), now, then, saving, pct, _consolidate(plans), len(lost), spent
    )  # fmt: skip


def _sum(values: Sequence[Decimal | Unknown]) -> Decimal | Unknown:
    total = Decimal(0)
    for value in values:
        if isinstance(value, Unknown):
            return value
        total += value
    return total


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
    groups = pack([(n, one_request_bytes(p.job)) for n, p in zip(names, plans, strict=True)], room)
    if len(groups) >= len(plans):
        return None
    dearest = max((p.chosen.monthly_usd for p in plans if p.chosen), default=Decimal(0))
    saving = sum((p.chosen.monthly_usd for p in plans if p.chosen), Decimal(0)) - dearest * len(groups)
    words = (
        f"{len(plans)} servers fit on {len(groups)} x {gpu.name} by memory, one request at a time each; "
        "they share its speed, so measure how busy they are first"
    )
    groups_ = tuple(tuple(g) for g in groups)
    return Consolidation(gpu.name, tuple(names), len(plans), len(groups), groups_, max(saving, Decimal(0)), words)
