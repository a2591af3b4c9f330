"""What does one training step of a configuration keep, hold, move and compute?"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from gpuledger.errors import InputError
from gpuledger.training.blueprint import denoisers, modules
from gpuledger.training.blueprint.modules import Built
from gpuledger.training.runtime import first_line

# Lengths a module that loops over its sequence is traced at; longer ones follow the parabola through them.
SHORT = (16, 32, 64)
REMEMBERED = 512


@dataclass(frozen=True)
class Asked:
    """One way to run a step: fp32 weights with products in 16 bits (autocast), or all of it in one precision."""

    micro_batch: int
    sequence: int
    fp32: bool = False
    autocast: bool = False
    full_attention: bool = False
    recompute: bool = False
    accumulate: bool = True
    image: int = 0  # pixels per side, for a denoiser; 0: the size of its configuration


@dataclass(frozen=True)
class Traced:
    """A step on one GPU: bytes beyond weights, kept gradients and optimizer, and the work of forward and backward.

    Without accumulation the gradients made on the way are within `peak_bytes`. `extended`: from shorter sequences.
    """

    kept_bytes: int
    peak_bytes: int
    kernels: int
    moved_bytes: int
    depthwise_bytes: int
    product_flop: int
    product_bytes: int
    attention_flop: int
    extended: bool = False

    @property
    def working_bytes(self) -> int:
        """What is held for a moment in addition to what is kept."""
        return max(0, self.peak_bytes - self.kept_bytes)


@dataclass(frozen=True)
class Weights:
    """The parameters of a module: in matrices, and the rest; the largest repeated block; rows plus columns.

    A denoiser has how it is run, the numbers it holds and does not train (a table of positions), and the pixels of the
    images it was made for.
    """

    name: str
    matrices: int
    rest: int
    layers: int
    block: int
    edges: int
    tensors: int
    text: bool
    sound_s: int
    frames: int
    longest: int
    built_by: str
    buffers: int = 0
    denoises: denoisers.Kind | None = None
    pixels: tuple[int, int] = (0, 0)


@lru_cache(maxsize=REMEMBERED)
def weights(config: str) -> Weights:
    """What a configuration (JSON) has for parameters, counted on the meta device."""
    built = module_of(config, False, False)
    import torch

    matrices = edges = 0
    table = {id(part.weight) for part in built.module.modules() if isinstance(part, torch.nn.Embedding)}
    every = list(built.module.parameters())
    for one in every:
        if one.dim() > 1 and id(one) not in table:
            matrices += one.numel()
        edges += sum(one.shape[-2:]) * math.prod(one.shape[:-2]) if one.dim() > 1 else one.numel()
    named = set(getattr(built.module, "_no_split_modules", None) or ())
    blocks = [_size(part) for part in built.module.modules() if type(part).__name__ in named]
    if not blocks:
        stacks = [part for part in built.module.modules() if isinstance(part, torch.nn.ModuleList)]
        blocks = [_size(block) for stack in stacks for block in stack]
    largest = max(blocks, default=0)
    return Weights(
        name=built.name,
        matrices=matrices,
        rest=sum(p.numel() for p in every) - matrices,
        layers=sum(size * 2 > largest for size in blocks),
        block=largest,
        edges=edges,
        tensors=len(every),
        text=built.text,
        sound_s=built.sound_s,
        frames=built.frames,
        longest=_longest(built),
        built_by=_library(built),
        buffers=sum(one.numel() for one in built.module.buffers()) if built.denoises else 0,
        denoises=built.denoises,
        pixels=_pixels(built),
    )


def _library(built: Built) -> str:
    made = denoisers.need_diffusers() if built.denoises else modules.need_transformers()
    return f"{made.__name__} {made.__version__}"


def _pixels(built: Built) -> tuple[int, int]:
    if built.denoises is None:
        return (0, 0)
    high, wide = denoisers.sides(built.module.config, built.denoises, 0)
    return high * built.denoises.pixels, wide * built.denoises.pixels


def _size(part: Any) -> int:
    return sum(one.numel() for one in part.parameters())


def _longest(built: Built) -> int:
    """The longest sequence the module can read; 0 where nothing limits it."""
    if built.denoises:
        return 0
    text = built.module.config.get_text_config()
    names = ("max_position_embeddings", "max_target_positions", "n_positions", "max_sequence_length", "max_seq_len")
    found = next((int(getattr(text, name)) for name in names if isinstance(getattr(text, name, None), int)), 0)
    return max(found, 0)  # some write -1 where nothing limits it


@lru_cache(maxsize=REMEMBERED)
def traced(config: str, asked: Asked) -> Traced:
    """One step of a configuration (JSON) on the meta device."""
    from gpuledger.training.blueprint.watch import TooLong

    built = module_of(config, asked.fp32 or asked.autocast, asked.full_attention)
    if asked.recompute:
        _checkpointed(built, on=True)
    try:
        return _run(built, asked, asked.sequence)
    except TooLong:
        return _extended(built, asked)
    except InputError:
        raise
    except Exception as error:
        problem = f"{built.name} could not run one step on the meta device: {first_line(error)}"
        hint = "its control flow may depend on values, or it reads more than usual; measure it on a GPU instead"
        raise InputError(problem, hint=hint) from error
    finally:
        if asked.recompute:
            _checkpointed(built, on=False)


@lru_cache(maxsize=4)
def module_of(config: str, fp32: bool, full_attention: bool) -> Built:
    """The module a configuration (JSON) describes, remembered."""
    raw = json.loads(config)
    maker = denoisers if denoisers.CLASS in raw else modules
    return maker.build(raw, fp32=fp32, full_attention=full_attention)


def batch(built: Built, rows: int, sequence: int, image: int = 0) -> dict[str, Any]:
    """One micro-batch as the module reads it; `sequence` is the length of a denoiser's prompts."""
    if built.denoises:
        return denoisers.inputs(built, rows, sequence, image)
    return modules.inputs(built, rows, sequence)


def _checkpointed(built: Built, *, on: bool) -> None:
    if not on:
        off = "disable_gradient_checkpointing" if built.denoises else "gradient_checkpointing_disable"
        getattr(built.module, off)()
        return
    able = "_supports_gradient_checkpointing" if built.denoises else "supports_gradient_checkpointing"
    if not getattr(built.module, able, False):
        raise InputError(f"{built.name} has no gradient checkpointing", hint="leave recompute out")
    from torch.utils.checkpoint import checkpoint

    from gpuledger.training.blueprint.kernels import cast_again

    how = {"use_reentrant": False, "context_fn": cast_again}
    if built.denoises:
        built.module.enable_gradient_checkpointing(lambda part, *given: checkpoint(part.__call__, *given, **how))
        return
    built.module.gradient_checkpointing_enable(gradient_checkpointing_kwargs=how)


def _run(built: Built, asked: Asked, sequence: int) -> Traced:
    import torch

    from gpuledger.training.blueprint.kernels import as_on_gpu
    from gpuledger.training.blueprint.watch import Watch

    every = [one for one in built.module.parameters() if one.requires_grad]
    for one in every:
        one.grad = torch.empty_like(one) if asked.accumulate else None
    given = batch(built, asked.micro_batch, sequence, asked.image)
    mine = (*built.module.parameters(), *built.module.buffers(), *(p.grad for p in every if p.grad is not None))
    watch = Watch(mine)
    watch.hold(given.values())
    with as_on_gpu(autocast=asked.autocast) as attention, watch:
        loss = _loss(built.module(**given), denoises=built.denoises is not None)
        kept = watch.now
        attended = attention.forward_flop
        loss.backward()
        del loss
    for one in every:
        one.grad = None
    again = attention.forward_flop - attended
    return Traced(
        kept_bytes=kept,
        peak_bytes=watch.peak,
        kernels=watch.kernels,
        moved_bytes=watch.moved_bytes,
        depthwise_bytes=watch.depthwise_bytes,
        product_flop=watch.flop,
        product_bytes=sum(moved for _, moved in watch.product_flop_bytes),
        attention_flop=3 * attended + again,  # backward makes two products for each one
    )


def _loss(out: Any, *, denoises: bool) -> Any:
    loss = getattr(out, "loss", None)
    if loss is None:
        loss = next(value for value in out.values() if hasattr(value, "mean"))
    if denoises:  # the mean square of what is left of the noise
        import torch

        return torch.nn.functional.mse_loss(loss.float(), torch.zeros_like(loss, dtype=torch.float32))
    return loss.float().mean()


def _extended(built: Built, asked: Asked) -> Traced:
    """From shorter sequences: every figure is a polynomial of second degree in the length."""
    runs = [_run(built, asked, length) for length in SHORT]

    def at(name: str) -> int:
        (x1, x2, x3), (y1, y2, y3), x = SHORT, (getattr(run, name) for run in runs), asked.sequence
        first = y1 * (x - x2) * (x - x3) / ((x1 - x2) * (x1 - x3))
        second = y2 * (x - x1) * (x - x3) / ((x2 - x1) * (x2 - x3))
        return round(first + second + y3 * (x - x1) * (x - x2) / ((x3 - x1) * (x3 - x2)))

    names = (field.name for field in fields(Traced) if field.name != "extended")
    return Traced(**{name: at(name) for name in names}, extended=True)
