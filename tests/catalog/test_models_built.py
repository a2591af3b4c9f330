"""Has a module built by transformers as many parameters as the shape read from its own configuration?"""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gpuledger.catalog.models.configs import model_from_config  # noqa: E402

pytestmark = pytest.mark.torch

SMALL = {
    "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "max_position_embeddings": 256,
}  # fmt: skip
LATENT = {
    "num_key_value_heads": 4, "moe_intermediate_size": 48, "n_routed_experts": 8, "num_experts_per_tok": 2,
    "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "kv_lora_rank": 16, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 16,
}  # fmt: skip
KINDS = {
    "llama": {},
    "llama-bias": {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "mistral": {},
    "mixtral": {"num_local_experts": 4},
    "qwen2": {},
    "qwen3": {"head_dim": 32},
    "qwen3_moe": {
        "decoder_sparse_step": 2, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 40,
        "mlp_only_layers": [0],
    },
    "deepseek_v2": {**LATENT, "q_lora_rank": None},
    "deepseek_v3": {**LATENT, "q_lora_rank": 32},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256},
    "gemma2": {"head_dim": 32, "sliding_window": 16},
    "gemma3_text": {"head_dim": 32, "sliding_window": 16},
    "llama4_text": {
        "intermediate_size_mlp": 128, "num_local_experts": 4, "interleave_moe_layer_step": 2, "head_dim": 16,
        "attention_chunk_size": 32,
    },
    "gpt_oss": {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16},
    "gemma": {"head_dim": 32},
    "gpt_neox": {},
    "gptj": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256, "rotary_dim": 8},
    "phi": {},
    "phi3": {},
    "opt": {"ffn_dim": 96, "word_embed_proj_dim": 64},
    "bloom": {"n_layer": 3, "n_head": 4},
    "stablelm": {"use_qkv_bias": True},
    "olmo2": {},
    "starcoder2": {},
    "granite": {},
    "smollm3": {},
    "nemotron": {},
    "ernie4_5": {},
    "glm4": {"head_dim": 16},
    "arcee": {},
    "seed_oss": {"head_dim": 16},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_decoders(tmp_path, kind):
    given = {"model_type": kind, **SMALL, **KINDS[kind]}
    if kind in ("gpt2", "gptj"):
        given = {"model_type": kind, "vocab_size": 512, **KINDS[kind]}
    if kind == "bloom":
        given = {"model_type": kind, "vocab_size": 512, "hidden_size": 64, **KINDS[kind]}
    config = transformers.AutoConfig.for_model(**given)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(), default=str))
    with torch.device("meta"):
        module = transformers.AutoModelForCausalLM.from_config(config)
    model = model_from_config(tmp_path)
    counted = sum(p.numel() for p in module.parameters())
    assert model.params_total == counted
    if layer_types := getattr(config, "layer_types", None):
        windowed = sum(word in ("sliding_attention", "chunked_attention") for word in layer_types)
        assert model.shape.sliding_layers == windowed


@pytest.mark.parametrize("kind", ["vit", "resnet"])
def test_image_models(tmp_path, kind):
    config = transformers.AutoConfig.for_model(kind, num_labels=7)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(), default=str))
    with torch.device("meta"):
        module = transformers.AutoModelForImageClassification.from_config(config)
    assert model_from_config(tmp_path).params_total == sum(p.numel() for p in module.parameters())
