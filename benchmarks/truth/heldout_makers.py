"""How are workloads run that only the held-out lists have: batched products, models of transformers, an encoder?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (everybody calls it so)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from truth_workloads import DEVICE, DTYPES, Turn, lm


def counted(turn: Callable[[], Any]) -> Turn:
    """Count with attention written out: the counter does not know grouped keys in the fused kernels."""
    turn()
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        turn()
    return turn, float(counter.get_total_flops())


def bmm(kind: str, batch: int, n: int) -> Turn:
    """Many products of one size in one call."""
    a, b = (torch.randn(batch, n, n, device=DEVICE).to(DTYPES[kind]) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.bmm(a, b, out=out), 2.0 * batch * n**3


def llama(kind: str, width: int, layers: int, batch: int, seq: int, train: bool = True, wait_s: float = 0.0) -> Turn:
    """The library's Llama: grouped keys and values, gated MLP, rotary positions, RMS norms."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": width // 128}
    config = LlamaConfig(
        **shape, num_key_value_heads=width // 512, intermediate_size=width * 11 // 4 // 128 * 128, vocab_size=32000
    )
    with torch.device(DEVICE):
        model = LlamaForCausalLM(config)
        tokens = torch.randint(0, 32000, (batch, seq))
    half = kind in ("bf16", "fp16")
    if not train:
        model = model.to(DTYPES[kind]).eval()
        with torch.no_grad():
            turn, flop = counted(lambda: model(tokens))
        return torch.no_grad()(turn), flop
    return counted(_training(model, lambda: model(tokens, labels=tokens).loss, DTYPES[kind] if half else None, wait_s))


def hugging_face(
    model: str,
    kind: str,
    batch: int,
    seq: int,
    shape: Mapping[str, Any],
    train: bool = True,
    how: str = "",
) -> Turn:
    """A model of transformers by its class and what its configuration differs in; half precision by autocast.

    `how`: compiled, checkpointed (activations made again in the backward pass, which counts as work), or pure (weights
    in the precision itself, no autocast).
    """
    import transformers

    made = getattr(transformers, model)
    with torch.device(DEVICE):
        net = made(made.config_class(**shape))
        tokens = torch.randint(0, 30000, (batch, seq))
    net = net.train(train)
    if not train:
        net = net.to(DTYPES[kind])
        with torch.no_grad():
            turn, flop = counted(lambda: net(tokens))
        return torch.no_grad()(turn), flop
    half = DTYPES[kind] if kind in ("bf16", "fp16") and how != "pure" else None
    if how == "pure":
        net = net.to(DTYPES[kind])
    if how == "checkpointed":
        net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    turn, flop = counted(_training(net, lambda: net(input_ids=tokens, labels=tokens).loss, half, 0.0))
    if how == "compiled":
        quick = torch.compile(net)
        turn = _training(net, lambda: quick(input_ids=tokens, labels=tokens).loss, half, 0.0)
    return turn, flop


def decoding(kind: str, width: int, layers: int, batch: int) -> Turn:
    """One token for each of `batch` users, all kernels of a step launched as one graph."""
    turn, flop = lm(kind, width, layers, batch, 1, train=False)
    return _as_graph(turn), flop


def cached(kind: str, width: int, layers: int, batch: int, past: int) -> Turn:
    """One token for each of `batch` users over `past` tokens in the cache, as one graph."""
    heads, mlp = width // 128, 4 * width
    with torch.device(DEVICE), torch.no_grad():
        shapes = ((width, 3 * width), (width, width), (width, mlp), (mlp, width))
        weights = [[torch.randn(s, dtype=DTYPES[kind]) * 0.02 for s in shapes] for _ in range(layers)]
        caches = [torch.randn(2, batch, heads, past, 128, dtype=DTYPES[kind]) for _ in range(layers)]
        x = torch.randn(batch, width, dtype=DTYPES[kind])

    def step() -> torch.Tensor:
        y = x
        for (qkv, out, up, down), (keys, values) in zip(weights, caches, strict=True):
            q = (F.rms_norm(y, (width,)) @ qkv)[:, :width].view(batch, heads, 1, 128)
            y = y + F.scaled_dot_product_attention(q, keys, values).reshape(batch, width) @ out
            y = y + F.gelu(F.rms_norm(y, (width,)) @ up) @ down
        return y

    turn, flop = counted(step)
    return _as_graph(turn), flop


def encoder(kind: str, width: int, layers: int, batch: int, seq: int) -> Turn:
    """torch's own encoder, every token sees every other."""
    with torch.device(DEVICE):
        layer = torch.nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, F.gelu, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        x = torch.randn(batch, seq, width)
    half = DTYPES[kind] if kind in ("bf16", "fp16") else None
    return counted(_training(model, lambda: model(x).float().pow(2).mean(), half, 0.0))


def _as_graph(turn: Callable[[], Any]) -> Callable[[], None]:
    """All kernels of a turn, launched at once."""
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        turn()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        turn()
    return graph.replay


def _training(
    model: torch.nn.Module, loss: Callable[[], Any], half: torch.dtype | None, wait_s: float
) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        if wait_s:
            torch.cuda.synchronize()
            time.sleep(wait_s)
        with torch.autocast("cuda", dtype=half, enabled=half is not None):
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


MAKERS: dict[str, Callable[..., Turn]] = {
    maker.__name__: maker for maker in (bmm, cached, decoding, encoder, hugging_face, llama)
}
