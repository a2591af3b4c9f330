"""Will this model run on these GPUs, what takes the memory, and what is the least change that makes it fit?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import DiffusionShape, Model, TransformerShape
from gpuledger.plan.fit.search import Remedy, search
from gpuledger.plan.memory.facts import capacity, get_optimizer, get_precision, get_scheme, kept, overheads
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup, check


@dataclass(frozen=True)
class Fit:
    """The answer: `fits` with `at_least` set means that what is known fits; a part that is not known is named."""

    model: str
    params_total: int
    gpu: str
    setup: Setup
    fits: bool
    at_least: bool
    close: bool  # the card lies within the error of what was measured
    low_bytes: int
    high_bytes: int
    per_gpu_bytes: dict[str, int]
    of_capacity_pct: dict[str, float]
    total_bytes: int
    capacity_bytes: int
    free_bytes: int  # below zero: what is missing
    capacity_from: str
    not_known: dict[str, str]
    assumptions: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    nowhere: str  # why there is no remedy, where it does not fit and there is none


def fit(model: Model, gpu: Gpu, setup: Setup) -> Fit:
    """Check the question, count the memory, and look for remedies where it does not fit."""
    check(setup, model, gpu)
    need = memory(model, setup)
    room, room_from = capacity(gpu)
    fits = need.total_bytes <= room
    low, high = overheads().error.of(setup.mode).span(need.total_bytes)
    remedies, nowhere = ((), "") if fits else search(model, gpu, setup)
    return Fit(
        model=model.name,
        params_total=model.params_total,
        gpu=gpu.key,
        setup=setup,
        fits=fits,
        at_least=bool(need.not_known),
        close=low <= room < high,
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
    )


def assumptions(model: Model, setup: Setup) -> list[str]:
    """Everything the answer takes for granted, given or by default."""
    said = _training(model, setup) if setup.mode == "train" else _serving(model, setup)
    if isinstance(model.shape, TransformerShape) and model.shape.experts:
        said.append(f"all {model.params_total / 1e9:.1f} B parameters rest in memory; experts are evenly loaded")
    if model.differs:
        said.append(f"{model.name}: {model.differs}")
    facts = overheads()
    fixed = f"{facts.context_bytes.value / 1e9:.2f} GB of CUDA context"
    if setup.count > 1:
        fixed += f" and {facts.collective_bytes.value / 1e9:.2f} GB of collective buffers"
    slack = facts.fragmentation_ratio.value * 100
    return [
        *said,
        f"overhead: {fixed}, and {slack:g} % of what comes and goes for the allocator's gaps",
        f"error: {facts.error.of(setup.mode).words}",
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
    said = [
        f"{split}, {copies}" if split else (f"plain {copies}" if setup.data > 1 and not setup.zero else copies),
        f"{setup.precision}, {scheme.name}: {scheme.words}" if narrow else f"{setup.precision}: all of it held in fp32",
        optimizer.words,
    ]
    if setup.lora_rank:
        base = f"over frozen {setup.frozen_precision or setup.precision} weights"
        said.append(f"LoRA of rank {setup.lora_rank} on attention and dense MLPs, {base}")
    if isinstance(model.shape, TransformerShape):
        said.append(f"sequence {setup.sequence}, micro-batch {setup.micro_batch}")
    else:
        said.append(f"micro-batch {setup.micro_batch}")
    if isinstance(model.shape, DiffusionShape):
        said.append("the denoiser is trained; encoders and decoder stay frozen in memory")
    said.append("recomputation: only each layer's input is kept" if setup.recompute else "no recomputation")
    attention = "flash attention" if setup.attention == "flash" else "attention keeps its whole score matrix"
    said.append(f"{attention}; kernels: {kept(setup.kept_by).words}")
    said.append("gradients live through the whole step (accumulation; buckets are views of them)")
    return said


def _serving(model: Model, setup: Setup) -> list[str]:
    copies = f"{setup.data} copies of the model, each on its own GPUs" if setup.data > 1 else "one copy of the model"
    split = _split(setup)
    said = [f"{split}; {copies}" if split else copies]
    moe = isinstance(model.shape, TransformerShape) and model.shape.experts > 0
    attention = "attention, " if moe and get_precision(setup.precision).experts_only else ""
    wide = f"{attention}embeddings, norms and routers"
    rest = f"; {wide} in 16 bits" if setup.precision not in ("fp32", "tf32", "bf16", "fp16") else ""
    said.append(f"{setup.precision} weights{rest}")
    if isinstance(model.shape, TransformerShape):
        said.append(
            f"context {setup.context}, batch {setup.batch} per copy, {setup.cache_precision} cache, all of it full"
        )
        said.append(f"prompts are read in pieces of {int(overheads().prefill_chunk_tokens.value)} tokens")
    else:
        said.append(f"batch {setup.batch} per copy")
    return said
