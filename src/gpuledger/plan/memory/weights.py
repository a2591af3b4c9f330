"""How many of a model's parameters does one GPU hold, after tensor and pipeline parallel split them?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.models import CnnShape, CountedShape, Model, TransformerShape, VitShape
from gpuledger.catalog.models.params import attention_matrix_params, component_params, params_by_part

DENOISER = "denoiser"


@dataclass(frozen=True)
class Stage:
    """One pipeline stage: its layers without and with experts, and whether it reads tokens or writes logits."""

    dense: int
    moe: int
    first: bool
    last: bool
    in_flight: int  # micro-batches whose activations it holds at a time

    @property
    def layers(self) -> int:
        """All its layers."""
        return self.dense + self.moe


@dataclass(frozen=True)
class Held:
    """Parameters one GPU holds: in matrices that can be quantized, and the rest; what is frozen in any case.

    unit is the largest piece gathered at a time under ZeRO 3, None where the model has no equal layers. rank_one is
    what LoRA of rank 1 adds; edges are rows plus columns of all matrices, what a factored optimizer keeps. experts are
    those of the matrices that are in experts.
    """

    matrices: int
    rest: int
    frozen: int
    unit: int | None
    rank_one: int
    edges: int | None
    experts: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.matrices + self.rest + self.frozen


def stages(model: Model, pipeline: int) -> list[Stage]:
    """The pipeline's stages; layers with experts are spread evenly, rounded up. 1F1B: stage i holds pipeline - i."""
    shape = model.shape
    if not isinstance(shape, TransformerShape | VitShape):
        return [Stage(0, 0, True, True, 1)]
    moe_layers = shape.moe_layers if isinstance(shape, TransformerShape) else 0
    found = []
    for i in range(pipeline):
        layers = shape.layers // pipeline + (1 if i < shape.layers % pipeline else 0)
        moe = min(-(-moe_layers * layers // shape.layers), layers)
        found.append(Stage(layers - moe, moe, i == 0, i == pipeline - 1, pipeline - i))
    return found


def held(model: Model, stage: Stage, tensor: int) -> Held:
    """The parameters of one GPU of a stage."""
    shape = model.shape
    if isinstance(shape, TransformerShape):
        return _transformer(model, shape, stage, tensor)
    if isinstance(shape, VitShape):
        return _vit(model, shape, stage, tensor)
    if isinstance(shape, CnnShape):
        parts = params_by_part(shape)
        rest = parts["norms"]
        return Held(model.params_total - rest, rest, 0, None, 0, None)
    if isinstance(shape, CountedShape):
        frozen = sum(round(part.params.value) for part in model.extra)
        frozen += shape.denoising.buffers if shape.denoising else 0
        return Held(shape.matrices, shape.rest, frozen, shape.block or None, 0, shape.edges)
    # Only the denoiser of a pipeline is trained; text encoders and the image decoder stay as they are.
    trained = component_params(shape, DENOISER) or sum(round(part.params.value) for part in shape.components)
    return Held(trained, 0, model.params_total - trained, None, 0, None)


def _split(params: int, tensor: int) -> int:
    return -(-params // tensor)


def attention_share(shape: TransformerShape, tensor: int) -> int:
    """Matrix parameters of one layer's attention on one GPU; key-value heads are repeated where there are too few."""
    if shape.mla is None:
        own_kv = max(1, shape.kv_heads // tensor)
        return shape.hidden * shape.head_dim * (2 * shape.heads // tensor + 2 * own_kv)
    mla = shape.mla
    latent = shape.hidden * (mla.q_lora_rank + mla.kv_lora_rank + mla.qk_rope_dim)  # every GPU needs these whole
    return latent + _split(attention_matrix_params(shape) - latent, tensor)


def _transformer(model: Model, s: TransformerShape, stage: Stage, tensor: int) -> Held:
    parts = params_by_part(s)
    dense = _split(parts.get("mlp", 0) // s.dense_layers, tensor) if s.dense_layers else 0
    experts = sum(parts.get(name, 0) for name in ("experts", "shared_experts"))
    moe = _split(experts // s.moe_layers, tensor) if s.moe_layers else 0
    router = parts.get("router", 0) // s.moe_layers if s.moe_layers else 0
    attention = attention_share(s, tensor)
    biases = parts["attention"] // s.layers - attention_matrix_params(s)
    norm = s.hidden * (2 if s.norm_bias else 1) * (2 if s.embedding_norm else 1)
    norms = (parts.get("norms", 0) - norm) // s.layers
    table = _split(s.vocab, tensor) * s.hidden
    matrices = stage.layers * attention + stage.dense * dense + stage.moe * moe
    rest = stage.layers * (norms + biases) + stage.moe * router
    if stage.first:
        rest += table + parts.get("positions", 0) + sum(round(part.params.value) for part in model.extra)
    if stage.last:
        rest += norm + (0 if stage.first and s.tied_embeddings else table) + (s.vocab if s.head_bias else 0)
    unit = max(attention + dense if stage.dense else 0, attention + moe if stage.moe else 0, table)
    shared = _edges_of_layer(s, tensor, moe=False) * stage.dense + _edges_of_layer(s, tensor, moe=True) * stage.moe
    adapted = _edges_of_layer(s, tensor, moe=False) * stage.dense + _attention_edges(s, tensor) * stage.moe
    tables = (int(stage.first) + int(stage.last and not (stage.first and s.tied_embeddings))) * (
        _split(s.vocab, tensor) + s.hidden
    )
    return Held(matrices, rest, 0, unit, adapted, shared + tables, stage.moe * moe)


def _attention_edges(s: TransformerShape, tensor: int) -> int:
    """Rows plus columns of one layer's attention matrices."""
    h, own = s.hidden, s.heads // tensor
    if s.mla is None:
        own_kv = max(1, s.kv_heads // tensor)
        return 2 * (h + own * s.head_dim) + 2 * (h + own_kv * s.head_dim)
    m = s.mla
    queries = (h + m.q_lora_rank) + (m.q_lora_rank + own * m.qk_dim) if m.q_lora_rank else h + own * m.qk_dim
    latent = h + m.kv_lora_rank + m.qk_rope_dim
    return queries + latent + m.kv_lora_rank + own * (m.qk_nope_dim + m.v_dim) + own * m.v_dim + h


def _edges_of_layer(s: TransformerShape, tensor: int, *, moe: bool) -> int:
    each = 3 if s.mlp_gated else 2
    if not moe:
        return _attention_edges(s, tensor) + each * (s.hidden + _split(s.mlp_hidden, tensor))
    whole = s.experts * each * (s.hidden + s.expert_hidden)
    shared = each * (s.hidden + s.expert_hidden * s.shared_experts) if s.shared_experts else 0
    return _attention_edges(s, tensor) + _split(whole + shared, tensor) + s.experts + s.hidden


def _vit(model: Model, s: VitShape, stage: Stage, tensor: int) -> Held:
    parts = params_by_part(s)
    matrices = 4 * s.hidden * s.hidden + 2 * s.hidden * s.mlp_hidden
    layer = (parts["attention"] + parts["mlp"] + parts["norms"] - 2 * s.hidden) // s.layers
    share = _split(matrices, tensor)
    rest = stage.layers * (layer - matrices)
    if stage.first:
        rest += parts["patches"] + parts["positions"] + sum(round(part.params.value) for part in model.extra)
    if stage.last:
        rest += 2 * s.hidden + parts["head"]
    own = s.hidden // tensor
    edges = stage.layers * (4 * (s.hidden + own) + 2 * (s.hidden + _split(s.mlp_hidden, tensor)))
    return Held(stage.layers * share, rest, 0, share, edges, edges)
