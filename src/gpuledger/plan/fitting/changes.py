"""Which changes could make a model fit, from the least of each kind to the most?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import Gpu, load_gpus, proposed_gpus
from gpuledger.catalog.models import CountedShape, Model, TransformerShape, VitShape
from gpuledger.catalog.models.shapes import longest_sequence
from gpuledger.plan.memory.facts import capacity, get_precision
from gpuledger.plan.setup import Mode, Setup, serving_split, split_problem

LORA_RANK = 16
WIDEST_TENSOR = 8  # beyond a node's NVLink the all-reduces of every layer cost more than they save
DOUBLINGS = 6
SHARDED = {1: "optimizer", 2: "gradients too", 3: "weights too"}


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One kind of change: how much effort it is, and what it costs."""

    kind: str
    modes: tuple[Mode, ...]
    effort: float
    costs: str
    step: float = 0.0
    halved_to: int = 0
    words: str = ""


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
    """One level of one kind: what it is in words, and the parameters it sets (`gpu` or those of the setup)."""

    kind: str
    level: int
    effort: float
    words: str
    sets: Mapping[str, Any]
    costs: str

    def alter(self, case: Case) -> Case:
        """The case with the change made."""
        if "gpu" in self.sets:
            return replace(case, gpu=load_gpus()[self.sets["gpu"]])
        return replace(case, setup=replace(case.setup, **self.sets))


@cache
def kinds() -> tuple[Kind, ...]:
    """All kinds of change."""
    return load_toml(data_dir("gpuledger.plan", "data", "fit_remedies.toml"), _File).change


Levels = Iterator[tuple[str, dict[str, Any]]]


def changes(model: Model, case: Case) -> dict[str, list[Change]]:
    """By kind, the levels there are for this case, least first."""
    makers: dict[str, Callable[[Model, Case], Levels]] = {
        "recompute": _recompute, "zero": _zero, "optimizer": _optimizer, "tensor": _tensor, "adapters": _adapters,
        "cache": _cache, "weights": _weights, "gpu": _gpu, "count": _count,
        **{kind.kind: partial(_halved, kind) for kind in kinds() if kind.halved_to},
    }  # fmt: skip
    found: dict[str, list[Change]] = {}
    for kind in kinds():
        if case.setup.mode in kind.modes:
            for at, (words, sets) in enumerate(makers[kind.kind](model, case)):
                change = Change(kind.kind, at + 1, kind.effort + at * kind.step, words, sets, kind.costs)
                found.setdefault(kind.kind, []).append(change)
    return found


def _recompute(model: Model, case: Case) -> Levels:
    if not case.setup.recompute and isinstance(model.shape, TransformerShape | VitShape | CountedShape):
        yield "recompute activations", {"recompute": True}


def _zero(_model: Model, case: Case) -> Levels:
    for stage in range(case.setup.zero + 1, 4):
        yield f"ZeRO {stage}{' (FSDP)' if stage == 3 else ''}: shard the {SHARDED[stage]}", {"zero": stage}


def _optimizer(_model: Model, case: Case) -> Levels:
    if case.setup.optimizer == "adamw":
        yield "8-bit AdamW", {"optimizer": "adamw-8bit"}


def _halved(kind: Kind, model: Model, case: Case) -> Levels:
    """Half of a parameter, a quarter, ..., down to the least that makes sense."""
    if kind.kind in {"sequence", "context"} and not longest_sequence(model.shape):
        return
    for halving in range(1, DOUBLINGS + 1):
        n = getattr(case.setup, kind.kind) >> halving
        if n >= kind.halved_to:
            yield kind.words.format(n), {kind.kind: n}


def _tensor(model: Model, case: Case) -> Levels:
    setup = case.setup
    for t in (2, 4, WIDEST_TENSOR):
        divides = setup.count % (t * setup.pipeline) == 0
        if t > setup.tensor and divides and split_problem(model, t) is None:
            yield f"tensor parallel over {t}", {"tensor": t}


def _adapters(model: Model, case: Case) -> Levels:
    if not isinstance(model.shape, TransformerShape | VitShape) or case.setup.frozen_precision:
        return
    rank = case.setup.lora_rank or LORA_RANK
    if not case.setup.lora_rank:
        yield f"LoRA: train adapters of rank {rank} only", {"lora_rank": rank}
    yield "QLoRA: train adapters over 4-bit weights", {"lora_rank": rank, "frozen_precision": "nf4"}


def _cache(model: Model, case: Case) -> Levels:
    if isinstance(model.shape, TransformerShape) and get_precision(case.setup.cache_precision).bits > 8:
        yield "8-bit keys and values", {"cache_precision": "fp8"}


def _weights(_model: Model, case: Case) -> Levels:
    wide = get_precision(case.setup.precision).bits > 8
    eight = "fp8" if "fp8" in case.gpu.peak_tflops else "int8"
    if wide and eight in case.gpu.peak_tflops:
        yield f"weights in 8 bits ({eight})", {"precision": eight}
    if wide or case.setup.precision in ("fp8", "int8"):
        yield "weights in 4 bits (int4, groups of 128)", {"precision": "int4"}


def _gpu(_model: Model, case: Case) -> Levels:
    """Larger GPUs of the same maker that can do the precision, one per size; no card for a board with NVLink."""
    now, precision = capacity(case.gpu)[0], get_precision(case.setup.precision)
    larger: dict[int, Gpu] = {}
    for gpu in proposed_gpus():
        room = capacity(gpu)[0]
        lesser = gpu.form_factor == "PCIe" != case.gpu.form_factor
        if room > now and gpu.vendor == case.gpu.vendor and not lesser and precision.runs_on(gpu):
            larger.setdefault(room, gpu)
    for _, gpu in sorted(larger.items()):
        yield f"{gpu.name} instead of {case.gpu.name}", {"gpu": gpu.key}


def _count(model: Model, case: Case) -> Levels:
    for doubling in range(1, DOUBLINGS + 1):
        count = case.setup.count * 2**doubling
        if case.setup.mode == "train":
            yield f"{count} GPUs", {"count": count}
            continue
        tensor = serving_split(model, count) if case.setup.pipeline == 1 else case.setup.tensor
        if tensor > case.setup.tensor:
            yield f"{count} GPUs, each layer over {tensor} of them", {"count": count, "tensor": tensor}
