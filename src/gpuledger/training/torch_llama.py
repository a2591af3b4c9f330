"""How does a Llama-shaped model run in plain torch: prefill, then one token at a time from a cache?

Functions over tensors, no modules: the whole step of one token for a batch is captured once as a CUDA graph, so that
launching its few hundred kernels costs nothing and what is left is reading the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpuledger.catalog.models.shapes import TransformerShape
from gpuledger.errors import InputError

EPS = 1e-5
ROPE_BASE = 500_000.0
INIT_STD = 0.02


@dataclass(frozen=True)
class Layer:
    """The weights of one layer; matrices with the same input are joined."""

    norm: Any
    qkv: Any
    out: Any
    norm_mlp: Any
    gate_up: Any
    down: Any


@dataclass(frozen=True)
class Weights:
    """A model's weights."""

    embedding: Any
    layers: tuple[Layer, ...]
    norm: Any
    head: Any

    @property
    def tensors(self) -> list[Any]:
        """Each tensor once."""
        inner = [t for layer in self.layers for t in vars(layer).values()]
        found = [self.embedding, *inner, self.norm, self.head]
        return list({id(t): t for t in found}.values())

    @property
    def params(self) -> int:
        """How many parameters there are."""
        return sum(t.numel() for t in self.tensors)

    @property
    def read_bytes(self) -> int:
        """What one step of decoding reads: everything but the embedding's other rows."""
        return sum(t.numel() * t.element_size() for t in self.tensors if t is not self.embedding or t is self.head)


def check_shape(shape: TransformerShape) -> None:
    """Refuse what this small model does not support."""
    beyond = [
        (bool(shape.experts), "experts"), (shape.mla is not None, "latent attention"),
        (not shape.mlp_gated, "plain MLPs"), (bool(shape.learned_positions), "learned positions"),
        (shape.qk_norm, "normed queries"), (shape.attention_bias or shape.output_bias or shape.mlp_bias, "biases"),
        (shape.attention_sinks, "attention sinks"), (shape.norms_per_layer != 2, "further norms"),
    ]  # fmt: skip
    names = [name for there, name in beyond if there]
    if names:
        hint = "use a Llama-shaped one: llama-3.1-8b"
        raise InputError(f"the local model runner has no {', '.join(names)}", hint=hint)


def random_weights(torch: Any, shape: TransformerShape, device: Any, dtype: Any, seed: int) -> Weights:
    """Random weights: as fast as trained ones of the same shape."""
    check_shape(shape)
    # Tensors without storage (meta) have shapes and no values: nothing to draw.
    dice = None if device.type == "meta" else torch.Generator(device=device).manual_seed(seed)

    def matrix(rows: int, columns: int) -> Any:
        return torch.empty(rows, columns, device=device, dtype=dtype).normal_(0.0, INIT_STD, generator=dice)

    def ones() -> Any:
        return torch.ones(shape.hidden, device=device, dtype=dtype)

    wide, heads = shape.heads * shape.head_dim, (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    layers = tuple(
        Layer(
            norm=ones(), qkv=matrix(heads, shape.hidden), out=matrix(shape.hidden, wide), norm_mlp=ones(),
            gate_up=matrix(2 * shape.mlp_hidden, shape.hidden), down=matrix(shape.hidden, shape.mlp_hidden),
        )
        for _ in range(shape.layers)
    )  # fmt: skip
    embedding = matrix(shape.vocab, shape.hidden)
    head = embedding if shape.tied_embeddings else matrix(shape.vocab, shape.hidden)
    return Weights(embedding, layers, ones(), head)


def _turn(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Rotary positions."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def _layer(torch: Any, shape: TransformerShape, batch: int) -> Callable[..., Any]:
    """One layer of one token [batch, 1, hidden], as a function of tensors alone, so that it can be compiled.

    The new key and value go into the cache. The queries of a group share their keys: as rows of one product, so that
    the cache is read once.
    """
    heads, kv_heads, head_dim, functional = shape.heads, shape.kv_heads, shape.head_dim, torch.nn.functional
    hidden, scale = shape.hidden, shape.head_dim**-0.5

    def step(x: Any, w: tuple[Any, ...], keys: Any, values: Any, place: Any, cos: Any, sin: Any, mask: Any) -> Any:
        norm, qkv, out, norm_mlp, gate_up, down = w
        joint = functional.linear(functional.rms_norm(x, (hidden,), norm, EPS), qkv)
        joint = joint.view(batch, 1, heads + 2 * kv_heads, head_dim).transpose(1, 2)
        q, k, v = joint.split((heads, kv_heads, kv_heads), dim=1)
        keys[:, :, place], values[:, :, place] = _turn(torch, k, cos, sin), v
        grouped = _turn(torch, q, cos, sin).reshape(batch, kv_heads, heads // kv_heads, head_dim)
        scores = (grouped @ keys.transpose(-1, -2)) * scale + mask
        seen = (scores.softmax(dim=-1) @ values).reshape(batch, 1, heads * head_dim)
        x = x + functional.linear(seen, out)
        gate, up = functional.linear(functional.rms_norm(x, (hidden,), norm_mlp, EPS), gate_up).chunk(2, dim=-1)
        return x + functional.linear(functional.silu(gate) * up, down)

    return step


class Llama:
    """A model with its cache for one batch size. Everything is allocated once and reused."""

    def __init__(self, torch: Any, shape: TransformerShape, weights: Weights, batch: int, context: int) -> None:
        self._torch, self.shape, self.weights = torch, shape, weights
        self.batch, self.context = batch, context
        device, dtype = weights.embedding.device, weights.embedding.dtype
        cache = (batch, shape.kv_heads, context, shape.head_dim)
        self.keys = [torch.zeros(cache, device=device, dtype=dtype) for _ in weights.layers]
        self.values = [torch.zeros(cache, device=device, dtype=dtype) for _ in weights.layers]
        self.tokens = torch.zeros(batch, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self._places = torch.arange(context, device=device)
        turns = ROPE_BASE ** (-torch.arange(0, shape.head_dim, 2, device=device).float() / shape.head_dim)
        angles = torch.outer(self._places.float(), turns)
        self._cos, self._sin = (f(angles).repeat(1, 2).to(dtype) for f in (torch.cos, torch.sin))
        self._flat = [tuple(vars(layer).values()) for layer in weights.layers]
        self.layer = _layer(torch, shape, batch)

    def prefill(self, prompt: Any) -> None:
        """Read the prompt [batch, length] and choose the first token."""
        functional, s, length = self._torch.nn.functional, self.shape, prompt.shape[1]
        x = functional.embedding(prompt, self.weights.embedding)
        cos, sin = self._cos[:length], self._sin[:length]
        for i, layer in enumerate(self.weights.layers):
            joint = functional.linear(self._norm(x, layer.norm), layer.qkv)
            joint = joint.view(*prompt.shape, s.heads + 2 * s.kv_heads, s.head_dim).transpose(1, 2)
            q, k, v = joint.split((s.heads, s.kv_heads, s.kv_heads), dim=1)
            q, k = _turn(self._torch, q, cos, sin), _turn(self._torch, k, cos, sin)
            self.keys[i][:, :, :length], self.values[i][:, :, :length] = k, v
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + functional.linear(seen.transpose(1, 2).flatten(2), layer.out)
            gate, up = functional.linear(self._norm(x, layer.norm_mlp), layer.gate_up).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, layer.down)
        self.place.fill_(length)
        self._choose(x[:, -1])

    def _norm(self, x: Any, weight: Any) -> Any:
        return self._torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, EPS)

    def _choose(self, x: Any) -> None:
        logits = self._torch.nn.functional.linear(self._norm(x, self.weights.norm), self.weights.head)
        self.tokens.copy_(logits.argmax(dim=-1))

    def step(self) -> None:
        """One more token for each of the batch, from the last one."""
        torch = self._torch
        x = torch.nn.functional.embedding(self.tokens, self.weights.embedding).unsqueeze(1)
        cos, sin = self._cos.index_select(0, self.place), self._sin.index_select(0, self.place)
        mask = torch.zeros_like(self._places, dtype=x.dtype).masked_fill(self._places > self.place, float("-inf"))
        for w, keys, values in zip(self._flat, self.keys, self.values, strict=True):
            x = self.layer(x, w, keys, values, self.place, cos, sin, mask)
        self._choose(x[:, 0])
        self.place.add_(1)
