"""Where do the figures of an answer about memory come from, and how far off were such answers?"""

from __future__ import annotations

import json

from gpuledger.catalog.models import CountedShape, Denoising, Model
from gpuledger.catalog.models.shapes import autoencodes, denoising
from gpuledger.plan.measured_types import RangeFrom, memory_errors, range_from
from gpuledger.plan.memory.facts import ErrorsOf, Measured, overheads
from gpuledger.plan.setup import Setup
from gpuledger.plan.tracing import denoised, keeps_traced, memory_checked, traced_step, what_to_install
from gpuledger.training.flops import unit_of
from gpuledger.units import Unknown


def measured_errors(model: Model, setup: Setup) -> Measured:
    """How far off answers of this kind were."""
    usual: Measured = getattr(overheads().error, errors_of(model, setup))
    return memory_errors(usual, rests_on(model, setup))


def rests_on(model: Model, setup: Setup) -> RangeFrom | None:
    """Which runs set the range; None for that of a checked formula, or of a serving engine."""
    if setup.mode == "serve" and not denoising(model.shape):
        return None
    return range_from(model, traced=denoising(model.shape) is not None or keeps_traced(model, setup))


def errors_of(model: Model, setup: Setup) -> ErrorsOf:
    """Whose errors answers of this kind have, where the type was measured."""
    if denoising(model.shape):
        if setup.mode == "train":
            return "denoise"
        return "pixels_serve" if _peaks_at_pixels(model, setup) else "denoise_serve"
    if setup.mode == "serve":
        return "serve"
    if keeps_traced(model, setup):
        return "traced_recompute" if setup.recompute else "traced"
    if not memory_checked(model):
        return "unchecked"
    return "train_autocast" if setup.scheme == "autocast" else "train"


def _peaks_at_pixels(model: Model, setup: Setup) -> bool:
    """Whether the way from latents to pixels holds more than a denoising step."""
    found = denoised(model, setup)
    if autoencodes(model.shape) or isinstance(found, Unknown):
        return autoencodes(model.shape)
    step, *rest = (one.working_bytes for one in found)
    return max(rest, default=0) > step


def counted_by(model: Model, setup: Setup) -> list[str]:
    """Where the figures of a model without a checked formula come from."""
    found = []
    if isinstance(model.shape, CountedShape):
        found.append(f"weights: counted after {model.shape.built_by} built {model.shape.built_as}")
    if made := denoising(model.shape):
        found += _denoised(model, setup, made)
    elif setup.mode == "serve":
        traced = isinstance(model.shape, CountedShape)
        return [*found, "cache and working memory: one forward pass traced on torch's meta device"] if traced else found
    elif keeps_traced(model, setup):
        step = traced_step(model, setup)
        found.append("activations and working memory: one step traced on torch's meta device")
        if not isinstance(step, Unknown) and step.extended:
            found.append("traced at shorter sequences and extended: it loops over its tokens")
        if other := _not_traced(model):
            found.append(f"traced with text only: all weights count, what {other} would add to activations does not")
        if isinstance(model.shape, CountedShape) and model.shape.built_as.endswith("ForObjectDetection"):
            found.append("traced without its loss, which matches boxes by their values")
        found += clips(model)
    elif not memory_checked(model):
        words = f"activations: formulas not checked for {_type(model)}, so the range is wide"
        found.append("; ".join(filter(None, (words, what_to_install()))))
    return found


def _type(model: Model) -> str:
    """The type of the whole file, where the model is read from its text_config only."""
    return str(json.loads(model.config).get("model_type") or model.family) if model.config else model.family


def _not_traced(model: Model) -> str:
    """What a model reads in addition to text, with which it is not traced."""
    if unit_of(model.shape) != "token":
        return ""
    fields = json.loads(model.config)
    towers = {"vision_config": "images", "audio_config": "sound"}
    return " and ".join(words for name, words in towers.items() if fields.get(name))


def clips(model: Model) -> list[str]:
    """What one clip is, for a model that reads clips."""
    if not isinstance(model.shape, CountedShape):
        return []
    sound = [f"clips of {model.shape.sound_s} s of sound"] if model.shape.sound_s else []
    return [*sound, *([f"clips of {model.shape.frames} frames"] if model.shape.frames else [])]


def _denoised(model: Model, setup: Setup, made: Denoising) -> list[str]:
    """What a denoiser is run with, and which of a pipeline's parts were counted."""
    high, wide = (setup.image, setup.image) if setup.image else made.pixels
    tokens = setup.sequence if setup.mode == "train" else setup.context
    found = [f"images of {high} x {wide} pixels" + (f", prompts of {tokens} tokens" if made.prompt else "")]
    parts = ", ".join(f"{part.name} ({part.params.value / 1e6:,.0f} M)" for part in model.extra)
    if setup.mode == "train":
        found += [f"the denoiser is trained; frozen in memory: {parts}"] if parts else []
        return [*found, "activations and working memory: one step traced on torch's meta device"]
    if setup.guidance and made.passes > 1:
        found.append("guidance: every step takes each image twice, with and without its prompt")
    found += [f"in memory with the denoiser: {parts}"] if parts else []
    return [*found, "working memory: one pass of each part that makes pixels, traced on torch's meta device"]
