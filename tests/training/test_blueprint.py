"""Does a traced step keep what autograd really keeps, for models of every kind?"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gpuledger.errors import InputError  # noqa: E402
from gpuledger.training.blueprint import step  # noqa: E402
from gpuledger.training.blueprint.kernels import as_on_gpu  # noqa: E402
from gpuledger.training.blueprint.modules import build, inputs  # noqa: E402
from gpuledger.training.blueprint.step import Asked, traced  # noqa: E402
from gpuledger.training.blueprint.watch import Watch  # noqa: E402

pytestmark = pytest.mark.torch

TEXT = {"vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 160, "max_position_embeddings": 64}  # fmt: skip
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "dropout": 0.0, "dropout_rate": 0.0,
              "attention_dropout": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}  # fmt: skip
SIDES = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "d_model": 64}  # fmt: skip
KINDS = {
    "llama": TEXT,
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 128},
    "bert": TEXT,
    "distilbert": {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 96, "vocab_size": 128},
    "modernbert": {**TEXT, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
                   "sep_token_id": 2},
    "falcon": TEXT,
    "t5": {"d_model": 64, "d_ff": 96, "num_layers": 2, "num_heads": 4, "d_kv": 16, "vocab_size": 128},
    "bart": {**SIDES, "vocab_size": 128, "max_position_embeddings": 64},
    "whisper": {**SIDES, "vocab_size": 128, "max_source_positions": 50, "max_target_positions": 64, "pad_token_id": 0},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 128, "state_size": 4},
    "vit": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
            "image_size": 32, "patch_size": 8},
    "convnext": {"depths": [1, 1], "hidden_sizes": [16, 32], "num_stages": 2, "image_size": 32},
    "clip": {"text_config": {**TEXT}, "vision_config": {"hidden_size": 64, "num_hidden_layers": 2, "image_size": 32,
             "patch_size": 8, "num_attention_heads": 4, "intermediate_size": 96}},
}  # fmt: skip


def config(kind: str, **more: object) -> str:
    return json.dumps({"model_type": kind, **KINDS[kind], **more})


def saved_on_cpu(text: str) -> int:
    """Bytes autograd keeps of a real pass in fp32, weights left out."""
    built = build(json.loads(text), fp32=True, full_attention=True)
    module = built.module.to_empty(device="cpu")
    for one in (*module.parameters(), *module.buffers()):
        one.data.zero_()
    given = {name: torch.zeros_like(value, device="cpu") if hasattr(value, "dtype") else value
             for name, value in inputs(built, 2, 24).items()}  # fmt: skip
    own = {one.untyped_storage()._cdata for one in (*module.parameters(), *module.buffers())}
    kept: dict[int, object] = {}

    def pack(tensor: object) -> object:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = module(**given)
    del out
    return sum(-(-store.nbytes() // 512) * 512 for key, store in kept.items() if key not in own)


@pytest.mark.parametrize("kind", ["gpt2", "bert", "bart", "vit", "llama", "falcon"])
def test_keeps_what_autograd_saves_on_a_real_device(kind):
    text = config(kind, **NO_DROPOUT)
    ours = traced(text, Asked(micro_batch=2, sequence=24, fp32=True, full_attention=True)).kept_bytes
    assert ours == pytest.approx(saved_on_cpu(text), rel=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_runs_a_step(kind):
    found = step.weights(config(kind))
    module = build(json.loads(config(kind)), fp32=False, full_attention=False).module
    assert found.matrices + found.rest == sum(one.numel() for one in module.parameters())
    one, two, three = (traced(config(kind), Asked(micro_batch=n, sequence=24)) for n in (4, 8, 12))
    assert 0 < one.kept_bytes < one.peak_bytes
    # What is kept grows by the same amount with each sample, up to the allocator's blocks.
    assert three.kept_bytes - two.kept_bytes == pytest.approx(two.kept_bytes - one.kept_bytes, rel=0.1)
    assert one.product_flop > 0
    assert one.kernels > 10


def test_recomputation_keeps_less_and_computes_more():
    plain, again = (traced(config("llama"), Asked(4, 64, recompute=on)) for on in (False, True))
    assert again.kept_bytes < plain.kept_bytes / 2
    assert again.product_flop > 1.2 * plain.product_flop


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert"])
def test_recomputation_under_autocast_casts_as_before(kind):
    usual = Asked(2, 24, fp32=False, autocast=True, full_attention=False, recompute=False, accumulate=True)
    whole, again = traced(config(kind), usual), traced(config(kind), replace(usual, recompute=True))
    assert again.kept_bytes < whole.kept_bytes
    assert again.product_flop > whole.product_flop


def test_without_accumulation_gradients_are_within_the_peak():
    size = step.weights(config("llama"))
    kept, freed = (traced(config("llama"), Asked(1, 8, accumulate=on)) for on in (True, False))
    assert kept.peak_bytes < freed.peak_bytes
    assert freed.peak_bytes >= 2 * (size.matrices + size.rest)


def test_dropout_keeps_one_byte_per_number():
    x = torch.zeros(64, 512, device="meta", requires_grad=True, dtype=torch.bfloat16)
    kept = []
    with as_on_gpu(autocast=False), torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
        torch.nn.functional.dropout(x, 0.1)
    assert sum(tensor.numel() * tensor.element_size() for tensor in kept) == 64 * 512


def test_a_long_loop_over_tokens_is_extended_from_shorter_ones(monkeypatch):
    whole = traced(config("mamba"), Asked(1, 96))
    from gpuledger.training.blueprint import watch

    built = build(json.loads(config("mamba")), fp32=False, full_attention=False)
    monkeypatch.setattr(watch, "MOST_OPERATORS", 1000)
    longer = step._extended(built, Asked(1, 96))
    assert longer.extended
    assert longer.kept_bytes == pytest.approx(whole.kept_bytes, rel=0.02)


def test_a_type_nobody_knows_is_refused_with_the_next_step():
    with pytest.raises(InputError, match="no model of type 'martian'"):
        step.weights(json.dumps({"model_type": "martian"}))


def test_autocast_casts_products_and_keeps_the_copies():
    plain, cast = (traced(config("bert", **NO_DROPOUT), Asked(2, 24, fp32=not on, autocast=on)) for on in (False, True))
    assert cast.kernels > plain.kernels
    assert cast.kept_bytes != plain.kept_bytes


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_convolution_holds_input_output_and_weights_once_more(dtype):
    """By pencil: 2 images of 8 channels and 16 x 16 pixels to 4 channels by 3 x 3."""
    image = torch.empty(2, 8, 16, 16, dtype=dtype, device="meta")
    weight = torch.empty(4, 8, 3, 3, dtype=dtype, device="meta")
    size = image.element_size()
    with Watch([image, weight]) as watch:
        torch.nn.functional.conv2d(image, weight, padding=1)
    out = 2 * 4 * 16 * 16 * size
    assert watch.peak == out + (2 * 8 * 16 * 16 * size + out + 4 * 8 * 3 * 3 * size)
    assert watch.moved_bytes == 2 * (watch.peak - out)


@pytest.mark.parametrize("how", ["channels next to each other", "a filter for each channel", "one by one in fp32"])
def test_a_convolution_that_needs_no_other_layout_holds_nothing_more(how):
    image = torch.empty(2, 8, 16, 16, dtype=torch.float32, device="meta")
    groups, size = (8, 3) if how == "a filter for each channel" else (1, 1 if "one" in how.split()[0] else 3)
    weight = torch.empty(8, 8 // groups, size, size, device="meta")
    if how == "channels next to each other":
        image, weight = (one.to(memory_format=torch.channels_last) for one in (image, weight))
    with Watch([image, weight]) as watch:
        torch.nn.functional.conv2d(image, weight, padding=size // 2, groups=groups)
    assert watch.peak == 2 * 8 * 16 * 16 * 4
    assert watch.moved_bytes == 0


def test_autocast_reaches_into_torchs_multi_head_attention():
    """By pencil, a score leaves its softmax in fp32, a dropout mask of a byte, and 16 bits for the next product."""
    rows, heads, tokens, wide = 2, 4, 32, 16
    attention = torch.nn.MultiheadAttention(heads * wide, heads, dropout=0.1, device="meta")
    states = torch.empty(tokens, rows, heads * wide, device="meta", requires_grad=True)
    kept = list[torch.Tensor]()
    with as_on_gpu(autocast=True), torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
        attention(states, states, states, need_weights=True)
    scores = [one for one in kept if one.shape[-2:] == (tokens, tokens)]
    held = {(one.dtype, one.untyped_storage()._cdata): one for one in scores}
    assert sum(one.element_size() for one in held.values()) == 4 + 1 + 2


@pytest.mark.parametrize(("pieces", "fused"), [(True, False), (False, True)])
def test_a_learned_bias_is_fused_where_its_rows_lie_in_one_piece(pieces, fused):
    """Measured on an H200: a bias made by permuting (T5) leaves the whole score matrix, another one does not."""
    heads, tokens = 4, 32
    query, key, value = (torch.empty(2, heads, tokens, 16, device="meta", requires_grad=True) for _ in range(3))
    whole = (2, tokens, tokens, heads) if pieces else (2, heads, tokens, tokens)
    bias = torch.empty(whole, device="meta", requires_grad=True) * 1.0
    with as_on_gpu(autocast=False) as attention:
        bias = bias.permute(0, 3, 1, 2) if pieces else bias
        torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    assert (attention.calls == 1) == fused


@pytest.mark.parametrize(("channels", "last", "share"), [(8, False, 1.0), (264, False, 0.5), (8, True, 0.0)])
def test_depthwise_convolutions_are_counted_apart_where_torch_runs_them(channels, last, share):
    """By pencil: image, filters and result once; cuDNN runs images whose channels lie next to each other."""
    image, weight = torch.empty(2, channels, 16, 16, device="meta"), torch.empty(channels, 1, 3, 3, device="meta")
    image = image.to(memory_format=torch.channels_last) if last else image
    with Watch([image, weight]) as watch:
        torch.nn.functional.conv2d(image, weight, padding=1, groups=channels)
    assert watch.depthwise_bytes == share * 4 * channels * (2 * 2 * 16 * 16 + 3 * 3)


SOUND = {"speech_to_text": {**SIDES, "vocab_size": 128, "max_target_positions": 64, "conv_channels": 32},
         "moonshine": {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "encoder_num_hidden_layers": 1,
                       "decoder_num_hidden_layers": 1, "encoder_num_attention_heads": 4,
                       "decoder_num_attention_heads": 4},
         "audio-spectrogram-transformer": {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
                                           "intermediate_size": 96}}  # fmt: skip


@pytest.mark.parametrize("kind", SOUND)
def test_models_that_read_sound_in_other_ways_run_a_step(kind):
    text = json.dumps({"model_type": kind, **SOUND[kind]})
    assert step.weights(text).sound_s == 10
    assert step.weights(text).text == (kind != "audio-spectrogram-transformer")
    assert traced(text, Asked(2, 24)).kept_bytes > traced(text, Asked(1, 24)).kept_bytes > 0


def test_a_detector_is_traced_without_the_loss_that_matches_boxes():
    text = json.dumps({"model_type": "yolos", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
                       "intermediate_size": 96, "image_size": [64, 96], "num_detection_tokens": 4})  # fmt: skip
    built = build(json.loads(text), fp32=False, full_attention=False)
    assert set(inputs(built, 2, 1)) == {"pixel_values"}
    assert traced(text, Asked(2, 1)).kept_bytes > 0


def test_a_spectrum_that_is_not_known_is_refused_with_the_next_step():
    text = json.dumps({"model_type": "parakeet_ctc", "vocab_size": 64})
    with pytest.raises(InputError, match="which spectrum of sound a parakeet_ctc reads") as caught:
        traced(text, Asked(1, 8))
    assert "measure" in caught.value.hint
