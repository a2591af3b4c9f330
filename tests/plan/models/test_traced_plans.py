"""Are models without a formula planned, by formula or traced, and is it said which?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuledger import plan
from gpuledger.catalog.models.configs import UnreadType
from gpuledger.errors import InputError
from gpuledger.plan import tracing
from gpuledger.plan.fitting.sources import errors_of
from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.setup import Setup

MEASURED = Path(__file__).parents[3] / "benchmarks" / "data" / "models_h200.json"
RUNS = [run for run in json.loads(MEASURED.read_text(encoding="utf-8"))["runs"] if "error" not in run]
BY_FORMULA = {
    "gpt2", "gpt_neox", "vit", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "phi", "phi3", "opt", "bloom",
    "stablelm", "olmo2", "starcoder2", "granite", "smollm3", "mixtral", "gptj", "resnet",
}  # fmt: skip


def written(folder: Path, fields: dict[str, object]) -> Path:
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    return folder / "config.json"


@pytest.fixture
def bare(monkeypatch):
    """An installation without torch and transformers."""
    monkeypatch.setattr(tracing, "installed", lambda *_: False)


@pytest.mark.parametrize("run", [run for run in RUNS if run["config"]["model_type"] in BY_FORMULA],
                         ids=lambda run: f"{run['name']} {sorted(run['run'].items())}")  # fmt: skip
def test_formulas_meet_what_was_measured(bare, tmp_path, run):
    how = {name: value for name, value in run["run"].items() if name != "accumulate"}
    accumulate = run["run"].get("accumulate", 2) > 1
    found = plan.fit(written(tmp_path, run["config"]), "h200-sxm", accumulate=accumulate, **how).statement
    assert found.params_total == run["params"]
    tensors = found.total_bytes - found.per_gpu_bytes["overhead"] + overheads().workspace_bytes.value
    assert tensors == pytest.approx(run["peak_allocated_bytes"], rel=0.14)
    assert found.low_bytes <= run["peak_reserved_bytes"] + run["outside_torch_bytes"] <= found.high_bytes


CAST = json.loads((MEASURED.parent / "models_autocast_h200.json").read_text(encoding="utf-8"))["runs"]


@pytest.mark.parametrize("run", CAST, ids=lambda run: f"{run['name']} {sorted(run['run'].items())}")
def test_checked_formulas_hold_under_autocast(tmp_path, run):
    how = {name: value for name, value in run["run"].items() if name != "accumulate"}
    accumulate = run["run"].get("accumulate", 2) > 1
    found = plan.fit(written(tmp_path, run["config"]), "h200-sxm", accumulate=accumulate, **how).statement
    assert found.params_total == run["params"]
    tensors = found.total_bytes - found.per_gpu_bytes["overhead"] + overheads().workspace_bytes.value
    assert tensors == pytest.approx(run["peak_allocated_bytes"], rel=0.07)
    assert found.low_bytes <= run["peak_reserved_bytes"] + run["outside_torch_bytes"] <= found.high_bytes


def test_an_unknown_type_names_what_to_install(bare, tmp_path):
    file = written(tmp_path, {"model_type": "bert", "hidden_size": 64})
    with pytest.raises(UnreadType, match="'bert' is not a type we can read") as caught:
        plan.fit(file, "h200-sxm")
    assert "pip install torch transformers" in caught.value.hint


def test_a_variant_formulas_do_not_cover_is_not_read_as_the_usual_one(bare, tmp_path):
    fields = {"model_type": "opt", "hidden_size": 1024, "word_embed_proj_dim": 512, "ffn_dim": 4096, "vocab_size": 512,
              "num_hidden_layers": 2, "num_attention_heads": 16}  # fmt: skip
    with pytest.raises(UnreadType, match="word_embed_proj_dim"):
        plan.fit(written(tmp_path, fields), "h200-sxm")


def test_a_formula_that_was_not_checked_has_a_wider_range_and_says_so(bare, tmp_path):
    run = next(run for run in RUNS if run["name"] == "gemma-2b")
    gemma = plan.fit(written(tmp_path, run["config"]), "h200-sxm", sequence=2048).statement
    llama = plan.fit("llama-3.2-1b", "h200-sxm", sequence=2048).statement
    assert gemma.high_bytes / gemma.low_bytes > llama.high_bytes / llama.low_bytes
    assert any("not checked for gemma" in words for words in gemma.assumptions)


def test_gradients_freed_after_each_step_need_less_until_they_are_the_peak():
    kept, freed = (plan.fit("llama-3.2-1b", "h200-sxm", accumulate=on).statement for on in (True, False))
    assert freed.total_bytes < kept.total_bytes
    small = plan.fit("llama-3.2-1b", "h200-sxm", accumulate=False, sequence=8).statement
    parts = small.per_gpu_bytes
    moving = sum(parts[name] for name in ("gradients", "activations", "working"))
    assert moving >= 2 * small.params_total


torch_only = pytest.mark.torch
BERT = {"model_type": "bert", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 256, "vocab_size": 1000, "architectures": ["BertForMaskedLM"]}  # fmt: skip


@torch_only
def test_a_type_without_formula_is_built_and_traced(tmp_path):
    pytest.importorskip("transformers")
    found = plan.fit(written(tmp_path, BERT), "l4", micro_batch=4).statement
    assert not found.not_known
    assert found.setup.sequence == 512
    assert any("BertForMaskedLM" in words for words in found.assumptions)
    assert any("meta device" in words for words in found.assumptions)
    rate = plan.throughput(tmp_path / "config.json", "l4", micro_batch=4).statement.train
    assert rate.unit == "token"
    assert 0 < rate.rate.low_per_s < rate.rate.per_s < rate.rate.high_per_s
    assert 0 < rate.mfu_pct < 100


@torch_only
@pytest.mark.parametrize("how", [{"tensor": 2, "count": 2}, {"pipeline": 2, "count": 2}, {"lora_rank": 8}])
def test_what_cannot_be_split_is_refused(tmp_path, how):
    pytest.importorskip("transformers")
    with pytest.raises(InputError):
        plan.fit(written(tmp_path, BERT), "l4", **how)


@torch_only
def test_tracing_a_checked_formula_gives_the_same_answer(tmp_path):
    pytest.importorskip("transformers")
    fields = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
              "num_key_value_heads": 4, "intermediate_size": 1408, "vocab_size": 4096, "max_position_embeddings": 2048,
              "tie_word_embeddings": False}  # fmt: skip
    file = written(tmp_path, fields)
    for how in ({}, {"recompute": True}, {"accumulate": False}, {"scheme": "pure", "micro_batch": 3}):
        formula, trace = (plan.fit(file, "l4", sequence=1024, trace=on, **how).statement for on in ("never", "always"))
        assert trace.total_bytes == pytest.approx(formula.total_bytes, rel=0.03)


@torch_only
def test_speed_is_traced_and_memory_only_past_a_window(tmp_path):
    pytest.importorskip("transformers")
    fields = {"model_type": "mistral", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 352, "vocab_size": 512, "sliding_window": 256,
              "max_position_embeddings": 2048, "tie_word_embeddings": False}  # fmt: skip
    file = written(tmp_path, fields)

    def kept(sequence, trace):
        return plan.fit(file, "l4", sequence=sequence, trace=trace).statement.total_bytes

    assert kept(128, "auto") == kept(128, "never")
    assert kept(512, "auto") == kept(512, "always") > kept(512, "never")
    rates = [
        plan.throughput(file, "l4", sequence=128, trace=on).statement.train.rate.per_s for on in ("auto", "always")
    ]
    assert rates[0] == rates[1]


CHECKED = json.loads((MEASURED.parent / "models_check_h200.json").read_text(encoding="utf-8"))["runs"]


@torch_only
@pytest.mark.parametrize("run", [r for r in CHECKED if r["config"].get("model_type") in ("llama", "mistral", "gpt2")],
                         ids=lambda run: f"{run['name']} {sorted(run['run'].items())}")  # fmt: skip
def test_later_runs_lie_in_both_ranges(tmp_path, run):
    pytest.importorskip("transformers")
    how = {name: value for name, value in run["run"].items() if name != "accumulate"}
    file = written(tmp_path, {**run["config"], "architectures": [run["class"]]})
    found = plan.fit(file, "h200-sxm", **how).statement
    assert found.low_bytes <= run["peak_reserved_bytes"] + run["outside_torch_bytes"] <= found.high_bytes
    rate = plan.throughput(file, "h200-sxm", micro_batches=2, **how).statement.train.rate
    assert rate.low_per_s <= run["samples_per_s"] * run["run"]["sequence"] <= rate.high_per_s


def test_tracing_that_is_asked_for_and_cannot_be_is_refused():
    with pytest.raises(InputError, match="trace=always needs a configuration") as caught:
        plan.fit("llama-3.2-1b", "l4", trace="always")
    assert "leave trace at auto" in caught.value.hint


@torch_only
def test_serving_a_counted_model_has_its_cache(tmp_path):
    pytest.importorskip("transformers")
    file = written(tmp_path, {"model_type": "mpt", "d_model": 128, "n_layers": 2, "n_heads": 4, "vocab_size": 1000})
    one, two = (plan.fit(file, "l4", mode="serve", batch=n, context=256).statement.per_gpu_bytes for n in (1, 2))
    assert one["cache"] == 2 * 2 * 2 * 128 * 256  # keys and values, layers, bytes, width, tokens
    assert two["cache"] == 2 * one["cache"]


VISION = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
          "image_size": 32, "patch_size": 8}  # fmt: skip
LLAVA = {
    "model_type": "llava",
    "text_config": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 512,
                    "max_position_embeddings": 256, "tie_word_embeddings": False},
    "vision_config": {"model_type": "clip_vision_model", **VISION},
}  # fmt: skip


@torch_only
def test_parts_outside_the_text_model_are_counted(tmp_path):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    found = plan.fit(written(tmp_path, LLAVA), "l4", micro_batch=1, sequence=64).statement
    with torch.device("meta"):
        module = transformers.LlavaForConditionalGeneration(transformers.LlavaConfig.from_dict(LLAVA))
    assert found.params_total == sum(one.numel() for one in module.parameters())
    assert any("outside text_config are counted" in words for words in found.assumptions)


@torch_only
def test_a_step_that_depends_on_values_leaves_activations_unknown(tmp_path):
    pytest.importorskip("transformers")
    fields = {"model_type": "longformer", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 96, "vocab_size": 512, "attention_window": 8}  # fmt: skip
    found = plan.fit(written(tmp_path, fields), "l4", sequence=32).statement
    assert found.at_least
    assert "activations" in found.not_known
    assert found.per_gpu_bytes["optimizer"] == 12 * found.params_total


WAVLM = {"model_type": "wavlm", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 96, "conv_dim": [32] * 7, "num_conv_pos_embeddings": 16,
         "architectures": ["WavLMForSequenceClassification"]}  # fmt: skip


@torch_only
def test_a_model_that_reads_sound_is_counted_in_clips(tmp_path):
    pytest.importorskip("transformers")
    answer = plan.throughput(written(tmp_path, WAVLM), "l4", micro_batch=2).statement
    assert answer.train.unit == "clip"
    assert "clips of 10 s of sound" in answer.assumptions
    assert "clips of 10 s of sound" in plan.fit(tmp_path / "config.json", "l4", micro_batch=2).statement.assumptions


QWEN2_AUDIO = {
    "model_type": "qwen2_audio",
    "text_config": {"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 4096,
                    "max_position_embeddings": 256},
    "audio_config": {"model_type": "qwen2_audio_encoder", "d_model": 64, "encoder_layers": 1,
                     "encoder_attention_heads": 4, "encoder_ffn_dim": 96},
}  # fmt: skip


@torch_only
def test_a_class_around_a_text_model_is_traced_and_not_planned_by_its_formula(tmp_path):
    """Qwen2-Audio keeps its logits in 16 bits, Qwen2 in fp32."""
    pytest.importorskip("transformers")
    file = written(tmp_path, QWEN2_AUDIO)
    traced, formula = (
        plan.fit(file, "l4", sequence=128, micro_batch=64, trace=on).statement for on in ("auto", "never")
    )
    parts = ("activations", "working")
    assert sum(traced.per_gpu_bytes[one] for one in parts) < 0.8 * sum(formula.per_gpu_bytes[one] for one in parts)
    assert any("what sound would add to activations does not" in words for words in traced.assumptions)


def test_a_class_around_a_text_model_has_the_range_of_unchecked_formulas(bare, tmp_path):
    model = tracing.configured_model(written(tmp_path, QWEN2_AUDIO))
    assert not tracing.memory_checked(model)
    assert errors_of(model, Setup(mode="train")) == "unchecked"
    words = plan.fit(tmp_path / "config.json", "l4", sequence=128).statement.assumptions
    assert any("formulas not checked for qwen2_audio" in one for one in words)
