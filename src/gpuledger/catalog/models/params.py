"""How many parameters does a model of this shape have, part by part?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gpuledger.catalog.models.shapes import CnnShape, CountedShape, DiffusionShape, Shape, TransformerShape, VitShape

_EXPAND = 4  # a bottleneck block is a quarter as wide inside as outside
STEM_KERNEL = 7


def params_by_part(shape: Shape) -> dict[str, int]:
    """Parameters by part; parts that are not there are left out, and the sum is the whole."""
    if isinstance(shape, TransformerShape):
        parts = _transformer(shape)
    elif isinstance(shape, VitShape):
        parts = _vit(shape)
    elif isinstance(shape, CnnShape):
        parts = _cnn(shape)
    elif isinstance(shape, CountedShape):
        parts = {"matrices": shape.matrices, "rest": shape.rest}
    else:
        parts = {part.name: round(part.params.value) for part in shape.components}
    return {name: count for name, count in parts.items() if count}


def total_params(shape: Shape) -> int:
    """All parameters; a tied embedding counts once."""
    return sum(params_by_part(shape).values())


def active_params(shape: Shape) -> int:
    """Parameters one token goes through: of the routed experts only those chosen for it."""
    if not isinstance(shape, TransformerShape) or not shape.experts:
        return total_params(shape)
    idle = shape.experts - shape.experts_per_token
    return total_params(shape) - shape.moe_layers * idle * expert_params(shape)


def expert_params(shape: TransformerShape) -> int:
    """Parameters of one routed expert in one layer."""
    return _mlp(shape, shape.expert_hidden, shape.mlp_bias)


def attention_matrix_params(shape: TransformerShape) -> int:
    """Parameters of the projections around one layer's attention, without biases and norms."""
    if shape.mla is None:
        heads = shape.heads + 2 * shape.kv_heads  # queries, keys, values
        return shape.hidden * shape.head_dim * (heads + shape.heads)
    mla, hidden = shape.mla, shape.hidden
    wide = shape.heads * mla.qk_dim
    queries = mla.q_lora_rank * (hidden + wide) if mla.q_lora_rank else hidden * wide
    latent = hidden * (mla.kv_lora_rank + mla.qk_rope_dim)
    out_of_latent = mla.kv_lora_rank * shape.heads * (mla.qk_nope_dim + mla.v_dim)
    return queries + latent + out_of_latent + shape.heads * mla.v_dim * hidden


def mlp_matrix_params(hidden: int, inner: int, *, gated: bool) -> int:
    """Parameters of an MLP's matrices."""
    return (3 if gated else 2) * hidden * inner


def _mlp(shape: TransformerShape, inner: int, bias: bool) -> int:
    biases = (inner * (2 if shape.mlp_gated else 1) + shape.hidden) if bias else 0
    return mlp_matrix_params(shape.hidden, inner, gated=shape.mlp_gated) + biases


def _transformer(s: TransformerShape) -> dict[str, int]:
    norm = s.hidden * (2 if s.norm_bias else 1)
    attention = attention_matrix_params(s)
    attention += s.head_dim * (s.heads + 2 * s.kv_heads) if s.attention_bias else 0
    attention += s.hidden if s.output_bias else 0
    attention += s.heads if s.attention_sinks else 0
    norms = s.norms_per_layer * norm
    norms += 2 * s.head_dim if s.qk_norm else 0
    norms += s.head_dim * (s.heads + s.kv_heads) if s.qk_norm_wide else 0
    norms += s.mla.q_lora_rank + s.mla.kv_lora_rank if s.mla else 0
    shared = _mlp(s, s.expert_hidden * s.shared_experts, s.mlp_bias) if s.shared_experts else 0
    return {
        "embedding": s.vocab * s.hidden,
        "positions": s.learned_positions * s.hidden,
        "attention": s.layers * attention,
        "mlp": s.dense_layers * _mlp(s, s.mlp_hidden, s.mlp_bias),
        "experts": s.moe_layers * s.experts * expert_params(s),
        "shared_experts": s.moe_layers * shared,
        "router": s.moe_layers * s.experts * (s.hidden + (1 if s.router_bias else 0)),
        "norms": s.layers * norms + norm * (2 if s.embedding_norm else 1),
        "head": (0 if s.tied_embeddings else s.vocab * s.hidden) + (s.vocab if s.head_bias else 0),
    }


def _vit(s: VitShape) -> dict[str, int]:
    attention = 4 * (s.hidden * s.hidden + s.hidden)
    mlp = 2 * s.hidden * s.mlp_hidden + s.mlp_hidden + s.hidden
    return {
        "patches": s.patch * s.patch * s.channels * s.hidden + s.hidden,
        "positions": (s.tokens + s.class_tokens) * s.hidden,  # and the class token itself
        "attention": s.layers * attention,
        "mlp": s.layers * mlp,
        "norms": (2 * s.layers + 1) * 2 * s.hidden,
        "head": s.classes * (s.hidden + 1),
    }


class Conv(NamedTuple):
    """One convolution without bias: kernel, channels in and out, and how wide and high the image it puts out is."""

    part: str
    kernel: int
    channels_in: int
    channels_out: int
    image: int

    @property
    def params(self) -> int:
        """Weights."""
        return self.kernel * self.kernel * self.channels_in * self.channels_out

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one image."""
        return self.params * self.image * self.image


def halved(size: int) -> int:
    """An image side after a stride of two, padded as residual networks pad."""
    return (size + 1) // 2


def convolutions(s: CnnShape) -> Iterator[Conv]:
    """Every convolution of a residual network in order."""
    image = halved(s.image)
    yield Conv("stem", STEM_KERNEL, s.channels, s.stem, image)
    image, channels = halved(image), s.stem
    for stage, (depth, width) in enumerate(zip(s.depths, s.widths, strict=True)):
        for block in range(depth):
            before = image
            image = halved(image) if stage and not block else image
            if channels != width or image != before:
                yield Conv("shortcuts", 1, channels, width, image)
            if s.block == "basic":
                yield Conv("blocks", 3, channels, width, image)
                yield Conv("blocks", 3, width, width, image)
            else:
                inner = width // _EXPAND
                yield Conv("blocks", 1, channels, inner, image if s.stride_in_first else before)
                yield Conv("blocks", 3, inner, inner, image)
                yield Conv("blocks", 1, inner, width, image)
            channels = width


def _cnn(s: CnnShape) -> dict[str, int]:
    parts = {"stem": 0, "shortcuts": 0, "blocks": 0, "norms": 0}
    for conv in convolutions(s):
        parts[conv.part] += conv.params
        parts["norms"] += 2 * conv.channels_out  # a BatchNorm after each
    return {**parts, "head": s.classes * (s.widths[-1] + 1)}


def component_params(shape: DiffusionShape, role: str) -> int:
    """Parameters of the parts of a pipeline with one role."""
    return sum(round(part.params.value) for part in shape.components if part.role == role)
