"""How many floating-point operations does a model take: by formula, part by part, or counted by torch while it runs?

A multiply-add is two FLOP. Only matrix products and convolutions count: looking up an embedding, norms, activations and
softmax are left out, as in every published MFU. Attention is counted over the whole square of the sequence by default
(the PaLM convention, and what a kernel that does not skip the masked half really does); `causal` counts the half that a
causal model needs. A windowed layer looks back over its window only, in both.
Training is three times the forward pass: the backward pass makes two products for each one. The first layer of an image
model makes one only, as pixels need no gradient; the convention counts it all the same (1.0 % of a ResNet-50, 2.2 % of
a ResNet-18). With recomputation the hardware does the forward pass once more, so four times: that is for HFU, never
for MFU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from gpuledger.catalog.models import CnnShape, CountedShape, DiffusionShape, Shape, TransformerShape, VitShape
from gpuledger.catalog.models.params import attention_matrix_params, convolutions, mlp_matrix_params
from gpuledger.errors import InputError
from gpuledger.training.runtime import need_torch
from gpuledger.units import Unknown

FLOP_PER_MULTIPLY_ADD = 2
TRAINING_PASSES = 3  # one forward, two products backward for each forward one
RECOMPUTED_PASSES = 4  # and the forward pass once more
_ATTENTION = "_scaled_dot_product_{}_attention"
# What torch's own counter omits or counts differently: attention on the CPU, grouped products as experts use them, and
# the gradients of a convolution in groups (torch counts each of its weights once per group).
_ATTENTIONS = (
    *(_ATTENTION.format(kind) for kind in ("flash", "efficient", "cudnn")),
    f"{_ATTENTION.format('flash')}_for_cpu",
)
Size = Sequence[int]


def unit_of(shape: Shape) -> str:
    """What the model reads one of: a token, an image or a clip of sound or video."""
    if isinstance(shape, CountedShape):
        return "token" if shape.text else "clip" if shape.sound_s or shape.frames else "image"
    return "token" if isinstance(shape, TransformerShape) else "image"


def forward_flop_by_part(
    shape: Shape, batch: int = 1, sequence: int | None = None, *, causal: bool = False
) -> dict[str, int] | Unknown:
    """FLOP of one forward pass over `batch` sequences (or images) by part; parts without work are left out."""
    if batch < 1:
        raise InputError(f"a batch of {batch} holds nothing", hint="give a batch of at least 1")
    if isinstance(shape, TransformerShape):
        if sequence is None or sequence < 1:
            problem = "no sequence length was given" if sequence is None else f"a sequence of {sequence} holds nothing"
            raise InputError(problem, hint="give how many tokens a sequence has, such as 4096")
        parts = _transformer(shape, sequence, causal=causal)
    elif isinstance(shape, VitShape):
        parts = _vit(shape)
    elif isinstance(shape, CnnShape):
        parts = _cnn(shape)
    else:
        return _no_formula(shape)
    return {name: FLOP_PER_MULTIPLY_ADD * batch * adds for name, adds in parts.items() if adds}


def forward_flop(shape: Shape, batch: int = 1, sequence: int | None = None, *, causal: bool = False) -> int | Unknown:
    """FLOP of one forward pass over `batch` sequences of `sequence` tokens, or over `batch` images."""
    parts = forward_flop_by_part(shape, batch, sequence, causal=causal)
    return parts if isinstance(parts, Unknown) else sum(parts.values())


def training_flop(
    shape: Shape, batch: int = 1, sequence: int | None = None, *, causal: bool = False, recompute: bool = False
) -> int | Unknown:
    """FLOP of one training step; with `recompute`, what the hardware does when activations are computed again."""
    once = forward_flop(shape, batch, sequence, causal=causal)
    return once if isinstance(once, Unknown) else once * (RECOMPUTED_PASSES if recompute else TRAINING_PASSES)


def attended_pairs(sequence: int, window: int | None, *, causal: bool) -> int:
    """How many pairs of a token and a token it looks at there are in one sequence."""
    reach = min(sequence, window or sequence)
    if not causal:
        return sequence * reach
    # The first tokens see fewer: 1, 2, ... up to the reach, then the reach each.
    return reach * (reach + 1) // 2 + (sequence - reach) * reach


def _transformer(s: TransformerShape, sequence: int, *, causal: bool) -> dict[str, int]:
    """Multiply-adds over one sequence."""
    wide = s.mla.qk_dim + s.mla.v_dim if s.mla else 2 * s.head_dim
    pairs = s.full_layers * attended_pairs(sequence, None, causal=causal)
    pairs += s.sliding_layers * attended_pairs(sequence, s.sliding_window, causal=causal)
    expert = mlp_matrix_params(s.hidden, s.expert_hidden, gated=s.mlp_gated)
    return {
        "attention_projections": sequence * s.layers * attention_matrix_params(s),
        "attention_scores": s.heads * wide * pairs,
        "mlp": sequence * s.dense_layers * mlp_matrix_params(s.hidden, s.mlp_hidden, gated=s.mlp_gated),
        "experts": sequence * s.moe_layers * (s.experts_per_token + s.shared_experts) * expert,
        "router": sequence * s.moe_layers * s.hidden * s.experts,
        "head": sequence * s.hidden * s.vocab,
    }


def _vit(s: VitShape) -> dict[str, int]:
    """Multiply-adds over one image; every patch sees every patch."""
    patches = s.tokens - s.class_tokens
    return {
        "patches": patches * s.patch * s.patch * s.channels * s.hidden,
        "attention_projections": s.tokens * s.layers * 4 * s.hidden * s.hidden,
        "attention_scores": s.layers * 2 * s.tokens * s.tokens * s.hidden,
        "mlp": s.tokens * s.layers * mlp_matrix_params(s.hidden, s.mlp_hidden, gated=False),
        "head": s.hidden * s.classes,
    }


def _cnn(s: CnnShape) -> dict[str, int]:
    """Multiply-adds over one image."""
    parts: Counter[str] = Counter()
    for conv in convolutions(s):
        parts[f"conv_{conv.part}"] += conv.multiply_adds
    return {**parts, "head": s.widths[-1] * s.classes}


def _no_formula(shape: DiffusionShape | CountedShape) -> Unknown:
    if isinstance(shape, CountedShape):
        return Unknown(f"no formula is known for {shape.built_as}; its step is traced instead")
    parts = ", ".join(part.name for part in shape.components)
    return Unknown(f"no formula is known for a pipeline of {parts}; count the module itself (training.flops.count)")


def count(run: Callable[[], Any], *, hardware: bool = False) -> int:
    """FLOP of whatever `run` does, backward passes within it included.

    Fused attention computes its scores a second time on the way back. That is the hardware's work and not the
    model's, so it counts only with `hardware` (for HFU). Checkpointed layers that run again always count: where
    activations are recomputed, compare with the formulas. Hand-written kernels and some fused attention libraries are
    invisible to torch and count as nothing: count the plain version of the module instead. On the meta device a module
    of any size is counted without memory for it.
    """
    torch = need_torch("counting the FLOP of a module")
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False, custom_mapping=formulas(torch.ops.aten, hardware=hardware)) as counter:
        run()
    return int(counter.get_total_flops())


def formulas(aten: Any, *, hardware: bool) -> dict[Any, Callable[..., int]]:
    """What torch omits or counts differently, by operator; operators this torch does not have are skipped."""

    def back(_grad: Size, query: Size, key: Size, value: Size, *_rest: Any, **_named: Any) -> int:
        scores = _product(query, key[-2], query[-1]) if hardware else 0
        return 2 * _attention(query, key, value) + scores

    wanted: dict[str, Callable[..., int]] = dict.fromkeys(_ATTENTIONS, _attention)
    wanted |= {f"{name}_backward": back for name in _ATTENTIONS}
    return {getattr(aten, name): formula for name, formula in wanted.items() if hasattr(aten, name)} | in_groups(aten)


def in_groups(aten: Any) -> dict[Any, Callable[..., int]]:
    """Products in groups, which torch's own counter leaves out or counts as if each group met all channels."""
    wanted: dict[str, Callable[..., int]] = {"_grouped_mm": _grouped, "convolution_backward": _convolution_back}
    return {getattr(aten, name): formula for name, formula in wanted.items() if hasattr(aten, name)}


def _attention(query: Size, key: Size, value: Size, *_rest: Any, **_named: Any) -> int:
    """Scores, then values; keys and values may have fewer heads than queries."""
    return _product(query, key[-2], query[-1]) + _product(query, key[-2], value[-1])


def _product(query: Size, keys: int, wide: int) -> int:
    batch, heads, queries, _ = query
    return FLOP_PER_MULTIPLY_ADD * batch * heads * queries * keys * wide


def _grouped(left: Size, right: Size, *_rest: Any, **_named: Any) -> int:
    """A product in groups: rows are shared out among the groups unless both sides have one matrix per group."""
    groups = left[0] if len(left) == len(right) == 3 else 1
    return FLOP_PER_MULTIPLY_ADD * groups * left[-2] * left[-1] * right[-1]


def _convolution_back(
    grad: Size, image: Size, weight: Size, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
    _more: Any, _groups: int, wanted: Sequence[bool], *_rest: Any, **_named: Any,
) -> int:  # fmt: skip
    """Each of the gradients of image and weight takes the products of the forward pass once more."""
    places = prod((image if transposed else grad)[2:])
    return FLOP_PER_MULTIPLY_ADD * grad[0] * places * prod(weight) * sum(map(bool, wanted[:2]))
