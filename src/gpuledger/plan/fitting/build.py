"""Will this model run on these GPUs, what takes the memory, and what is the least change that makes it fit?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import DiffusionShape, Model, TransformerShape
from gpuledger.catalog.models.shapes import longest_sequence
from gpuledger.errors import InputError
from gpuledger.plan.fitting.changes import Case, Change, changes
from gpuledger.plan.fitting.sources import counted_by, measured_errors, rests_on
from gpuledger.plan.measured_types import RangeFrom
from gpuledger.plan.memory.facts import capacity, get_optimizer, get_precision, get_scheme, kept, overheads
from gpuledger.plan.memory.paged import Paged, is_paged, paged, room_bytes
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup, check
from gpuledger.units import Unknown

MOST_REMEDIES = 6
MOST_CHANGES = 3


@dataclass(frozen=True)
class Fit:
    """The answer; with `at_least` only what is known was counted, and `not_known` names the other parts."""

    model: str
    params_total: int
    gpu: str
    setup: Setup
    fits: bool
    at_least: bool
    close: bool  # the card lies within the error of what was measured
    low_bytes: int
    high_bytes: int | Unknown
    per_gpu_bytes: dict[str, int]
    of_capacity_pct: dict[str, float]
    total_bytes: int
    capacity_bytes: int
    free_bytes: int  # below zero: what is missing
    capacity_from: str
    not_known: dict[str, str]
    assumptions: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    nowhere: str  # why nothing makes it fit, where it does not
    paged: Paged | None = None  # what a paged cache holds, where one was asked for
    range_from: RangeFrom | None = None  # which runs set the range, where not those of a formula

    def as_json(self) -> dict[str, object]:
        """Parts that are unknown stand among the others."""
        unknown = {name: Unknown(why) for name, why in self.not_known.items()}
        return {**vars(self), "per_gpu_bytes": {**self.per_gpu_bytes, **unknown}}


def fit(model: Model, gpu: Gpu, setup: Setup) -> Fit:
    """Check the question, count the memory, and look for remedies where it does not fit."""
    check(setup, model, gpu)
    need = memory(model, setup)
    room, room_from = room_bytes(gpu, setup), capacity(gpu)[1]
    fits = need.total_bytes <= room
    low, most = measured_errors(model, setup).span(need.total_bytes)
    high = Unknown(f"{' and '.join(need.not_known)} unknown") if need.not_known else most
    remedies, nowhere = ((), "") if fits else search(model, gpu, setup)
    return Fit(
        model=model.name,
        params_total=model.params_total,
        gpu=gpu.key,
        setup=setup,
        fits=fits,
        at_least=bool(need.not_known),
        close=low <= room < most,
        low_bytes=low,
        high_bytes=high,
        per_gpu_bytes=dict(need.parts),
        of_capacity_pct={name: 100 * part / room for name, part in need.parts.items()}
        | {"total": 100 * need.total_bytes / room},
        total_bytes=need.total_bytes,
        capacity_bytes=room,
        free_bytes=room - need.total_bytes,
        capacity_from=room_from,
        not_known=dict(need.not_known),
        assumptions=tuple(assumptions(model, setup)),
        remedies=remedies,
        nowhere=nowhere,
        paged=paged(model, gpu, setup) if is_paged(setup) else None,
        range_from=rests_on(model, setup),
    )


def assumptions(model: Model, setup: Setup) -> list[str]:
    """Everything the answer assumes, given or by default."""
    found = _training(model, setup) if setup.mode == "train" else _serving(model, setup)
    if isinstance(model.shape, TransformerShape) and model.shape.experts:
        found.append(f"all {model.params_total / 1e9:.1f} B parameters rest in memory; experts are evenly loaded")
    if model.differs:
        found.append(f"{model.name}: {model.differs}")
    facts = overheads()
    fixed = f"{facts.context_bytes.value / 1e9:.2f} GB of CUDA context"
    if setup.count > 1:
        fixed += f" and {facts.collective_bytes.value / 1e9:.2f} GB of collective buffers"
    slack = facts.fragmentation_ratio.value * 100
    return [
        *found,
        f"overhead: {fixed}, and {slack:g} % of what comes and goes for the allocator's gaps",
        f"error: {measured_errors(model, setup).text}",
    ]


def _split(setup: Setup) -> str:
    within = [f"tensor parallel {setup.tensor}"] if setup.tensor > 1 else []
    within += [f"pipeline parallel {setup.pipeline}"] if setup.pipeline > 1 else []
    return ", ".join(within)


def _training(model: Model, setup: Setup) -> list[str]:
    sharded = {0: "no sharding", 1: "ZeRO 1: the optimizer sharded", 2: "ZeRO 2: optimizer and gradients sharded",
               3: "ZeRO 3 (FSDP): weights, gradients and optimizer sharded"}  # fmt: skip
    copies = f"data parallel over {setup.data}, {sharded[setup.zero]}" if setup.data > 1 else "one copy of the model"
    split = _split(setup)
    scheme, optimizer = get_scheme(setup.scheme), get_optimizer(setup.optimizer)
    narrow = get_precision(setup.precision).train_as != "fp32"
    found = [
        f"{split}, {copies}" if split else (f"plain {copies}" if setup.data > 1 and not setup.zero else copies),
        f"{setup.precision}, {scheme.name}: {scheme.words}" if narrow else f"{setup.precision}: all of it held in fp32",
        optimizer.words,
    ]
    if setup.lora_rank:
        base = f"over frozen {setup.frozen_precision or setup.precision} weights"
        found.append(f"LoRA of rank {setup.lora_rank} on attention and dense MLPs, {base}")
    length = f"sequence {setup.sequence}, " if longest_sequence(model.shape) else ""
    found.append(f"{length}micro-batch {setup.micro_batch}")
    if isinstance(model.shape, DiffusionShape):
        found.append("the denoiser is trained; encoders and decoder stay frozen in memory")
    found.append("recomputation: only each layer's input is kept" if setup.recompute else "no recomputation")
    attention = "flash attention" if setup.attention == "flash" else "attention keeps its whole score matrix"
    found.append(f"{attention}; kernels: {kept(setup.kept_by).words}")
    held = "live through the whole step (accumulation; buckets are views of them)"
    found.append(f"gradients {held if setup.accumulate else 'are freed after each step: one micro-batch per step'}")
    return [*found, *counted_by(model, setup)]


def _serving(model: Model, setup: Setup) -> list[str]:
    copies = f"{setup.data} copies of the model, each on its own GPUs" if setup.data > 1 else "one copy of the model"
    split = _split(setup)
    found = [f"{split}; {copies}" if split else copies]
    moe = isinstance(model.shape, TransformerShape) and model.shape.experts > 0
    attention = "attention, " if moe and get_precision(setup.precision).experts_only else ""
    wide = f"{attention}embeddings, norms and routers"
    rest = f"; {wide} in 16 bits" if setup.precision not in ("fp32", "tf32", "bf16", "fp16") else ""
    found.append(f"{setup.precision} weights{rest}")
    if longest_sequence(model.shape):
        found.append(
            f"context {setup.context}, batch {setup.batch} per copy, {setup.cache_precision} cache, all of it full"
        )
        if is_paged(setup):
            share = f"the server takes {100 * setup.memory_share:g} % of the card at its start"
            found.append(f"paged cache: blocks of {setup.block_tokens} tokens; {share}")
        found.append(f"prompts are read in pieces of {int(overheads().prefill_chunk_tokens.value)} tokens")
    else:
        found.append(f"batch {setup.batch} per copy")
    return [*found, *counted_by(model, setup)]


@dataclass(frozen=True)
class Remedy:
    """Changes that together make it fit; none of them can be left out, and none taken less far."""

    changes: tuple[str, ...]
    options: str
    costs: tuple[str, ...]
    effort: float
    gpu: str
    count: int
    per_gpu_bytes: dict[str, int]
    total_bytes: int
    capacity_bytes: int
    free_bytes: int
    at_least: bool
    close: bool  # the card lies within the error of what was measured


def search(model: Model, gpu: Gpu, setup: Setup) -> tuple[tuple[Remedy, ...], str]:
    """Remedies from the least effort up, or why there is none."""
    case = Case(setup, gpu)
    kinds = changes(model, case)
    found: list[tuple[dict[str, int], Remedy]] = []
    for chosen in _by_effort(kinds):
        levels = {change.kind: change.level for change in chosen}
        if any(all(levels.get(kind, 0) >= level for kind, level in less.items()) for less, _ in found):
            continue  # a part of these changes is enough
        if remedy := _tried(model, case, chosen):
            found.append((levels, remedy))
        if len(found) == MOST_REMEDIES:
            break
    if found:
        return tuple(remedy for _, remedy in found), ""
    last = _everything(model, case, kinds)
    if last:
        return (last,), ""
    return (), (
        f"nothing tried makes {model.name} fit: not all changes together, "
        f"with up to {setup.count * 2 ** len(kinds.get('count', ())):,} GPUs of any size in the catalog"
    )


def _by_effort(kinds: dict[str, list[Change]]) -> Iterator[tuple[Change, ...]]:
    """Every choice of up to three kinds and a level of each, least effort first; ties in the order of kinds."""
    queue = [
        (_effort(kinds, names, (0,) * size), size, names, (0,) * size)
        for size in range(1, MOST_CHANGES + 1)
        for names in combinations(kinds, size)
    ]
    heapify(queue)
    seen = {(names, at) for _, _, names, at in queue}
    while queue:
        _, size, names, at = heappop(queue)
        yield tuple(kinds[name][level] for name, level in zip(names, at, strict=True))
        for place, name in enumerate(names):
            further = tuple(level + (1 if i == place else 0) for i, level in enumerate(at))
            if further[place] < len(kinds[name]) and (names, further) not in seen:
                seen.add((names, further))
                heappush(queue, (_effort(kinds, names, further), size, names, further))


def _effort(kinds: dict[str, list[Change]], names: tuple[str, ...], at: tuple[int, ...]) -> float:
    return round(sum(kinds[name][level].effort for name, level in zip(names, at, strict=True)), 6)


def _tried(model: Model, case: Case, chosen: tuple[Change, ...]) -> Remedy | None:
    changed = case
    for change in sorted(chosen, key=lambda change: change.kind != "count"):  # more GPUs first: a split needs them
        changed = change.alter(changed)
    try:
        check(changed.setup, model, changed.gpu)
    except InputError:
        return None
    need, room = memory(model, changed.setup), room_bytes(changed.gpu, changed.setup)
    if need.total_bytes > room:
        return None
    return Remedy(
        changes=tuple(change.words for change in chosen),
        options=" ".join(_option(name, value) for change in chosen for name, value in change.sets.items()),
        costs=tuple(change.costs for change in chosen),
        effort=round(sum(change.effort for change in chosen), 6),
        gpu=changed.gpu.key,
        count=changed.setup.count,
        per_gpu_bytes=dict(need.parts),
        total_bytes=need.total_bytes,
        capacity_bytes=room,
        free_bytes=room - need.total_bytes,
        at_least=bool(need.not_known),
        close=measured_errors(model, changed.setup).span(need.total_bytes)[1] > room,
    )


def _option(name: str, value: object) -> str:
    """A parameter as a command line spells it, for the reader to copy."""
    option = f"--{name.replace('_', '-')}"
    return option if value is True else f"{option} {value}"


def _everything(model: Model, case: Case, kinds: dict[str, list[Change]]) -> Remedy | None:
    """All changes at their furthest, then each taken back as far as it goes, the greatest effort first."""
    levels = {kind: len(found) for kind, found in kinds.items()}

    def tried() -> Remedy | None:
        return _tried(model, case, tuple(kinds[kind][level - 1] for kind, level in levels.items() if level))

    best = tried()
    if best is None:
        return None
    for kind in sorted(kinds, key=lambda name: -kinds[name][0].effort):
        while levels[kind]:
            levels[kind] -= 1
            less = tried()
            if less is None:
                levels[kind] += 1
                break
            best = less
    return best
