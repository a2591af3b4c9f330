"""Do the closed formulas give what a pencil gives, and what was published?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.models import TransformerShape, get_model, load_models
from gpuledger.errors import InputError
from gpuledger.training.flops import (
    attended_pairs,
    forward_flop,
    forward_flop_by_part,
    training_flop,
    unit_of,
)
from gpuledger.units import Unknown

TINY = TransformerShape(
    layers=2, hidden=8, heads=2, kv_heads=1, head_dim=4, mlp_hidden=16, mlp_gated=True, vocab=10,
    tied_embeddings=True, max_context=32,
)  # fmt: skip


def test_pencil_transformer():
    """Three tokens: projections 8x(8+4+4+8), scores 2x3x3x8, gated MLP 3x8x16, head 8x10; two layers."""
    assert forward_flop_by_part(TINY, 1, 3) == {
        "attention_projections": 2 * 2 * 3 * 192,
        "attention_scores": 2 * 2 * 2 * 9 * 8,
        "mlp": 2 * 2 * 3 * 384,
        "head": 2 * 3 * 80,
    }
    assert forward_flop(TINY, 5, 3) == 5 * (2304 + 576 + 4608 + 480)
    assert training_flop(TINY, 5, 3) == 3 * forward_flop(TINY, 5, 3)
    assert training_flop(TINY, 5, 3, recompute=True) == 4 * forward_flop(TINY, 5, 3)


def test_pencil_pairs():
    """Five tokens: the square is 25; a causal token i sees i; with a window of two, at most two."""
    assert attended_pairs(5, None, causal=False) == 25
    assert attended_pairs(5, None, causal=True) == 1 + 2 + 3 + 4 + 5
    assert attended_pairs(5, 2, causal=False) == 10
    assert attended_pairs(5, 2, causal=True) == 1 + 2 + 2 + 2 + 2
    assert attended_pairs(5, 9, causal=True) == 15


def test_llama_8b_at_4096_by_hand():
    """The weights that multiply are all but the embedding and the norms. PaLM's 6 N + 12 L H Q T."""
    norms = 65 * 4096
    weights = 8_030_261_248 - 128_256 * 4096 - norms
    by_hand = 6 * weights + 12 * 32 * 32 * 128 * 4096
    assert training_flop(get_model("llama-3.1-8b").shape, 1, 4096) / 4096 == by_hand
    assert by_hand == pytest.approx(51.47e9, rel=1e-3)


# Multiply-adds an image, in thousand millions, as torchvision states them for its weights ("GFLOPS").
PUBLISHED = {
    "resnet-18": 1.814,
    "resnet-50": 4.089,
    "resnet-101": 7.801,
    "resnet-152": 11.514,
    "vit-b-16": 17.564,
    "vit-l-16": 61.555,
    "vit-h-14": 167.295,
}


@pytest.mark.parametrize(("name", "giga"), PUBLISHED.items())
def test_published_image_models(name, giga):
    assert forward_flop(get_model(name).shape) / 2e9 == pytest.approx(giga, rel=0.002)


def test_published_gpt_3():
    """The paper's table D.1: 3.14e23 FLOP for 300 thousand million tokens, counted as 6 a parameter and token."""
    whole = training_flop(get_model("gpt-3-175b").shape, 1, 2048) / 2048 * 300e9
    assert whole == pytest.approx(3.14e23, rel=0.03)


def test_experts_count_only_where_a_token_goes():
    mixtral = get_model("mixtral-8x7b")
    dense = 6 * (mixtral.params_active - mixtral.shape.vocab * mixtral.shape.hidden)
    scores = 12 * 32 * 4096 * 4096
    assert training_flop(mixtral.shape, 1, 4096) / 4096 == pytest.approx(dense + scores, rel=1e-4)
    parts = forward_flop_by_part(get_model("deepseek-v3").shape, 1, 4096)
    assert {"experts", "router", "mlp"} <= set(parts)


def test_latent_attention_is_wider_in_keys_than_in_values():
    shape = get_model("deepseek-v2-lite").shape
    parts = forward_flop_by_part(shape, 1, 100)
    assert parts["attention_scores"] == 2 * 27 * 16 * (128 + 64 + 128) * 100 * 100
    assert parts["attention_projections"] == 2 * 27 * 100 * (
        2048 * 16 * 192 + 2048 * (512 + 64) + 512 * 16 * (128 + 128) + 16 * 128 * 2048
    )


def test_what_has_no_formula_says_so():
    flux = get_model("flux.1-dev")
    assert isinstance(forward_flop(flux.shape), Unknown)
    assert "transformer" in training_flop(flux.shape).why
    with pytest.raises(InputError):
        forward_flop(TINY, 1)
    with pytest.raises(InputError):
        forward_flop(TINY, 0, 5)
    with pytest.raises(InputError):
        forward_flop(TINY, 1, 0)


@pytest.mark.parametrize("model", load_models().values(), ids=lambda m: m.name)
def test_every_model_has_a_count_or_a_reason(model):
    made = forward_flop(model.shape, 1, 512)
    if isinstance(made, Unknown):
        assert made.why
    else:
        assert made > 0
    assert unit_of(model.shape) in ("token", "image")


LENGTHS = st.integers(1, 5000)


@given(LENGTHS, st.one_of(st.none(), LENGTHS))
def test_causal_pairs_lie_between_half_and_all(sequence, window):
    whole = attended_pairs(sequence, window, causal=False)
    causal = attended_pairs(sequence, window, causal=True)
    assert whole / 2 < causal <= whole
    reach = window or sequence
    assert causal == sum(min(i, reach) for i in range(1, sequence + 1))


@given(st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "gemma-3-4b", "deepseek-v3"]), LENGTHS, st.integers(1, 64))
def test_flop_grow_with_the_batch_as_the_batch_and_never_shrink_with_the_sequence(name, sequence, batch):
    shape = get_model(name).shape
    one = forward_flop(shape, 1, sequence)
    assert forward_flop(shape, batch, sequence) == batch * one
    assert forward_flop(shape, 1, sequence + 1) > one
    assert training_flop(shape, 1, sequence + 1) / (sequence + 1) >= training_flop(shape, 1, sequence) / sequence
    assert forward_flop(shape, 1, sequence, causal=True) <= one
