"""Which options say how a model is run on GPUs?"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpuledger.cli.options import PATH, Command
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.catalog.gpus import Gpu
    from gpuledger.catalog.models import Model
    from gpuledger.plan.setup import Setup

    Asked = tuple[Model, Gpu, Setup]


def run_options(command: Command) -> Command:
    """Model, GPUs and how it is run, given to the command as `asked`."""

    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        rest = {name: given.pop(name) for name in list(given) if name in own}
        return command(asked=_asked(**given), **rest)

    own = {param.name for param in getattr(command, "__click_params__", ()) if param.name}
    for option in reversed(_OPTIONS):
        inner = option(inner)
    return inner


_OPTIONS = (
    click.argument("what", required=False, metavar="[MODEL|FILE]"),
    click.option("--model", "model_name", metavar="NAME", help="A model from the catalog, such as llama-3.1-70b."),
    click.option("--config", type=PATH,
                 help="A Hugging Face config.json, or the folder of a diffusers pipeline, instead of --model."),
    click.option("--gpu", "gpu_name", required=True, metavar="NAME", help="A GPU from the catalog, such as h100-sxm."),
    click.option("--count", type=int, default=1, show_default=True, help="Number of GPUs."),
    click.option("--mode", type=click.Choice(["train", "serve"]), default="train", show_default=True,
                 help="Training or serving."),
    click.option("--precision", help="Precision of weights and math: bf16, fp16, fp8, ...  [default: bf16, else fp16]"),
    click.option("--tensor", type=int,
                 help="Tensor-parallel size.  [default: train 1; serve as many GPUs as divide the heads]"),
    click.option("--pipeline", type=int, default=1, show_default=True, help="Pipeline-parallel stages."),
    click.option("--sequence-parallel", is_flag=True, help="Split norms and dropout across the tensor-parallel group."),
    click.option("--zero", type=int, default=0, show_default=True, help="ZeRO stage 0 to 3; 3 is FSDP."),
    click.option("--optimizer", default="adamw", show_default=True,
                 help="Optimizer: adamw, adamw-8bit, adafactor, sgd-momentum or sgd."),
    click.option("--scheme", default="mixed", show_default=True,
                 help="Training precision scheme: mixed, autocast or pure."),
    click.option("--sequence", type=int,
                 help="Tokens per training sequence, or of a prompt.  [default: 4096, or the model's maximum]"),
    click.option("--micro-batch", type=int, default=1, show_default=True, help="Sequences (images) per step and GPU."),
    click.option("--recompute", is_flag=True, help="Keep only each layer's input (gradient checkpointing)."),
    click.option("--attention", type=click.Choice(["flash", "full"]), default="flash", show_default=True,
                 help="Attention kernel; full stores the whole score matrix."),
    click.option("--kernels", type=click.Choice(["eager", "fused"]), default="eager", show_default=True,
                 help="Plain PyTorch, or fused as in Megatron-LM."),
    click.option("--accumulate/--no-accumulate", default=True, show_default=True,
                 help="Gradients stay through several micro-batches, or are freed after each step."),
    click.option("--trace", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
                 help="Trace one step of a --config on torch's meta device; auto: where transformers is installed, and "
                      "memory only where no formula was checked."),
    click.option("--lora-rank", type=int, default=0, show_default=True,
                 help="Train only LoRA adapters of this rank; 0 trains all weights."),
    click.option("--frozen-precision", default="", help="Precision of the frozen weights with LoRA; nf4 is QLoRA."),
    click.option("--context", type=int,
                 help="Tokens per served sequence, or of a prompt.  [default: 4096, or the model's maximum]"),
    click.option("--batch", type=int, default=1, show_default=True,
                 help="Sequences (images) one model copy serves at a time."),
    click.option("--cache-precision", default="fp16", show_default=True, help="KV-cache precision."),
    click.option("--cache", type=click.Choice(["contiguous", "paged"]), default="contiguous", show_default=True,
                 help="KV cache set aside per sequence, or in blocks as vLLM and SGLang do."),
    click.option("--block-tokens", type=int, default=16, show_default=True, help="Tokens per block of a paged cache."),
    click.option("--image", type=int, default=0,
                 help="Pixels per side of the images a denoiser makes.  [default: those it was made for]"),
    click.option("--denoising-steps", type=int, default=0,
                 help="Denoising steps per image.  [default: the usual number for the model]"),
    click.option("--guidance/--no-guidance", default=True, show_default=True,
                 help="Two passes per denoising step, with and without the prompt, where a model is run so."),
    click.option("--memory-share", type=float, default=0.9, show_default=True,
                 help="Share of the card a server with a paged cache takes (vLLM: gpu_memory_utilization)."),
)  # fmt: skip


_OF_TOKENS = ("sequence", "context", "cache_precision", "cache", "block_tokens")


def _said(names: tuple[str, ...]) -> Iterator[str]:
    """Those of the options that the command line names."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            yield f"--{name.replace('_', '-')}"


def _of_model(what: str | None, model_name: str | None, config: Path | None) -> str | Path:
    """The model that is named, or its file; one of three ways to give it."""
    hint = "for example --model llama-3.1-8b, or --config config.json"
    if sum(one is not None for one in (what, model_name, config)) != 1:
        raise InputError("give one model, with either --model or --config", hint=hint)
    is_file = what is not None and (Path(what).exists() or what.endswith(".json") or "/" in what)
    return Path(what or "") if is_file else what or model_name or config or ""


def _asked(
    *, what: str | None, model_name: str | None, config: Path | None, gpu_name: str, mode: Any, **how: Any
) -> Asked:
    from gpuledger.catalog.models.shapes import denoising, longest_sequence
    from gpuledger.plan import asked
    from gpuledger.plan.setup import DENOISING, SERVING, TRAINING

    # Given for a run of the other mode, an option would be ignored silently.
    other, ignored = ("serve", SERVING) if mode == "train" else ("train", (*TRAINING, "micro_batches", "node_gbps"))
    for option in _said(ignored):
        problem = f"{option} is for --mode {other}, and this is {mode}"
        raise InputError(problem, hint=f"add --mode {other}, or leave {option} out")
    found = asked(_of_model(what, model_name, config), gpu_name, mode=mode, **how)
    made = denoising(found[0].shape)
    for option in () if made else _said(DENOISING):
        raise InputError(f"{option} is for models that make images, and {found[0].name} is not one",
                         hint=f"leave {option} out")  # fmt: skip
    unread = _OF_TOKENS[2:] if made and made.prompt else _OF_TOKENS
    for option in () if longest_sequence(found[0].shape) else _said(unread):
        raise InputError(f"{option} is for text models, and {found[0].name} is not one", hint=f"leave {option} out")
    return found
