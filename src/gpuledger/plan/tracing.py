"""Which models have no formula, and what does a step of such a model take? Built and run on torch's meta device.

A configuration of a type that formulas do not cover is built by transformers or diffusers where that is installed; its
weights are exact, and one training step is traced operator by operator (`training/blueprint`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.catalog.files import Fact
from gpuledger.catalog.models import Component, CountedShape, Denoising, Model
from gpuledger.catalog.models.configs import TEXT_ONLY, UnreadType, config_name, model_from_config, read_config
from gpuledger.catalog.models.pipelines import Part, find_pipeline, read_pipeline
from gpuledger.catalog.models.shapes import denoising
from gpuledger.errors import InputError
from gpuledger.plan.memory.facts import FP32_BITS, get_precision
from gpuledger.plan.setup import Setup
from gpuledger.training.blueprint import denoisers, forward, modules, step
from gpuledger.training.blueprint.forward import Served
from gpuledger.training.blueprint.modules import installed
from gpuledger.training.blueprint.step import Asked, Traced, Weights
from gpuledger.units import Unknown

INSTALL = "install torch and transformers (pip install torch transformers) and any type they know is built and counted"
AUTOENCODER = "autoencoder"


def configured_model(path: Path) -> Model:
    """The model of a config.json: by formula, or built by its library where no formula is known."""
    if index := find_pipeline(path):
        return _generator(index)
    try:
        return _whole(model_from_config(path))
    except UnreadType as unread:
        file, raw = read_config(path)
        diffuses = denoisers.CLASS in raw
        if not diffuses and "model_type" not in raw:
            raise
        if not installed("diffusers" if diffuses else "transformers"):
            install = INSTALL.replace("transformers", "diffusers") if diffuses else INSTALL
            unread.hint = f"{install}. {unread.hint}"
            raise
    return _counted(config_name(file), str(raw.get("model_type") or raw[denoisers.CLASS]), file, raw)


def _counted(name: str, family: str, file: Path, raw: dict[str, Any]) -> Model:
    config = json.dumps(raw)
    found = step.weights(config)
    return Model(
        name=name,
        family=family,
        shape=CountedShape(
            built_as=found.name, built_by=found.built_by, matrices=found.matrices, rest=found.rest,
            block=found.block, edges=found.edges, text=found.text, sound_s=found.sound_s, frames=found.frames,
            longest=found.longest, denoising=_denoising(found),
        ),
        source=str(file),
        as_of="not dated",
        config=config,
        by_formula=False,
    )  # fmt: skip


def _denoising(found: Weights) -> Denoising | None:
    if (kind := found.denoises) is None:
        return None
    return Denoising(
        prompt=kind.prompt, pixels=found.pixels, steps=kind.steps, passes=2 if kind.guided else 1, grain=kind.grain,
        buffers=found.buffers,
    )  # fmt: skip


def _generator(index: Path) -> Model:
    """A whole pipeline: its denoiser is trained or run step by step, its other parts rest in memory."""
    read = read_pipeline(index)
    needed = ("diffusers", *sorted({part.library for part in read.parts} - {"diffusers"}))
    if missing := next((library for library in needed if not installed(library)), None):
        hint = f"pip install torch {' '.join(needed)}, then run the same command again"
        raise InputError(f"{index}: the parts of a {read.kind} are built by {missing}, which is not here", hint=hint)
    first, *others = read.parts
    model = _counted(index.resolve().parent.name, read.kind, index, {**first.fields, denoisers.CLASS: first.kind})
    left = f"without {', '.join(read.left_out)}, which no library builds" if read.left_out else ""
    return msgspec.structs.replace(model, extra=tuple(_component(part) for part in others), differs=left)


def _component(part: Part) -> Component:
    config = ""
    if part.library == "diffusers":
        config = json.dumps({**part.fields, denoisers.CLASS: part.kind})
        found = step.weights(config)
        params = found.matrices + found.rest + found.buffers
    else:
        params = modules.count(part.fields, part.kind)
    fact = Fact(value=params, source=f"counted after {part.library} built {part.kind}", as_of="not dated")
    return Component(name=part.name, role=part.role, params=fact, config=config)


def _whole(model: Model) -> Model:
    """A model read from its text_config only, with the parameters of its other parts where they can be counted."""
    if model.differs != TEXT_ONLY or not installed():
        return model
    try:
        found = step.weights(model.config)
    except InputError:
        return model
    others = found.matrices + found.rest - model.params_total
    if others <= 0:
        return model
    fact = Fact(value=others, source=f"counted after {found.built_by} built {found.name}", as_of=model.as_of)
    words = f"{others / 1e6:,.0f} M parameters outside text_config are counted, their activations are not"
    return msgspec.structs.replace(model, extra=(Component(name="other", role="encoder", params=fact),), differs=words)


def is_traced(model: Model, setup: Setup) -> bool:
    """Whether a training step of this setup is traced: a whole model in plain torch, where torch is installed."""
    if isinstance(model.shape, CountedShape):
        return True
    split = setup.tensor > 1 or setup.pipeline > 1 or setup.lora_rank > 0 or setup.kernels != "eager"
    possible = bool(model.config) and not split and installed()
    if setup.trace == "always" and not possible:
        raise InputError(
            "trace=always needs a configuration, torch and transformers, and a model in one piece and plain torch: no "
            "tensor or pipeline parallelism, LoRA or fused kernels",
            hint="leave trace at auto, which takes formulas where a step cannot be traced",
        )
    if possible and setup.trace == "auto" and model.by_formula:  # a formula is better than no answer
        return not isinstance(traced_step(model, replace(setup, accumulate=True)), Unknown)
    return possible and setup.trace != "never"


def what_to_install() -> str:
    """What tracing needs and is not here; empty where all of it is."""
    return "" if installed() else INSTALL


def keeps_traced(model: Model, setup: Setup) -> bool:
    """Whether what a step keeps is traced too. Checked formulas say it as well, and at once; not past a window.

    Past its window a layer gets a mask, under which keys and values are kept once for each head.
    """
    window = getattr(model.shape, "sliding_window", None)
    by_formula = memory_checked(model) and setup.trace == "auto" and not (window and setup.sequence >= window)
    return not by_formula and is_traced(model, setup)


def memory_checked(model: Model) -> bool:
    """Whether formulas were checked for what a step of this model keeps.

    A class around a text model may compute its loss in another precision: Qwen2-Audio keeps 16-bit logits, Qwen2 fp32
    ones.
    """
    return model.by_formula and "text_config" not in (json.loads(model.config) if model.config else {})


def traced_step(model: Model, setup: Setup) -> Traced | Unknown:
    """One micro-batch of this setup, forward and backward; unknown where it cannot run without values."""
    fp32 = get_precision(get_precision(setup.precision).train_as).bits >= FP32_BITS
    asked = Asked(
        micro_batch=setup.micro_batch,
        sequence=setup.sequence,
        fp32=fp32,
        autocast=setup.scheme == "autocast" and not fp32,
        full_attention=setup.attention == "full",
        recompute=setup.recompute,
        accumulate=setup.accumulate,
        image=setup.image,
    )
    try:
        return step.traced(model.config, asked)
    except InputError as error:
        return Unknown(_why(error))


def _why(error: InputError) -> str:
    """What went wrong and what to do next, in one line."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def traced_tensors(model: Model) -> int:
    """How many separate weights an optimizer steps through."""
    return step.weights(model.config).tensors


def served_pass(model: Model, batch: int, context: int) -> Served | Unknown:
    """A forward pass over prompts, and the cache it leaves."""
    try:
        return forward.served(model.config, batch, context)
    except InputError as error:
        return Unknown(_why(error))


def denoised(model: Model, setup: Setup) -> tuple[Served, ...] | Unknown:
    """One denoising step of a batch of images; then, of a whole pipeline, their way from latents to pixels."""
    kind = denoising(model.shape)
    if kind is None:
        return Unknown(f"{model.name} does not denoise images")
    passes = kind.passes if setup.guidance else 1
    try:
        found = [forward.served(model.config, setup.batch * passes, setup.context, setup.image)]
        pixels = setup.image or kind.pixels[0]
        decoders = [part.config for part in model.extra if part.role == AUTOENCODER and part.config]
        found += [forward.served(config, setup.batch, 0, pixels) for config in decoders]
    except InputError as error:
        return Unknown(_why(error))
    return tuple(found)
