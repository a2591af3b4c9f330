"""Which module does a configuration describe, and what does one micro-batch of inputs for it look like?"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuledger.errors import InputError, MissingExtra
from gpuledger.training.runtime import first_line, need_torch

if TYPE_CHECKING:
    from gpuledger.training.blueprint.denoisers import Kind

WHAT = "counting a model from its configuration"
# Which head is trained where the configuration names none: the first of these mappings that has the type.
_HEADS = (
    "AutoModelForImageTextToText", "AutoModelForSpeechSeq2Seq", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM",
    "AutoModelForCausalLM", "AutoModelForImageClassification", "AutoModelForCTC", "AutoModelForAudioClassification",
    "AutoModelForVideoClassification", "AutoModelForObjectDetection", "AutoModelForSemanticSegmentation", "AutoModel",
)  # fmt: skip
USUAL_IMAGE, USUAL_FRAMES = 224, 16
DETECTED_IMAGE = 640  # of a detector whose configuration names no size
SOUND_S, SOUND_HZ = 10, 16_000
FRAMES_PER_S, STACKED_PER_S = 100, 50  # frames of a spectrum; pairs of them in one row
# Cast aside what a vocabulary's special tokens would refuse.
_SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


def need_transformers() -> Any:
    """transformers, or the next step where it is not installed."""
    need_torch(WHAT)
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        missing = MissingExtra(WHAT, "train")
        missing.hint = "pip install torch transformers, then run the same command again"
        raise missing from error


def installed(library: str = "transformers") -> bool:
    """Whether a model of this library can be built here."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", library))


@dataclass(frozen=True)
class Built:
    """A module on the meta device, and which class of its library it is; `denoises`: how, for one of diffusers."""

    module: Any
    name: str
    text: bool  # reads token ids
    attention: str  # sdpa or eager
    denoises: Kind | None = None

    @property
    def sound_s(self) -> int:
        """The seconds of sound it is given at a time, where its configuration names no length."""
        first = getattr(self.module, "main_input_name", "")
        usual = first == "input_values" or (
            first == "input_features" and not hasattr(self.module.config, "num_mel_bins")
        )
        return SOUND_S if usual else 0

    @property
    def frames(self) -> int:
        """The images of one clip, where it reads video."""
        if not self.name.endswith("ForVideoClassification"):
            return 0
        config = self.module.config
        return int(getattr(config, "num_frames", None) or getattr(config, "frames_per_clip", None) or USUAL_FRAMES)


def build(fields: dict[str, Any], *, fp32: bool, full_attention: bool) -> Built:
    """The module of these fields in bf16, or in fp32; `full_attention` keeps the whole score matrix."""
    transformers, torch = need_transformers(), need_torch(WHAT)
    transformers.logging.set_verbosity_error()
    config = _config(transformers, fields)
    kind = _class(transformers, config, fields)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if fp32 else torch.bfloat16)
    try:
        module = _made(torch, kind, config, full_attention=full_attention)
    except Exception as error:
        problem = f"transformers {transformers.__version__} could not build {config.model_type}: {first_line(error)}"
        missing = "install the library it names, then run the same command again"
        hint = missing if isinstance(error, ImportError) else "check the configuration, or give a newer transformers"
        raise InputError(problem, hint=hint) from error
    finally:
        torch.set_default_dtype(before)
    first = getattr(module, "main_input_name", "input_ids")
    text = first in ("input_ids", "input_features") or (first == "input_values" and config.is_encoder_decoder)
    attention = str(getattr(module.config, "_attn_implementation", "") or "eager")
    return Built(module.train(), type(module).__name__, text, attention)


def count(fields: dict[str, Any], named: str) -> int:
    """The parameters of exactly this class, head or none, such as the text encoder of an image generator."""
    transformers, torch = need_transformers(), need_torch(WHAT)
    config, kind = _config(transformers, fields), getattr(transformers, named, None)
    if kind is None:
        problem = f"transformers {transformers.__version__} has no class {named!r}"
        raise InputError(problem, hint="a newer transformers may have it")
    try:
        return sum(one.numel() for one in _made(torch, kind, config, full_attention=False).parameters())
    except Exception as error:
        problem = f"transformers {transformers.__version__} could not build {named}: {first_line(error)}"
        raise InputError(problem, hint="check the configuration, or give a newer transformers") from error


def _config(transformers: Any, fields: dict[str, Any]) -> Any:
    given = {name: _number(value) for name, value in fields.items() if name not in ("transformers_version", "auto_map")}
    named = str(given.pop("model_type", ""))
    if named not in transformers.CONFIG_MAPPING:
        problem = f"transformers {transformers.__version__} has no model of type {named!r}"
        hint = "a newer transformers may know it; a model that comes with its own code (auto_map) cannot be built"
        raise InputError(problem, hint=hint)
    try:
        config = transformers.CONFIG_MAPPING[named].from_dict(given)
    except Exception as error:
        problem = f"transformers {transformers.__version__} refuses this {named} configuration: {first_line(error)}"
        raise InputError(problem, hint="give the config.json the model came with") from error
    if hasattr(config, "apply_spec_augment"):  # masks parts of a sound by its values; keeps nothing of size
        config.apply_spec_augment = False
    for name in _SPECIAL:
        if config.is_encoder_decoder and getattr(config, name, None) is None:
            setattr(config, name, 0)
    return config


def _number(value: Any) -> Any:
    """A value with infinities as transformers writes them ({"__float__": "Infinity"}) put back."""
    if isinstance(value, list):
        return [_number(one) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"__float__"}:
        return float(value["__float__"])
    return {name: _number(one) for name, one in value.items()}


def _class(transformers: Any, config: Any, fields: dict[str, Any]) -> Any:
    """The class the configuration names, where it computes a loss; else the usual one for its type."""
    for name in fields.get("architectures") or ():
        found = getattr(transformers, str(name), None)
        if found is not None and _has_loss(found):
            return found
    for name in _HEADS:
        auto = getattr(transformers, name, None)
        mapping = getattr(auto, "_model_mapping", {})
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    raise InputError(f"transformers has no model for {config.model_type}", hint="a newer transformers may have one")


def _has_loss(kind: Any) -> bool:
    return "labels" in inspect.signature(kind.forward).parameters


def _made(torch: Any, kind: Any, config: Any, *, full_attention: bool) -> Any:
    ways = ("eager",) if full_attention else ("sdpa", "eager")
    for way in ways:
        config._attn_implementation = way  # noqa: SLF001
        try:
            with torch.device("meta"):
                return kind(config)
        except ValueError:
            if way == ways[-1]:
                raise
    raise AssertionError(ways)


def inputs(built: Built, micro_batch: int, sequence: int) -> dict[str, Any]:
    """One micro-batch with labels, as the module reads it."""
    torch = need_torch(WHAT)
    config, takes = built.module.config, inspect.signature(built.module.forward).parameters
    dtype = next(built.module.parameters()).dtype
    first = getattr(built.module, "main_input_name", "input_ids")
    labels: dict[str, Any] = {}
    if first in ("pixel_values", "pixel_values_videos"):
        vision = getattr(config, "vision_config", None) or config
        detects = built.name.endswith("ForObjectDetection")
        usual = DETECTED_IMAGE if detects else USUAL_IMAGE
        high, wide = _sides(getattr(vision, "image_size", None) or getattr(vision, "crop_size", None) or usual)
        clip = (built.frames,) if built.frames else ()
        shape = (micro_batch, *clip, getattr(vision, "num_channels", 3), high, wide)
        found = {first: torch.zeros(shape, device="meta", dtype=dtype)}
        size = (micro_batch, high, wide) if built.name.endswith("SemanticSegmentation") else (micro_batch,)
        if not detects:  # its loss matches boxes by their values; without labels it is left out
            labels = {"labels": torch.zeros(size, dtype=torch.long, device="meta")}
    elif first == "input_features":
        found = {"input_features": torch.zeros(micro_batch, *_spectrum(config), device="meta", dtype=dtype)}
        labels = {"labels": torch.zeros(micro_batch, sequence, dtype=torch.long, device="meta")}
    elif first == "input_values":
        mels = hasattr(config, "num_mel_bins") and hasattr(config, "max_length")  # Audio Spectrogram Transformer
        heard = (config.max_length, config.num_mel_bins) if mels else (SOUND_S * SOUND_HZ,)
        found = {"input_values": torch.zeros(micro_batch, *heard, device="meta", dtype=dtype)}
        if not built.name.endswith("CTC"):  # its loss checks the values of labels; without them it is left out
            wanted = (micro_batch, sequence) if config.is_encoder_decoder else (micro_batch,)
            labels = {"labels": torch.zeros(wanted, dtype=torch.long, device="meta")}
    else:
        tokens = torch.zeros(micro_batch, sequence, dtype=torch.long, device="meta")
        found = {"input_ids": tokens}
        labels = {"labels": tokens}
        if "pixel_values" in takes and "return_loss" in takes:  # two towers compared, such as CLIP
            vision = config.vision_config
            image = (micro_batch, 3, vision.image_size, vision.image_size)
            found |= {"pixel_values": torch.zeros(image, device="meta", dtype=dtype), "return_loss": True}
    return found | ({} if "labels" not in takes else labels)


def _spectrum(config: Any) -> tuple[int, int]:
    """The spectrum of one clip: as long as the configuration has it (Whisper), or of SOUND_S seconds."""
    if hasattr(config, "num_mel_bins"):
        return config.num_mel_bins, 2 * getattr(config, "max_source_positions", 1500)
    if hasattr(config, "input_feat_per_channel"):  # Speech2Text
        return SOUND_S * FRAMES_PER_S, config.input_feat_per_channel * config.input_channels
    if hasattr(config, "feature_projection_input_dim"):  # Wav2Vec2-BERT and the translators built on it
        return SOUND_S * STACKED_PER_S, config.feature_projection_input_dim
    problem = f"the planner does not know which spectrum of sound a {config.model_type} reads"
    raise InputError(problem, hint="measure one step of it on a GPU instead")


def _sides(size: Any) -> tuple[int, int]:
    if isinstance(size, dict):
        return int(size.get("height", USUAL_IMAGE)), int(size.get("width", USUAL_IMAGE))
    return (int(size[0]), int(size[1])) if isinstance(size, list | tuple) else (int(size), int(size))
