"""Does a Hugging Face config.json give the model it is of, and a broken one its fault by name?"""

from __future__ import annotations

import json

import pytest

from gpuledger.catalog.models import get_model
from gpuledger.catalog.models.configs import model_from_config
from gpuledger.errors import FactError, FileFault

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "torch_dtype": "bfloat16",
}  # fmt: skip
LABELS = {str(i): f"label {i}" for i in range(1000)}

# What the files of these models hold, as far as a shape goes.
FILES = {
    "llama-3.1-8b": LLAMA,
    "mistral-7b-v0.1": LLAMA
    | {"model_type": "mistral", "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096},
    "mixtral-8x7b": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768,
        "tie_word_embeddings": False, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 131072,
        "tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28,
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": False, "num_experts": 128,
        "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "attention_bias": False,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 129280, "max_position_embeddings": 163840, "tie_word_embeddings": False,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": None,
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 102400, "max_position_embeddings": 163840, "tie_word_embeddings": False,
    },
    "gpt-2": {
        "model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
    },
    "gemma-2-9b": {
        "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000,
        "max_position_embeddings": 8192, "sliding_window": 4096,
    },
    "gemma-3-4b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {"model_type": "siglip_vision_model"},
    },
    "llama-4-maverick": {
        "model_type": "llama4",
        "text_config": {
            "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
            "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
            "vocab_size": 202048, "max_position_embeddings": 1048576, "num_local_experts": 128,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 8192,
        },
        "tie_word_embeddings": False,
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
        "max_position_embeddings": 131072, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
        "tie_word_embeddings": False, "layer_types": ["sliding_attention", "full_attention"] * 12,
    },
    "vit-b-16": {
        "model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "id2label": LABELS,
    },
    "resnet-50": {
        "model_type": "resnet", "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3],
        "layer_type": "bottleneck", "id2label": LABELS,
    },
}  # fmt: skip


def write(folder, config, name="config.json"):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(config))
    return file


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_the_model_of_the_catalog(tmp_path, name):
    model = model_from_config(write(tmp_path / "my-model", FILES[name]))
    assert model.shape == get_model(name).shape
    assert model.name == "my-model"
    assert model.source.endswith("config.json")
    assert bool(model.differs) == ("text_config" in FILES[name])


def test_a_folder_does_as_well_and_the_dtype_is_told(tmp_path):
    write(tmp_path / "here", LLAMA)
    model = model_from_config(tmp_path / "here")
    assert model.dtype == "bf16"
    assert model.params_total == 8_030_261_248
    assert model.params_published is None


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"hidden_size": None}, "hidden_size", "missing"),
        ({"hidden_size": "4096"}, "hidden_size", "'4096' is not a whole number"),
        ({"num_hidden_layers": 0}, "num_hidden_layers", "less than 1"),
        ({"num_hidden_layers": -3}, "num_hidden_layers", "-3"),
        ({"num_hidden_layers": True}, "num_hidden_layers", "True"),
        ({"num_key_value_heads": 5}, "num_key_value_heads", "does not divide"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings", "neither true nor false"),
        ({"model_type": "lama"}, "model_type", "'lama'"),
        ({"model_type": None}, "model_type", "missing"),
        ({"model_type": "resnet"}, "depths", "missing"),
        ({"model_type": "resnet", "depths": [3, "x"]}, "depths", "list of whole numbers"),
        ({"model_type": "gpt_oss", "layer_types": 3}, "num_local_experts", "missing"),
    ],
)
def test_a_broken_field_is_named(tmp_path, change, field, words):
    with pytest.raises(FactError) as caught:
        model_from_config(write(tmp_path, {**LLAMA, **change}))
    assert caught.value.field == field
    assert words in str(caught.value)
    assert "config.json" in caught.value.path
    assert caught.value.hint
    if field == "model_type":
        assert all(kind in caught.value.hint for kind in ("llama", "gpt2", "resnet", "vit"))


def test_a_nested_field_is_named_with_its_place(tmp_path):
    config = {"model_type": "llama4", "text_config": {"hidden_size": 5}}
    with pytest.raises(FactError) as caught:
        model_from_config(write(tmp_path, config))
    assert caught.value.field == "text_config.num_hidden_layers"


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "broken JSON at line 1"), (b"[]", "not hold a JSON object"), (b"\xff\xfe", "not UTF-8 text")],
)
def test_a_broken_file_is_named(tmp_path, content, words):
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(FileFault, match=words) as caught:
        model_from_config(file)
    assert caught.value.hint
    with pytest.raises(FileFault, match="no such file"):
        model_from_config(tmp_path / "gone.json")
