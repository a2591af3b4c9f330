"""What must a training step keep of its forward pass, and what does it hold for a moment only?

Korthikanti et al. 2022 (arXiv 2205.05198), equations 1, 2 and 4, written out by tensor so that gated MLPs, grouped
heads, latent attention, experts and unfused kernels count as what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

import msgspec

from gpuledger.catalog.models import CnnShape, CountedShape, Model, TransformerShape, VitShape
from gpuledger.catalog.models.params import convolutions
from gpuledger.plan.memory.facts import Kept, get_precision, kept
from gpuledger.plan.memory.weights import Stage
from gpuledger.plan.setup import Setup
from gpuledger.plan.tracing import keeps_traced, traced_step
from gpuledger.units import Unknown

FP32_BYTES = 4


@dataclass(frozen=True)
class Activations:
    """Bytes kept for the backward pass, and the most that is held for a moment in addition."""

    kept_bytes: int
    working_bytes: int


def work_bytes(setup: Setup) -> float:
    """Bytes of one activation: what the run trains in."""
    return get_precision(get_precision(setup.precision).train_as).bits / 8


def activations(model: Model, setup: Setup, stage: Stage) -> Activations | Unknown:
    """What a stage keeps and holds in a training step."""
    shape = model.shape
    if keeps_traced(model, setup):
        step = traced_step(model, replace(setup, accumulate=True))
        if not isinstance(step, Unknown):
            return Activations(step.kept_bytes, step.working_bytes)
        if isinstance(shape, CountedShape):
            return step
    if isinstance(shape, TransformerShape):
        return _stack(_Layers(shape, setup, setup.sequence, model.kept), stage, head=shape.vocab)
    if isinstance(shape, VitShape):
        return _stack(_Layers(_as_transformer(shape), setup, shape.tokens, model.kept), stage, head=0)
    if isinstance(shape, CnnShape):
        return _convolutions(shape, setup)
    why = f"no closed form for what {model.name} keeps: it depends on the image and on how its parts are written"
    return Unknown(why)


def _as_transformer(s: VitShape) -> TransformerShape:
    return TransformerShape(
        layers=s.layers, hidden=s.hidden, heads=s.heads, kv_heads=s.heads, head_dim=s.hidden // s.heads,
        mlp_hidden=s.mlp_hidden, mlp_gated=False, vocab=s.classes, tied_embeddings=False, max_context=s.tokens,
        norm_bias=True,
    )  # fmt: skip


# A GELU written out raises to a power, which autocast does in fp32, and so is about half of what it keeps.
_AUTOCAST_POWER = 1.5


@dataclass(frozen=True)
class _Layers:
    """The layers of one shape under one setup, with `length` tokens in a sequence."""

    shape: TransformerShape
    setup: Setup
    length: int
    own: Mapping[str, float] = field(default_factory=dict)

    @property
    def table(self) -> Kept:
        """What applies to these kernels, with what a type does differently in plain torch."""
        usual = kept(self.setup.kept_by)
        if self.own and self.setup.kept_by == "eager":
            return msgspec.structs.replace(usual, **self.own)
        more = self.own.get("plain_work", 0.0) - usual.plain_work
        if self.setup.kept_by == "autocast" and more > 0:
            return msgspec.structs.replace(usual, plain_work=usual.plain_work + _AUTOCAST_POWER * more)
        return usual

    @property
    def tokens(self) -> int:
        return self.setup.micro_batch * self.length

    @property
    def whole(self) -> int:
        """Into how many pieces the tensors outside the parallel region are cut."""
        return self.setup.tensor if self.setup.sequence_parallel else 1

    def norm_bytes(self) -> float:
        """Per token and hidden unit of one norm."""
        table, w = self.table, work_bytes(self.setup)
        if self.setup.lora_rank:
            return FP32_BYTES * table.norm_frozen_fp32 + w * table.norm_frozen_work
        return FP32_BYTES * table.norm_fp32 + w * table.norm_work

    def layer(self, *, moe: bool) -> int:
        """Bytes one layer keeps for one micro-batch on one GPU."""
        s, w, t = self.shape, work_bytes(self.setup), self.setup.tensor
        outside = s.norms_per_layer * s.hidden * self.norm_bytes()
        outside += 2 * s.hidden if self.setup.dropout else 0  # two masks of one byte
        inside = self.attention() / t + self.mlp(moe=moe) / t
        if s.mla is not None:  # the latents are the same on every GPU
            outside += (s.mla.q_lora_rank + s.mla.kv_lora_rank) * self.norm_bytes() + s.mla.qk_rope_dim * w
        if moe:
            outside += 2 * FP32_BYTES * s.experts  # the router's logits and their softmax
        return ceil(self.tokens * (outside / self.whole + inside))

    def attention(self) -> float:
        """Bytes per token: queries, keys, values and the output; then the scores, or their log-sum."""
        s, w = self.shape, work_bytes(self.setup)
        full = self.setup.attention == "full"
        kv = s.heads if full and self.setup.kept_by != "fused" else s.kv_heads  # repeated to all heads
        if s.mla is None:
            kept_bytes = w * s.head_dim * (2 * s.heads + 2 * kv)
        else:
            kept_bytes = w * s.heads * (2 * s.mla.qk_dim + 2 * s.mla.v_dim)
        if s.qk_norm:
            kept_bytes += s.head_dim * (s.heads + s.kv_heads) * (self.norm_bytes() - w)
        if not full:
            return kept_bytes + FP32_BYTES * s.heads
        score = FP32_BYTES * self.table.score_fp32 + w * self.table.score_work
        score += 1 + w if self.setup.dropout else 0
        return kept_bytes + s.heads * self.length * score

    def mlp(self, *, moe: bool) -> float:
        """Bytes per token inside the MLP, or inside the experts a token goes to (evenly loaded)."""
        s, w = self.shape, work_bytes(self.setup)
        each = w * (self.table.gated_work if s.mlp_gated else self.table.plain_work)
        if not moe:
            return each * s.mlp_hidden
        routed = s.experts_per_token * (each * s.expert_hidden + 2 * w * s.hidden)  # sorted inputs, and outputs
        return routed + each * s.expert_hidden * s.shared_experts

    def transient(self, *, moe: bool) -> int:
        """What one layer's backward pass holds at a time."""
        s, w = self.shape, work_bytes(self.setup)
        wide = s.experts_per_token * s.expert_hidden + s.shared_experts * s.expert_hidden if moe else s.mlp_hidden
        units = self.table.transient_work * wide / self.setup.tensor + 2 * s.hidden
        return ceil(self.tokens * w * units)

    def loss(self, vocab: int) -> int:
        """The logits and their gradients at the loss."""
        per_logit = FP32_BYTES * self.table.logit_fp32 + work_bytes(self.setup) * self.table.logit_work
        return ceil(self.tokens * per_logit * -(-vocab // self.setup.tensor))

    def checkpoint(self) -> int:
        """The input of one layer, all that full recomputation keeps of it."""
        return ceil(self.tokens * work_bytes(self.setup) * self.shape.hidden / self.whole)


def _stack(layers: _Layers, stage: Stage, head: int) -> Activations:
    sizes = [layers.layer(moe=moe) for moe, count in ((False, stage.dense), (True, stage.moe)) if count]
    transient = max((layers.transient(moe=moe) for moe, n in ((False, stage.dense), (True, stage.moe)) if n), default=0)
    final = ceil(layers.tokens * layers.shape.hidden * layers.norm_bytes() / layers.whole) if stage.last else 0
    loss = layers.loss(head) if stage.last and head else 0
    if layers.setup.recompute:
        keeps = stage.in_flight * stage.layers * layers.checkpoint() + final
        return Activations(keeps, max(loss, max(sizes, default=0) + transient))
    dense = stage.dense * layers.layer(moe=False) if stage.dense else 0
    moe = stage.moe * layers.layer(moe=True) if stage.moe else 0
    return Activations(stage.in_flight * (dense + moe) + final, max(loss, transient))


def _convolutions(s: CnnShape, setup: Setup) -> Activations | Unknown:
    """Each convolution's output, kept for its BatchNorm, and that one's output, kept for the next convolution."""
    if setup.recompute:
        return Unknown("recomputation of a convolutional network has no one agreed form")
    w = work_bytes(setup)
    outputs = [conv.channels_out * conv.image * conv.image for conv in convolutions(s)]
    image = s.channels * s.image * s.image
    keeps = ceil(setup.micro_batch * w * (2 * sum(outputs) + image))
    return Activations(keeps, ceil(setup.micro_batch * w * 2 * max(outputs)))
