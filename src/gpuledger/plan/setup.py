"""How is the job run: which precision, which optimizer, split how, over how many GPUs?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model, TransformerShape, VitShape
from gpuledger.catalog.models.shapes import denoising, longest_sequence
from gpuledger.errors import InputError
from gpuledger.plan.memory.facts import get_optimizer, get_precision, get_scheme, precisions

Mode = Literal["train", "serve"]
Problems = Iterator[tuple[str, str]]  # what cannot be asked, and what can
MOST_GPUS = 1_000_000
# What a setup of one mode reads and one of the other does not.
TRAINING = ("zero", "optimizer", "scheme", "sequence", "micro_batch", "recompute", "attention", "kernels", "lora_rank",
            "frozen_precision", "sequence_parallel", "dropout", "accumulate", "trace")  # fmt: skip
SERVING = ("context", "batch", "cache_precision", "cache", "block_tokens", "memory_share", "denoising_steps",
           "guidance")  # fmt: skip
DENOISING = ("image", "denoising_steps", "guidance")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One way to run a model. Training reads sequence and micro_batch, serving context, batch and cache_precision.

    batch is the sequences one copy of the model holds at a time; count = tensor x pipeline x data. For a denoiser
    sequence and context are the tokens of a prompt, and batch is images.
    """

    mode: Mode
    count: int = 1
    precision: str = "bf16"
    tensor: int = 1
    pipeline: int = 1
    sequence_parallel: bool = False
    image: int = 0  # pixels per side of the images a denoiser makes; 0: those it was made for
    # training
    zero: int = 0
    scheme: str = "mixed"
    optimizer: str = "adamw"
    sequence: int = 4096
    micro_batch: int = 1
    recompute: bool = False
    attention: Literal["flash", "full"] = "flash"
    kernels: Literal["eager", "fused"] = "eager"
    dropout: bool = False
    accumulate: bool = True  # gradients of earlier micro-batches are there while one runs
    trace: Literal["auto", "always", "never"] = "auto"  # whether a configuration is traced instead of formulas
    lora_rank: int = 0
    frozen_precision: str = ""  # of the frozen weights under LoRA; QLoRA is nf4
    # serving
    context: int = 4096
    batch: int = 1
    cache_precision: str = "fp16"
    cache: Literal["contiguous", "paged"] = "contiguous"
    block_tokens: int = 16  # of a paged cache
    memory_share: float = 0.9  # of the card, that a server with a paged cache takes
    denoising_steps: int = 0  # per image; 0: the usual number for the model
    guidance: bool = True  # two passes per step, with and without the prompt, where the model is run so

    @property
    def data(self) -> int:
        """How many copies of the model there are, sharded or not."""
        return self.count // (self.tensor * self.pipeline)

    def as_json(self) -> dict[str, object]:
        """What applies to this mode, and the copies that follow from it."""
        leave = (*(SERVING if self.mode == "train" else TRAINING), *(() if self.denoising_steps else DENOISING))
        return {name: value for name, value in vars(self).items() if name not in leave} | {"data": self.data}

    @property
    def kept_by(self) -> str:
        """Which table of kept tensors applies."""
        return "autocast" if self.scheme == "autocast" else self.kernels


def serving_split(model: Model, count: int) -> int:
    """The widest tensor parallel group that divides both the GPUs and the model; the rest are more copies."""
    fitting = [t for t in range(1, count + 1) if count % t == 0 and split_problem(model, t) is None]
    return max(fitting, default=1)


def with_defaults(setup: Setup, model: Model, *, tensor: int | None) -> Setup:
    """The setup with the default split filled in: plain data parallel to train, tensor parallel to serve."""
    if tensor is not None:
        return replace(setup, tensor=tensor)
    if setup.mode == "serve" and setup.pipeline == 1 and 0 < setup.count <= MOST_GPUS:
        return replace(setup, tensor=serving_split(model, setup.count))
    return setup


def check(setup: Setup, model: Model, gpu: Gpu) -> None:
    """Refuse what cannot be asked, naming the parameter, the value and what is allowed."""
    for problem, hint in chain(_counts(setup), _choices(setup, model), _precisions(setup, gpu), _splits(setup, model)):
        raise InputError(problem, hint=hint)


def _splits(setup: Setup, model: Model) -> Problems:
    parts, pipeline = setup.tensor * setup.pipeline, setup.pipeline
    if setup.count % parts:
        problem = f"count={setup.count} is not a multiple of tensor={setup.tensor} x pipeline={pipeline}"
        yield problem, f"give a multiple of {parts}, or another split"
    if unsplit := split_problem(model, setup.tensor):
        ways = [t for t in range(1, min(setup.count, 64) + 1) if setup.count % t == 0 and not split_problem(model, t)]
        yield unsplit, f"with {setup.count} GPUs these divide: {', '.join(map(str, ways))}"
    layers = getattr(model.shape, "layers", None)
    if pipeline > 1 and layers is None:
        yield f"pipeline={pipeline}: {model.name} is not a stack of equal layers", "leave it at 1"
    if layers is not None and pipeline > layers:
        yield f"pipeline={pipeline} but {model.name} has {layers} layers", f"at most {layers}"
    longest = longest_sequence(model.shape)
    option = "sequence" if setup.mode == "train" else "context"
    if longest is not None and (asked := getattr(setup, option)) > longest:
        problem = f"{option}={asked} but {model.name} reads at most {longest} tokens"
        yield problem, f"give {longest} or less, or a config with a longer context"


def split_problem(model: Model, tensor: int) -> str | None:
    """Why this model cannot be split into this number of tensor parallel parts, if it cannot."""
    return next(_split_problems(model, tensor), None) if tensor > 1 else None


def _split_problems(model: Model, tensor: int) -> Iterator[str]:
    shape, name = model.shape, model.name
    if not isinstance(shape, TransformerShape | VitShape):
        yield f"tensor={tensor}: {name} has no attention heads to split"
        return
    if shape.heads % tensor:
        yield f"tensor={tensor} does not divide the {shape.heads} heads of {name}"
    if shape.mlp_hidden % tensor:
        yield f"tensor={tensor} does not divide the MLP width {shape.mlp_hidden} of {name}"
    if isinstance(shape, TransformerShape) and shape.kv_heads % tensor and tensor % shape.kv_heads:
        yield f"tensor={tensor} neither divides the {shape.kv_heads} key-value heads of {name} nor repeats them"
    if isinstance(shape, TransformerShape) and shape.experts % tensor and shape.expert_hidden % tensor:
        yield f"tensor={tensor} divides neither the {shape.experts} experts of {name} nor their width"


def _counts(setup: Setup) -> Problems:
    for option in ("count", "tensor", "pipeline", "sequence", "micro_batch", "context", "batch", "block_tokens"):
        if getattr(setup, option) < 1:
            yield f"{option}={getattr(setup, option)} is below 1", "give a whole number from 1 up"
    for option in ("image", "denoising_steps"):
        if getattr(setup, option) < 0:
            yield f"{option}={getattr(setup, option)} is below 0", "give a whole number, or leave it out"
    if setup.count > MOST_GPUS:
        yield f"count={setup.count} is above {MOST_GPUS:,}", "ask for fewer GPUs"
    if not 0 < setup.memory_share <= 1:
        yield f"memory_share={setup.memory_share} is not a share", "give a number above 0, up to 1; vLLM takes 0.9"
    if setup.zero not in range(4):
        yield f"zero={setup.zero} is not a stage", "0 none, 1 optimizer, 2 gradients, 3 weights (FSDP)"
    if setup.lora_rank < 0:
        yield f"lora_rank={setup.lora_rank} is below 0", "give the rank, such as 16, or 0 for none"


def _choices(setup: Setup, model: Model) -> Problems:
    get_scheme(setup.scheme)
    get_optimizer(setup.optimizer)
    if (frozen := setup.frozen_precision) and not setup.lora_rank:
        yield f"frozen_precision={frozen} without lora_rank: quantized weights cannot be trained", "add lora_rank=16"
    if (made := denoising(model.shape)) is None:
        asked = next((name for name in DENOISING if getattr(setup, name) != getattr(Setup(mode="serve"), name)), None)
        if asked:
            yield f"{asked} is for models that make images, and {model.name} is not one", f"leave {asked} out"
    elif setup.image % made.grain:
        near = -(-setup.image // made.grain) * made.grain
        yield (
            f"image={setup.image} is not a multiple of {made.grain} pixels, as {model.name} reads them",
            f"give {near}",
        )
    elif setup.mode == "serve" and setup.cache == "paged":
        yield f"cache=paged: {model.name} makes images of {made.pixels[0]} pixels and caches nothing", "leave cache out"
    if setup.lora_rank and not isinstance(model.shape, TransformerShape | VitShape):
        yield f"lora_rank={setup.lora_rank}: {model.name} has no matrices to adapt", "leave lora_rank out"


def _precisions(setup: Setup, gpu: Gpu) -> Problems:
    name, every = setup.precision, precisions().values()
    precision = get_precision(name)
    if not precision.runs_on(gpu):
        problem = f"precision={name}: {gpu.name} ({gpu.architecture}) has no {precision.needs} units in the catalog"
        yield problem, f"{gpu.name} can do: {', '.join(p.name for p in every if p.runs_on(gpu))}"
    if setup.mode == "train" and not precision.train_as:
        able = ", ".join(p.name for p in every if p.train_as)
        hint = f"train in one of {able}; for QLoRA: lora_rank=16 frozen_precision=nf4"
        yield f"precision={name} is for stored weights, not for training", hint
    # A cache or frozen weights are only stored so: any GPU can widen them.
    if setup.mode == "train" and setup.frozen_precision:
        get_precision(setup.frozen_precision)
    if setup.mode == "serve" and not get_precision(setup.cache_precision).cache:
        able = ", ".join(p.name for p in every if p.cache)
        yield f"cache_precision={setup.cache_precision} is not a way to keep keys and values", f"use one of {able}"
