"""Which module does a configuration of diffusers describe, and what does one micro-batch of inputs for it look like?"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gpuledger.errors import InputError, MissingExtra
from gpuledger.training.blueprint.modules import WHAT, Built
from gpuledger.training.runtime import first_line, need_torch

CLASS = "_class_name"
COLORS = 3
USUAL_PROMPT = 77
USUAL_LATENT = 128  # 1024 pixels: where a configuration names no size
_SIZE_IDS = 6  # height, width and place of the crop, as Stable Diffusion XL reads them
_TEXT_WIDTHS = ("encoder_hid_dim", "caption_channels", "joint_attention_dim", "cap_feat_dim", "text_embed_dim",
                "cross_attention_dim")  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """How models of one class are run: tokens of a prompt, pixels per side of a latent, denoising steps.

    `packed`: 2 x 2 latents come as one token. `guided`: each image is denoised with and without its prompt.
    """

    prompt: int = 0
    pixels: int = 8
    packed: bool = False
    guided: bool = True
    steps: int = 50

    @property
    def grain(self) -> int:
        """Pixels that the side of an image is a multiple of."""
        return self.pixels * (2 if self.packed else 1)


# Lengths of prompts and numbers of steps: the defaults of the pipelines of diffusers.
_KINDS = {
    "UNet2DModel": Kind(guided=False),
    "UNet2DConditionModel": Kind(prompt=USUAL_PROMPT),
    "DiTTransformer2DModel": Kind(steps=50),
    "PixArtTransformer2DModel": Kind(prompt=300, steps=20),
    "SD3Transformer2DModel": Kind(prompt=333, steps=28),  # 77 of CLIP and 256 of T5
    "SanaTransformer2DModel": Kind(prompt=300, pixels=32, steps=20),
    "AuraFlowTransformer2DModel": Kind(prompt=256, steps=50),
    "FluxTransformer2DModel": Kind(prompt=512, packed=True, guided=False, steps=28),
    "ChromaTransformer2DModel": Kind(prompt=512, packed=True, steps=35),
    "QwenImageTransformer2DModel": Kind(prompt=512, packed=True, steps=50),
    "AutoencoderKL": Kind(pixels=1, guided=False, steps=1),
}


def need_diffusers() -> Any:
    """diffusers, or the next step where it is not installed."""
    need_torch(WHAT)
    try:
        return importlib.import_module("diffusers")
    except ImportError as error:
        missing = MissingExtra(WHAT, "train")
        missing.hint = "pip install torch diffusers, then run the same command again"
        raise missing from error


def kind_of(fields: dict[str, Any]) -> Kind:
    """How models of the class a configuration names are run."""
    named = str(fields[CLASS])
    usual = _KINDS["AutoencoderKL"] if named.startswith("Autoencoder") else Kind(prompt=USUAL_PROMPT)
    found = _KINDS.get(named, usual)
    return replace(found, pixels=1) if fields.get("in_channels") == COLORS else found


def build(fields: dict[str, Any], *, fp32: bool, full_attention: bool) -> Built:
    """The module of these fields in bf16, or in fp32; `full_attention` keeps the whole score matrix."""
    diffusers, torch = need_diffusers(), need_torch(WHAT)
    importlib.import_module("diffusers.utils.logging").set_verbosity_error()
    named = str(fields[CLASS])
    try:
        made = getattr(diffusers, named, None)
    except RuntimeError as error:  # it loads its classes late, and with them what they need
        problem = f"diffusers {diffusers.__version__} could not load {named}: {str(error).splitlines()[-1]}"
        raise InputError(
            problem, hint="pip install -U diffusers transformers, then run the same command again"
        ) from error
    if made is None or not hasattr(made, "from_config") or not hasattr(made, "forward"):
        problem = f"diffusers {diffusers.__version__} has no model class {named!r}"
        raise InputError(problem, hint="a newer diffusers may have it; check _class_name")
    try:
        with torch.device("meta"):
            module = made.from_config({name: value for name, value in fields.items() if name != CLASS})
    except Exception as error:
        problem = f"diffusers {diffusers.__version__} could not build {named}: {first_line(error)}"
        raise InputError(problem, hint="give the config.json the model came with") from error
    if full_attention:
        _unfused(diffusers, module, named)
    module = module.to(torch.float32 if fp32 else torch.bfloat16).train()
    return Built(module, named, text=False, attention="eager" if full_attention else "sdpa", denoises=kind_of(fields))


def _unfused(diffusers: Any, module: Any, named: str) -> None:
    """Attention with a score matrix, for modules made of plain attention blocks."""
    plain = importlib.import_module("diffusers.models.attention_processor").AttnProcessor
    if not named.startswith("UNet"):
        problem = f"{named} of diffusers {diffusers.__version__} has fused attention only"
        raise InputError(problem, hint="leave attention=full out")
    module.set_attn_processor(plain())


def sides(config: Any, kind: Kind, image: int) -> tuple[int, int]:
    """Latents of an image of this side in pixels; of the size in the configuration where none is asked for."""
    if image:
        if image % kind.grain:
            more = -(-image // kind.grain) * kind.grain
            raise InputError(f"image={image} is not a multiple of {kind.grain} pixels", hint=f"give {more}")
        return image // kind.pixels, image // kind.pixels
    size = config.get("sample_size") or USUAL_LATENT
    return (int(size[0]), int(size[1])) if isinstance(size, list | tuple) else (int(size), int(size))


@dataclass(frozen=True)
class _Batch:
    """One micro-batch to be made: whole numbers and numbers of the module's kind on the meta device."""

    built: Built
    kind: Kind
    rows: int
    text: int
    high: int
    wide: int

    @property
    def config(self) -> Any:
        return self.built.module.config

    def numbers(self, *shape: int) -> Any:
        """Numbers of the module's own precision."""
        torch = need_torch(WHAT)
        return torch.zeros(shape, device="meta", dtype=next(self.built.module.parameters()).dtype)

    def whole(self, *shape: int) -> Any:
        """Whole numbers."""
        torch = need_torch(WHAT)
        return torch.zeros(shape, device="meta", dtype=torch.long)

    def latents(self) -> Any:
        """What is denoised."""
        channels = int(self.config["in_channels"])
        if self.kind.packed:
            return self.numbers(self.rows, self.high // 2 * (self.wide // 2), channels)
        return self.numbers(self.rows, channels, self.high, self.wide)

    def prompts(self) -> Any:
        """Encoded text."""
        width = next((self.config.get(name) for name in _TEXT_WIDTHS if self.config.get(name)), None)
        if width is None:
            return None
        return self.numbers(self.rows, self.text, int(width[0] if isinstance(width, list | tuple) else width))

    def classes(self) -> Any:
        """Labels, where the module reads some."""
        labeled = self.config.get("num_class_embeds") or self.config.get("norm_type") == "ada_norm_zero"
        return self.whole(self.rows) if labeled else None

    def conditions(self) -> Any:
        """Sizes and pooled text, as Stable Diffusion XL and PixArt read them."""
        if self.config.get("addition_embed_type") == "text_time":
            pooled = self.config["projection_class_embeddings_input_dim"]
            pooled -= _SIZE_IDS * self.config["addition_time_embed_dim"]
            return {"text_embeds": self.numbers(self.rows, pooled), "time_ids": self.numbers(self.rows, _SIZE_IDS)}
        if self.built.name.startswith("PixArt"):
            return {"resolution": self.numbers(self.rows, 2), "aspect_ratio": self.numbers(self.rows, 1)}
        return None


_INPUTS: dict[str, Callable[[_Batch], Any]] = {
    "sample": _Batch.latents,
    "hidden_states": _Batch.latents,
    "timestep": lambda one: one.whole(one.rows),
    "encoder_hidden_states": _Batch.prompts,
    "encoder_attention_mask": lambda one: None if one.built.name.startswith("UNet") else one.whole(one.rows, one.text),
    "encoder_hidden_states_mask": lambda one: one.whole(one.rows, one.text),
    "pooled_projections": lambda one: one.numbers(one.rows, int(one.config["pooled_projection_dim"])),
    "class_labels": _Batch.classes,
    "added_cond_kwargs": _Batch.conditions,
    "img_ids": lambda one: one.numbers(one.high // 2 * (one.wide // 2), 3),
    "txt_ids": lambda one: one.numbers(one.text, 3),
    "img_shapes": lambda one: [[(1, one.high // 2, one.wide // 2)]] * one.rows,
    "guidance": lambda one: one.numbers(one.rows) if one.config.get("guidance_embeds") else None,
}


def inputs(built: Built, micro_batch: int, text: int, image: int) -> dict[str, Any]:
    """One micro-batch of noisy latents with time and prompts, or of images for an autoencoder."""
    kind = built.denoises or Kind()
    if built.name.endswith("3DModel"):
        raise InputError(
            f"{built.name} makes video: planned are single images", hint="weights are exact; measure a step"
        )
    batch = _Batch(built, kind, micro_batch, text, *sides(built.module.config, kind, image))
    found: dict[str, Any] = {}
    for name, taken in inspect.signature(built.module.forward).parameters.items():
        if name in _INPUTS:
            value = _INPUTS[name](batch)
            found |= {} if value is None else {name: value}
        if taken.default is taken.empty and found.get(name) is None:
            problem = f"{built.name} reads {name}, which is not in a configuration"
            raise InputError(problem, hint="weights are exact; measure a step")
    return found


def latents_of(built: Built, images: Any) -> Any:
    """What an autoencoder makes these images of."""
    config = built.module.config
    rows, _, high, wide = images.shape
    smaller = 2 ** (len(config["block_out_channels"]) - 1)
    return images.new_zeros(rows, int(config["latent_channels"]), high // smaller, wide // smaller)
