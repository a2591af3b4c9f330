"""Which facts does an answer about memory rest on: bits, optimizers, kept tensors, overheads?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

import msgspec

from gpuledger.catalog.files import Fact, data_dir, load_toml
from gpuledger.catalog.gpus import Gpu
from gpuledger.errors import UnknownName
from gpuledger.units import GIB, Unknown

Above = Annotated[float, msgspec.Meta(gt=0)]
AtLeastZero = Annotated[float, msgspec.Meta(ge=0)]
Held = Literal["work", "fp32", "none"]
ErrorsOf = Literal[
    "train", "train_autocast", "traced", "traced_recompute", "unchecked", "serve", "denoise", "denoise_serve",
    "pixels_serve",
]  # fmt: skip
FP32_BITS = 32.0


class _Sourced(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: str
    as_of: str


class Precision(_Sourced, frozen=True, kw_only=True):
    """How a number is stored: `needs` names the peak a GPU must have, `train_as` what training holds weights in.

    `experts_only`: where a model has experts, only these are stored so.
    """

    name: str
    bits: Above
    needs: str = ""
    train_as: str = ""
    train_copy_bits: AtLeastZero = 0.0
    cache: bool = False
    experts_only: bool = False

    def runs_on(self, gpu: Gpu) -> bool:
        """Whether the GPU has units for it, or needs none; without a 16-bit peak its units are unknown, so it may."""
        unknown = isinstance(gpu.peak(gpu.reference_precision()), Unknown)
        return not self.needs or unknown or self.needs in gpu.peak_tflops


class Scheme(_Sourced, frozen=True, kw_only=True):
    """In what a training run holds weights, gradients, master copy, states and casts."""

    name: str
    words: str
    weights: Held
    gradients: Held
    states: Held
    master: Held = "none"
    copies: Held = "none"


class Optimizer(_Sourced, frozen=True, kw_only=True):
    """What an optimizer keeps for each parameter, in addition to the scheme's master copy."""

    name: str
    words: str
    states: int
    state_bits: AtLeastZero | None = None
    factored: bool = False


class Kept(_Sourced, frozen=True, kw_only=True):
    """What one layer keeps for its backward pass, in numbers per token and unit."""

    words: str
    norm_fp32: AtLeastZero
    norm_work: AtLeastZero
    norm_frozen_fp32: AtLeastZero
    norm_frozen_work: AtLeastZero
    gated_work: AtLeastZero
    plain_work: AtLeastZero
    score_fp32: AtLeastZero
    score_work: AtLeastZero
    logit_fp32: AtLeastZero
    logit_work: AtLeastZero
    transient_work: AtLeastZero


class Visible(_Sourced, frozen=True, kw_only=True):
    """What a program sees of one GPU's memory."""

    gpu: str
    gib: Above
    verified: bool = True


class Measured(_Sourced, frozen=True, kw_only=True):
    """Predicted over taken memory of measured runs; `gaps_bytes`: what the allocator's gaps may take on top of that.

    `words` has the other figures in braces. All but `p10` and `p90`, the range that is printed, are computed from the
    runs: benchmarks/plan_ranges.py.
    """

    words: str
    rows: int
    models: int
    least: Above
    most: Above
    p10: Above
    p50: Above
    p90: Above
    gaps_bytes: int = 0

    @property
    def text(self) -> str:
        """How far off such predictions were."""
        return self.words.format(rows=self.rows, models=self.models, least=f"{self.least:.2f}", most=f"{self.most:.2f}")

    def span(self, predicted_bytes: int) -> tuple[int, int]:
        """The range of what may be taken for a predicted amount; the prediction itself is always within."""
        return int(predicted_bytes / max(self.p90, 1.0)), int(predicted_bytes / min(self.p10, 1.0)) + self.gaps_bytes


class Errors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Errors of training and of serving, measured separately: by checked formula, traced (with and without
    recomputation), or by a formula that was not checked for the family; and those of denoisers. `pixels_serve`: where
    the way from latents to pixels holds the most."""

    train: Measured
    train_autocast: Measured
    traced: Measured
    traced_recompute: Measured
    unchecked: Measured
    serve: Measured
    denoise: Measured
    denoise_serve: Measured
    pixels_serve: Measured


class Overheads(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Memory gone before the first tensor."""

    version: Literal[1]
    context_bytes: Fact
    workspace_bytes: Fact
    collective_bytes: Fact
    fragmentation_ratio: Fact
    prefill_chunk_tokens: Fact
    error: Errors
    visible: tuple[Visible, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    version: Literal[1]
    precision: tuple[Precision, ...] = ()
    scheme: tuple[Scheme, ...] = ()
    optimizer: tuple[Optimizer, ...] = ()
    kept: dict[str, Kept] = {}


T = TypeVar("T")


@cache
def _load(name: str, kind: type[T]) -> T:
    return load_toml(data_dir("gpuledger.plan", "data", name), kind)


@cache
def precisions() -> MappingProxyType[str, Precision]:
    """All precisions by name."""
    return MappingProxyType({p.name: p for p in _load("precisions.toml", _File).precision})


def kept(kernels: str) -> Kept:
    """What a layer keeps with these kernels: eager, fused or autocast."""
    return _load("activations.toml", _File).kept[kernels]


def overheads() -> Overheads:
    """Memory gone before the first tensor."""
    return _load("overheads.toml", Overheads)


def get_precision(name: str) -> Precision:
    """The precision of this name, or an error with the nearest ones."""
    return _named("precision", name, precisions())


def get_scheme(name: str) -> Scheme:
    """The scheme of this name, or an error with the nearest ones."""
    return _named("scheme", name, {s.name: s for s in _load("precisions.toml", _File).scheme})


def get_optimizer(name: str) -> Optimizer:
    """The optimizer of this name, or an error with the nearest ones."""
    return _named("optimizer", name, {o.name: o for o in _load("optimizers.toml", _File).optimizer})


def _named(kind: str, name: str, things: Mapping[str, T]) -> T:
    if name not in things:
        raise UnknownName(kind, name, things)
    return things[name]


def capacity(gpu: Gpu) -> tuple[int, str]:
    """Bytes a program sees of this GPU's memory, and where the figure comes from."""
    for seen in overheads().visible:
        if seen.gpu == gpu.key:
            return int(seen.gib * GIB), f"{seen.gib:g} GiB visible to a program: {seen.source} ({seen.as_of})"
    labeled, words = gpu.stated("memory_bytes"), f"as labeled; what a program sees of {gpu.name} is not in the catalog"
    of = f" ({gpu.memory_bytes.source}, {gpu.memory_bytes.as_of})" if gpu.memory_bytes else ""
    return int(labeled), f"{labeled / 1e9:g} GB {words}{of}"
