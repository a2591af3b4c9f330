"""Which changes could make a model fit, from the least of each kind to the most?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import Gpu, load_gpus
from gpuledger.catalog.models import Model, TransformerShape, VitShape
from gpuledger.plan.memory.facts import capacity, get_precision
from gpuledger.plan.setup import Mode, Setup, serving_split, split_problem

LORA_RANK = 16
WIDEST_TENSOR = 8  # beyond a node's NVLink the all-reduces of every layer cost more than they save
DOUBLINGS = 6
SHORTEST = 256


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One kind of change: how much of one it is, and what is paid for it."""

    kind: str
    modes: tuple[Mode, ...]
    effort: float
    costs: str
    step: float = 0.0


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    version: Literal[1]
    change: tuple[Kind, ...]


@dataclass(frozen=True)
class Case:
    """A setup on a GPU: what is changed."""

    setup: Setup
    gpu: Gpu


@dataclass(frozen=True)
class Change:
    """One level of one kind: the words for it, the options that ask for it, and how it alters a case."""

    kind: str
    level: int
    effort: float
    words: str
    options: str
    costs: str
    alter: Callable[[Case], Case]


@cache
def kinds() -> tuple[Kind, ...]:
    """All kinds of change."""
    return load_toml(data_dir("gpuledger.plan", "data", "fit_remedies.toml"), _File).change


Found = list[tuple[str, str, Callable[[Case], Case]]]


def changes(model: Model, case: Case) -> dict[str, list[Change]]:
    """By kind, the levels there are for this case, least first."""
    makers: dict[str, Callable[[Model, Case], Found]] = {
        "recompute": _recompute, "zero": _zero, "optimizer": _optimizer, "micro_batch": _micro_batch,
        "tensor": _tensor, "sequence": _sequence, "adapters": _adapters, "cache": _cache, "weights": _weights,
        "batch": _batch, "context": _context, "gpu": _gpu, "count": _count,
    }  # fmt: skip
    found: dict[str, list[Change]] = {}
    for kind in kinds():
        if case.setup.mode in kind.modes:
            levels = makers[kind.kind](model, case)
            found[kind.kind] = [
                Change(kind.kind, at + 1, kind.effort + at * kind.step, words, options, kind.costs, alter)
                for at, (words, options, alter) in enumerate(levels)
            ]
    return {kind: levels for kind, levels in found.items() if levels}


def _set(**fields: object) -> Callable[[Case], Case]:
    return lambda case: replace(case, setup=replace(case.setup, **fields))  # type: ignore[arg-type]


def _recompute(model: Model, case: Case) -> Found:
    if case.setup.recompute or not isinstance(model.shape, TransformerShape | VitShape):
        return []
    return [("recompute activations", "--recompute", _set(recompute=True))]


def _zero(_model: Model, case: Case) -> Found:
    words = {
        1: "ZeRO 1: shard the optimizer", 2: "ZeRO 2: shard the gradients too",
        3: "ZeRO 3 (FSDP): shard the weights too",
    }  # fmt: skip
    return [(words[z], f"--zero {z}", _set(zero=z)) for z in range(case.setup.zero + 1, 4)]


def _optimizer(_model: Model, case: Case) -> Found:
    if case.setup.optimizer != "adamw":
        return []
    return [("8-bit AdamW", "--optimizer adamw-8bit", _set(optimizer="adamw-8bit"))]


def _halvings(value: int, least: int) -> list[int]:
    found: list[int] = []
    while value // 2 >= least and len(found) < DOUBLINGS:
        value //= 2
        found.append(value)
    return found


def _micro_batch(_model: Model, case: Case) -> Found:
    sizes = _halvings(case.setup.micro_batch, 1)
    return [(f"micro-batch {n}, accumulated", f"--micro-batch {n}", _set(micro_batch=n)) for n in sizes]


def _sequence(model: Model, case: Case) -> Found:
    if not isinstance(model.shape, TransformerShape):
        return []
    lengths = _halvings(case.setup.sequence, SHORTEST)
    return [(f"sequences of {n} tokens", f"--sequence {n}", _set(sequence=n)) for n in lengths]


def _tensor(model: Model, case: Case) -> Found:
    setup = case.setup
    ways = [t for t in (2, 4, WIDEST_TENSOR) if t > setup.tensor and setup.count % (t * setup.pipeline) == 0]
    fitting = [t for t in ways if split_problem(model, t) is None]
    return [(f"tensor parallel over {t}", f"--tensor {t}", _set(tensor=t)) for t in fitting]


def _adapters(model: Model, case: Case) -> Found:
    if not isinstance(model.shape, TransformerShape | VitShape) or case.setup.frozen_precision:
        return []
    rank = case.setup.lora_rank or LORA_RANK
    plain = (f"LoRA: train adapters of rank {rank} only", f"--lora-rank {rank}", _set(lora_rank=rank))
    options = f"--lora-rank {rank} --frozen-precision nf4"
    quantised = ("QLoRA: train adapters over 4-bit weights", options, _set(lora_rank=rank, frozen_precision="nf4"))
    return [quantised] if case.setup.lora_rank else [plain, quantised]


def _cache(model: Model, case: Case) -> Found:
    if not isinstance(model.shape, TransformerShape) or get_precision(case.setup.cache_precision).bits <= 8:
        return []
    return [("8-bit keys and values", "--cache-precision fp8", _set(cache_precision="fp8"))]


def _weights(_model: Model, case: Case) -> Found:
    now, found = get_precision(case.setup.precision).bits, []
    eight = "fp8" if "fp8" in case.gpu.peak_tflops else "int8"
    if now > 8 and eight in case.gpu.peak_tflops:
        found.append((f"weights in 8 bits ({eight})", f"--precision {eight}", _set(precision=eight)))
    if now > 8 or case.setup.precision in ("fp8", "int8"):
        found.append(("weights in 4 bits (int4, groups of 128)", "--precision int4", _set(precision="int4")))
    return found


def _batch(_model: Model, case: Case) -> Found:
    return [(f"at most {n} sequences at a time", f"--batch {n}", _set(batch=n)) for n in _halvings(case.setup.batch, 1)]


def _context(model: Model, case: Case) -> Found:
    if not isinstance(model.shape, TransformerShape):
        return []
    lengths = _halvings(case.setup.context, SHORTEST)
    return [(f"at most {n} tokens of context", f"--context {n}", _set(context=n)) for n in lengths]


def _gpu(_model: Model, case: Case) -> Found:
    """Larger GPUs of the same maker that can do the precision, one for each size; no card for a board with NVLink."""
    now, needs = capacity(case.gpu)[0], get_precision(case.setup.precision).needs
    larger: dict[int, Gpu] = {}
    for gpu in load_gpus().values():
        room = capacity(gpu)[0]
        lesser = gpu.form_factor == "PCIe" != case.gpu.form_factor
        if room > now and gpu.vendor == case.gpu.vendor and not lesser and (not needs or needs in gpu.peak_tflops):
            larger.setdefault(room, gpu)

    def take(gpu: Gpu) -> Callable[[Case], Case]:
        return lambda before: replace(before, gpu=gpu)

    return [
        (f"{gpu.name} instead of {case.gpu.name}", f"--gpu {gpu.key}", take(gpu)) for _, gpu in sorted(larger.items())
    ]


def _count(model: Model, case: Case) -> Found:
    found: Found = []
    for doubling in range(1, DOUBLINGS + 1):
        count = case.setup.count * 2**doubling
        if case.setup.mode == "train":
            found.append((f"{count} GPUs", f"--count {count}", _set(count=count)))
            continue
        tensor = serving_split(model, count) if case.setup.pipeline == 1 else case.setup.tensor
        if tensor > case.setup.tensor:
            words = f"{count} GPUs, each layer over {tensor} of them"
            found.append((words, f"--count {count} --tensor {tensor}", _set(count=count, tensor=tensor)))
    return found
