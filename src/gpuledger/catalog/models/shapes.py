"""What is a model made of: how many layers, how wide, how many experts, which convolutions?"""

from __future__ import annotations

from typing import Literal

import msgspec

from gpuledger.catalog.files import Fact


class MlaShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Latent attention: keys and values pass through a narrow latent; q_lora_rank 0 is a plain query projection."""

    q_lora_rank: int = 0
    kv_lora_rank: int
    qk_nope_dim: int
    qk_rope_dim: int
    v_dim: int

    @property
    def qk_dim(self) -> int:
        """Width of a head's query and key."""
        return self.qk_nope_dim + self.qk_rope_dim


class TransformerShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="transformer"):
    """A decoder that reads tokens. The first, or every nth, `moe_layers` of `layers` have experts, the rest an MLP."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_hidden: int  # width of a dense MLP; 0 where every layer has experts
    mlp_gated: bool  # three matrices (SwiGLU, GeGLU), else two
    vocab: int
    tied_embeddings: bool
    max_context: int
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0  # always on, each as wide as an expert
    expert_hidden: int = 0
    moe_layers: int = 0
    mla: MlaShape | None = None
    attention_bias: bool = False  # on queries, keys and values
    output_bias: bool = False  # on the projection after attention
    mlp_bias: bool = False
    router_bias: bool = False
    norm_bias: bool = False  # LayerNorm has one, RMSNorm has none
    attention_sinks: bool = False  # one learned number per head
    qk_norm: bool = False  # a norm with weights on each head's query and key
    qk_norm_wide: bool = False  # a norm with weights over all heads together
    norms_per_layer: int = 2
    embedding_norm: bool = False
    head_bias: bool = False
    learned_positions: int = 0
    sliding_window: int | None = None  # tokens a windowed layer looks back
    sliding_layers: int = 0

    @property
    def dense_layers(self) -> int:
        """Layers with a plain MLP."""
        return self.layers - self.moe_layers

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees the whole sequence."""
        return self.layers - self.sliding_layers


class VitShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="vit"):
    """An encoder that reads image patches, with biases and LayerNorm throughout, and a class token."""

    layers: int
    hidden: int
    heads: int
    mlp_hidden: int
    image: int
    patch: int
    classes: int
    channels: int = 3
    class_tokens: int = 1

    @property
    def tokens(self) -> int:
        """Patches of an image, and the class token."""
        return (self.image // self.patch) ** 2 + self.class_tokens


class CnnShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cnn"):
    """A residual network: a 7x7 stem and a pool, then stages of blocks, each stage after the first halving the image.

    `bottleneck` blocks are 1x1, 3x3, 1x1 with a quarter of the width inside; `basic` ones are 3x3, 3x3.
    """

    block: Literal["basic", "bottleneck"]
    depths: tuple[int, ...]
    widths: tuple[int, ...]  # what each stage puts out
    stem: int
    image: int
    classes: int
    channels: int = 3
    stride_in_first: bool = False  # the 1x1 halves the image (the paper), else the 3x3 does (as usually trained)


class Component(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a model known only by its number of parameters; `config` as JSON where they were counted from one."""

    name: str
    role: str
    params: Fact
    config: str = ""


class DiffusionShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="diffusion"):
    """A pipeline of parts; the one with the role `denoiser` runs at every step."""

    components: tuple[Component, ...]


class Denoising(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a denoiser is run: tokens of a prompt, images it was made for, steps per image, passes per step.

    Sides of images are multiples of `grain` pixels. `buffers` are numbers it holds and does not train, such as a table
    of positions.
    """

    prompt: int
    pixels: tuple[int, int]
    steps: int
    passes: int
    grain: int
    buffers: int = 0


class CountedShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="counted"):
    """A model whose parameters were counted after building it: no formula describes how its parts are wired.

    `block` is its largest repeated part, `edges` rows plus columns of all matrices, `longest` the longest sequence it
    can read (0: as long as asked). `text`: it reads tokens, otherwise images, or clips of
    `sound_s` seconds or of `frames` images. `denoising`: it makes images.
    """

    built_as: str
    built_by: str
    matrices: int
    rest: int
    block: int
    edges: int
    text: bool
    sound_s: int = 0
    frames: int = 0
    longest: int = 0
    denoising: Denoising | None = None


Shape = TransformerShape | VitShape | CnnShape | DiffusionShape | CountedShape
ANY_LENGTH = 10**9


def longest_sequence(shape: Shape) -> int | None:
    """The longest sequence of tokens a model reads; None where it reads none."""
    if isinstance(shape, TransformerShape):
        return shape.max_context
    if isinstance(shape, CountedShape) and shape.text:
        return shape.longest or ANY_LENGTH
    return None


def denoising(shape: Shape) -> Denoising | None:
    """How a shape makes images; None where it does not, or where no step of it can be traced."""
    return shape.denoising if isinstance(shape, CountedShape) else None


def autoencodes(shape: Shape) -> bool:
    """Whether a shape turns images into latents and back, rather than noise into latents."""
    return isinstance(shape, CountedShape) and shape.built_as.startswith("Autoencoder")


def shape_problem(shape: Shape) -> tuple[str, str] | None:
    """The first figure of a shape that cannot be, as field and words."""
    for field in shape.__struct_fields__:
        value = getattr(shape, field)
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            return field, f"{value} is below zero"
    if isinstance(shape, TransformerShape):
        return _transformer_problem(shape)
    if isinstance(shape, VitShape) and (shape.patch < 1 or shape.image % shape.patch):
        return "patch", f"{shape.patch} does not divide the image of {shape.image}"
    if isinstance(shape, CnnShape) and len(shape.depths) != len(shape.widths):
        return "widths", f"{len(shape.widths)} widths for {len(shape.depths)} depths"
    return None


def _transformer_problem(s: TransformerShape) -> tuple[str, str] | None:
    for field in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "max_context"):
        if getattr(s, field) < 1:
            return field, "0 is not at least 1"
    routed = s.experts and s.expert_hidden and 0 < s.experts_per_token <= s.experts
    windowed = s.sliding_layers <= s.layers and bool(s.sliding_layers) == bool(s.sliding_window)
    checks = (
        (s.heads % s.kv_heads, "kv_heads", f"{s.kv_heads} does not divide {s.heads} heads"),
        (s.moe_layers > s.layers, "moe_layers", f"{s.moe_layers} of {s.layers} layers"),
        (
            s.moe_layers and not routed,
            "experts_per_token",
            f"{s.experts_per_token} of {s.experts} experts, each {s.expert_hidden} wide",
        ),
        (s.dense_layers and not s.mlp_hidden, "mlp_hidden", f"0, but {s.dense_layers} layers have no experts"),
        (not windowed, "sliding_layers", f"{s.sliding_layers} layers with a window of {s.sliding_window}"),
    )
    return next(((field, words) for wrong, field, words in checks if wrong), None)
