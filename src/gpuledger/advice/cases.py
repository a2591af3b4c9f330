"""Who did what, on which GPUs: how do stretches and charges become cases?

Each device is put to the class of most of its working time; an owner's devices of one model and class are one case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Any

from gpuledger.advice.case import IDLE_CLASSES, Case, Sums, demand_of, health_of
from gpuledger.advice.limits import Limits
from gpuledger.advice.stretches import MOST, SUMS, Key, Pods, Stretch
from gpuledger.advice.summed import SumsRow
from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.billing import Charged
from gpuledger.cost.charges import Charge, grouped
from gpuledger.cost.figures import energy_kwh
from gpuledger.cost.grouping import parts_of, row_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.pricing import Price
from gpuledger.ledger.read.scope import UNALLOCATED, owner_name
from gpuledger.physics.behavior import Basis, Behaviour, classify, classify_all
from gpuledger.physics.pipes import precision_name
from gpuledger.physics.purpose import USE, Aim, purpose
from gpuledger.physics.signals import Signals, from_sums, signals_of
from gpuledger.units import MS_PER_HOUR, PPM, Unknown

_PHASES = ("idle", "underutilized", "productive", "compute_bound")
# Up to this many rows are added up one by one: by column there is more to set up than to add.
_FEW = 20
Group = tuple[str | None, str | None, str | None, str]


@dataclass(frozen=True)
class Made:
    """The cases of a window, and which of them each device and owner is in."""

    cases: tuple[Case, ...]
    case_of: Mapping[Key, int]


def make_cases(
    stretches: Sequence[Stretch],
    bill: Charged,
    inventory: Inventory | None,
    limits: Limits,
    usd_per_kwh: Decimal | None,
    pods: Mapping[Key, Pods] = MappingProxyType({}),
) -> Made:
    """All cases, the longest observed first. `pods`: those of each device and owner."""
    by_key = grouped(stretches, lambda s: s.key)
    groups: dict[Group, list[Key]] = {}
    spellings: dict[str, str] = {}

    @cache
    def spelled(model: str | None) -> str | None:
        """A model as first written: sources may spell one GPU in several ways."""
        found = find_gpu(model) if model else None
        return spellings.setdefault(found.key, model or "") if isinstance(found, Gpu) else model

    for key, members in by_key.items():
        klass = _main_class(members, limits)
        groups.setdefault((key[2], key[3], spelled(members[0].gpu_model), klass), []).append(key)
    charges = grouped(bill.charges, lambda c: (c.device.gpu_uuid, c.device.gpu_instance_id, c.namespace, c.workload))
    aims = _purposes(stretches)
    cases, case_of = [], dict[Key, int]()
    order = sorted(groups, key=lambda g: (-sum(_observed(by_key[k]) for k in groups[g]), str(g)))
    gathered = [_gather(g, [s for key in groups[g] for s in by_key[key]]) for g in order]
    for number, (group, case) in enumerate(zip(order, _cases(gathered, usd_per_kwh), strict=True)):
        keys = groups[group]
        owed = [charge for key in keys for charge in charges.get(key, ())]
        kind, by, how = aims[group[0], group[1]]
        bought = with_pods(with_money(case, owed, inventory), [pods.get(key) for key in keys])
        cases.append(replace(bought, purpose=kind, purpose_by=by, purpose_how=how))
        case_of |= dict.fromkeys(keys, number)
    return Made(tuple(_with_owners_health(cases)), case_of)


def _with_owners_health(cases: Sequence[Case]) -> Iterator[Case]:
    """The cases with the share of their owner's GPUs that fails or is hot: one that is held down makes others wait."""
    for case in cases:
        mine = [c for c in cases if (c.namespace, c.workload) == (case.namespace, case.workload)]
        gpus = max(sum(c.gpus for c in mine), 1)
        failing, hot = sum(c.health.failing for c in mine), sum(c.health.hot_ratio * c.gpus for c in mine)
        found = replace(case.health, owner_failing_ratio=failing / gpus, owner_hot_ratio=hot / gpus)
        yield replace(case, health=found) if failing or hot else case


def with_pods(case: Case, pods: Sequence[Pods | None]) -> Case:
    """The case with what the names of its pods say, and whether no pod has two of its GPUs."""
    known = [p for p in pods if p is not None]
    names = Counter(name for p in known for name in p.names)
    alone = len(known) == len(pods) and all(p.names for p in known) and max(names.values(), default=0) == 1
    return replace(case, pod_words=frozenset[str]().union(*(p.words for p in known)), own_pods=alone)


def case_of_board(
    members: Sequence[Stretch],
    charges: Sequence[Charge],
    inventory: Inventory | None,
    limits: Limits,
    pods: Mapping[Key, Pods] = MappingProxyType({}),
) -> Case:
    """One GPU as a case of its own, whoever used it; it is named for the owner with the most time on it.

    It is whole: a slice frees nothing by itself, all of its board does.
    """
    times = Counter[tuple[str | None, str | None]]()
    for stretch in members:
        times[stretch.namespace, stretch.workload] += stretch.sums["all_ms"]
    namespace, workload = max(times, key=lambda owner: (times[owner], str(owner)))
    mine = [replace(s, namespace=namespace, workload=workload) for s in members]
    klass = _main_class(mine, limits)
    (made,) = _cases([_gather((namespace, workload, mine[0].gpu_model, klass), mine)], None)
    case = with_money(made, charges, inventory)
    kind, by, how = _purposes(mine)[namespace, workload]
    case = with_pods(case, [pods.get(s.key) for s in members])
    return replace(case, purpose=kind, purpose_by=by, purpose_how=how, sliced=False)


def _main_class(members: Sequence[Stretch], limits: Limits) -> str:
    """The class of most of the working time; of all time where a device hardly works."""
    if len(members) == 1:
        return members[0].klass
    time = Counter[str]()
    for stretch in members:
        time[stretch.klass] += stretch.sums["all_ms"]
    working = {k: ms for k, ms in time.items() if k not in IDLE_CLASSES}
    chosen = working if sum(working.values()) >= limits.idle.active_from_ratio * time.total() else time
    return max(sorted(chosen or time), key=lambda k: (chosen or time)[k])


@dataclass(frozen=True)
class _Gathered:
    """The stretches of one case, and their sums: of all, of those at work, and of those of the case's class."""

    group: Group
    members: Sequence[Stretch]
    own: Sequence[Stretch]
    found: Gpu | Unknown
    total: Sums
    at_work: Sums
    of_class: Sums
    precision: str | None

    @property
    def gpu(self) -> Gpu | None:
        """The GPU, where the catalog has it."""
        return self.found if isinstance(self.found, Gpu) else None


def _gather(group: Group, members: Sequence[Stretch]) -> _Gathered:
    _, _, model, klass = group
    own = [s for s in members if s.klass == klass] or list(members)
    working = [s for s in members if s.klass not in IDLE_CLASSES] or list(members)
    total = add_up(s.sums for s in members)
    at_work, of_class = (
        total if len(some) == len(members) else add_up(s.sums for s in some) for some in (working, own)
    )
    labels = Counter[str]()
    for s in working:
        if label := precision_name(s.precision):
            labels[label] += s.sums["all_ms"]
    precision = labels.most_common(1)[0][0] if labels else None
    found = find_gpu(model) if model else Unknown("the samples carry no model name")
    return _Gathered(group, members, own, found, total, at_work, of_class, precision)


def _cases(gathered: Sequence[_Gathered], usd_per_kwh: Decimal | None) -> Iterator[Case]:
    """The cases of what was gathered; signals and classes are worked out for all of them at once."""
    idle, gpus = load_thresholds().idle, [g.gpu for g in gathered]
    signals = signals_of([g.at_work for g in gathered], gpus, idle)
    judged = classify_all(signals_of([g.of_class for g in gathered], gpus, idle))
    for one, seen, whole in zip(gathered, signals, judged, strict=True):
        yield _case(one, seen, _judge(one, whole), usd_per_kwh)


def _case(one: _Gathered, signals: Signals, judged: Behaviour, usd_per_kwh: Decimal | None) -> Case:
    (namespace, workload, model, klass), members, total = one.group, one.members, one.total
    observed = total["all_ms"] or 1
    names = {f"{s.gpu_uuid}/{s.gpu_instance_id}" if s.gpu_instance_id else s.gpu_uuid for s in members}
    return Case(
        namespace=namespace,
        workload=workload,
        gpu_model=model,
        gpu=one.found,
        klass=klass,
        evidence=judged.evidence,
        confidence=judged.confidence,
        shares=_shares({v: _observed(s for s in members if s.klass == v) for v in {s.klass for s in members}}),
        phases=_shares({p: total[f"phase_{p}_ms"] for p in _PHASES}),
        devices=tuple(sorted(names)),
        gpus=len({s.gpu_uuid for s in members}),
        observed_h=total["all_ms"] / MS_PER_HOUR,
        days=total["all_ms"] / MS_PER_HOUR / 24 / max(len(names), 1),
        signals=signals,
        demand=demand_of(total, one.at_work, signals, one.gpu),
        idle_ratio=(total["idle_ms"] + total["idle_unknown_ms"]) / observed,
        idle_held_ratio=total["idle_held_ms"] / observed,
        memory_known=not total["idle_unknown_ms"],
        busy_ratio=min(1.0, total["busy_ppm_ms"] / PPM / observed),
        spun_ratio=one.at_work["spun_ms"] / (one.at_work["observed_ms"] or 1),
        precision=one.precision,
        tensor_kind=_tensor_kind(one.at_work),
        sliced=any(s.gpu_instance_id for s in members),
        health=health_of((s.gpu_uuid, s.gpu_instance_id, s.sums) for s in members),
        usd_per_kwh=usd_per_kwh,
    )


def _tensor_kind(at_work: Sums) -> str | None:
    """fp64 or int8, where the counters show it; floating point of 8 to 32 bits looks alike to them."""
    kinds = {"fp64": at_work["dfma_ppm_ms"], "int8": at_work["imma_ppm_ms"]}
    return next((kind for kind, part in kinds.items() if part and 2 * part >= at_work["tensor_ppm_ms"]), None)


def _judge(one: _Gathered, whole: Behaviour) -> Behaviour:
    """What shows the class: judged over its stretches together, else as the longest of them was."""
    klass, sums = one.group[3], one.of_class
    if klass not in IDLE_CLASSES:
        if whole.klass == klass:
            return whole
        longest = max(one.own, key=lambda s: s.sums["all_ms"])
        alone = classify(from_sums(longest.sums, one.gpu))
        if alone.klass == klass:
            return alone
        seen = "; ".join(whole.evidence)
        return Behaviour(klass, (f"so on most days; all days together: {seen}",), whole.confidence)
    resting = 100 * sums["resting_ms"] / max(sums["all_ms"], 1)
    memory = {"idle-held": ", memory is held", "idle": ", memory use is not recorded" * bool(sums["idle_unknown_ms"])}
    basis: Basis = "counters" if sums["seen_ms"] else "utilization"
    return Behaviour(klass, (f"no work {resting:.0f} % of the time{memory[klass]}",), basis)


def add_up(rows: Iterable[Sums]) -> dict[str, Any]:
    """Sums added up; of what is a maximum, the largest."""
    given = list(rows)
    if len(given) > _FEW and isinstance(first := given[0], SumsRow):
        mine = [row.row for row in given if isinstance(row, SumsRow) and row.table is first.table]
        if len(mine) == len(given):
            return first.table.added(mine)
    out: dict[str, Any] = {name: sum([row[name] for row in given]) for name in SUMS}
    for name in MOST:
        out[name] = max((row[name] for row in given if row[name] is not None), default=None)
    return out


def _observed(members: Iterable[Stretch]) -> int:
    return sum(s.sums["all_ms"] for s in members)


def _shares(parts: Mapping[str, int]) -> dict[str, float]:
    total = sum(parts.values())
    return {name: part / total for name, part in sorted(parts.items()) if part} if total else {}


def _purposes(stretches: Sequence[Stretch]) -> dict[tuple[str | None, str | None], Aim]:
    """What each owner is for, by its name or by all of its use."""
    out = {}
    for owner, members in grouped(stretches, lambda s: (s.namespace, s.workload)).items():
        use = {n: float(sum(s.sums[n] or 0 for s in members)) for n in USE}
        out[owner] = purpose(owner_name(*owner), use, nameless=UNALLOCATED)
    return out


def with_money(case: Case, charges: Sequence[Charge], inventory: Inventory | None) -> Case:
    """The case with dollars and energy of its charges, and the way most of its time was bought."""
    if not charges:
        return case
    row = row_of(case.name, parts_of(charges))
    options, instances = Counter[str](), Counter[str]()
    for charge in charges:
        option, instance = _bought(charge, inventory)
        options[option] += charge.times.paid_ms
        instances[instance] += charge.times.paid_ms
    option, instance = options.most_common(1)[0][0], instances.most_common(1)[0][0]
    bought = replace(case, times=row.times, dollars=row.dollars, purchase=option, instance=instance or None)
    # Power is read for a whole board and repeated for each of its MIG slices; charges hold each slice's part of it.
    return replace(bought, energy_kwh=energy_kwh(charges))


def _bought(charge: Charge, inventory: Inventory | None) -> tuple[str, str]:
    """How the time was bought: as the inventory says, else as the list price it was priced by."""
    price, segment = charge.price, charge.stay.segment
    if inventory is not None and isinstance(price, Price) and price.basis in {"inventory", "yours", "instance"}:
        rows = inventory.by_device.get(charge.device.name) or inventory.by_device.get(charge.device.gpu_uuid) or ()
        for row in rows:
            if row.within(segment.start_ms, segment.end_ms):
                return row.purchase_option, row.instance
    if isinstance(price, Price) and price.basis in {"market", "yours", "instance"}:
        return "on_demand", ""
    return "not said", ""
