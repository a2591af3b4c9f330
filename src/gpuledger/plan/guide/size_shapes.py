"""What would a dense model of so many parameters look like, where only their number is given?

Hidden width and depth keep the proportion of Llama 2 70B (8192 wide, 80 layers), heads are 128 wide, keys and values
are shared by groups (8 heads of them), the MLP is gated and takes what parameters are left. Memory of caches and
activations follows from that; the parameters themselves are exactly those given.
"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import Fact
from gpuledger.catalog.models import Component, Model, TransformerShape
from gpuledger.catalog.models.params import total_params

HEAD_DIM, KV_HEADS, VOCAB, CONTEXT = 128, 8, 32_000, 32_768
WIDTH_PER_LAYER = 8192 / 80
# A multiple of this keeps heads and MLP divisible among up to eight GPUs.
WIDTH_STEP, MLP_STEP = 1024, 256
SMALLEST_PARAMS = 100_000_000
WORDS = (
    "only the number of parameters is given, so the model is taken to be dense, in the proportions of Llama 2 70B, "
    "with 8 key-value heads and a vocabulary of 32,000"
)


@cache
def dense_model(name: str, params: int) -> Model:
    """A dense model of exactly so many parameters."""
    width = (params * WIDTH_PER_LAYER / 12) ** (1 / 3)
    hidden = max(WIDTH_STEP, round(width / WIDTH_STEP) * WIDTH_STEP)
    layers = max(1, round((params - 2 * VOCAB * hidden) / (12 * hidden * hidden)))
    shape = _shape(hidden, layers, MLP_STEP)
    spare = params - total_params(shape)
    more = max(0, spare // (3 * hidden * layers) // MLP_STEP) * MLP_STEP
    shape = _shape(hidden, layers, MLP_STEP + more)
    rest = params - total_params(shape)
    source = "derived from the number of parameters"
    fact = Fact(max(rest, 0), source, "2026-11", note="what whole widths leave over")
    beside = (Component(name="rest", role="rest", params=fact),) if rest > 0 else ()
    return Model(name=name, shape=shape, beside=beside, source=source, as_of="2026-11")


def _shape(hidden: int, layers: int, mlp_hidden: int) -> TransformerShape:
    return TransformerShape(
        layers=layers,
        hidden=hidden,
        heads=hidden // HEAD_DIM,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        mlp_hidden=mlp_hidden,
        mlp_gated=True,
        vocab=VOCAB,
        tied_embeddings=False,
        max_context=CONTEXT,
    )


def is_derived(model: Model) -> bool:
    """Whether the shape was made up from a number of parameters."""
    return model.source == "derived from the number of parameters"


def with_name(model: Model, name: str) -> Model:
    """The same model under another name."""
    return msgspec.structs.replace(model, name=name)
