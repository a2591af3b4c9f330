"""Are the shipped models those that were published, and is a name answered by exactly one of them?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.models import (
    PARAMS_TOLERANCE_RATIO,
    DiffusionShape,
    TransformerShape,
    find_model,
    get_model,
    load_models,
)
from gpuledger.catalog.models.params import active_params, params_by_part, total_params
from gpuledger.errors import FactError, UnknownName
from gpuledger.units import Unknown

MODELS = load_models()
WITH_TOTAL = [m for m in MODELS.values() if m.params_published]
WITH_ACTIVE = [m for m in MODELS.values() if m.params_active_published]

# Counted on the stored weights or stated to the last digit by those who publish them.
TO_THE_DIGIT = {
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-30b-a3b": 30_532_122_624,
    "deepseek-v2-lite": 15_706_484_224,
    "gpt-2": 124_439_808,
    "gpt-2-xl": 1_557_611_200,
    "gemma-2-9b": 9_241_705_984,
    "vit-b-16": 86_567_656,
    "vit-l-16": 304_326_632,
    "vit-h-14": 632_045_800,
    "resnet-18": 11_689_512,
    "resnet-50": 25_557_032,
    "resnet-101": 44_549_160,
    "resnet-152": 60_192_808,
}


@pytest.mark.parametrize("model", WITH_TOTAL, ids=lambda m: m.name)
def test_computed_parameters_are_the_published_ones(model):
    ratio = model.params_total / model.params_published.value
    assert abs(ratio - 1) <= PARAMS_TOLERANCE_RATIO or model.differs
    assert abs(ratio - 1) <= 0.02


@pytest.mark.parametrize(("name", "params"), TO_THE_DIGIT.items())
def test_computed_parameters_to_the_digit(name, params):
    assert get_model(name).params_total == params


@pytest.mark.parametrize("model", WITH_ACTIVE, ids=lambda m: m.name)
def test_active_parameters_are_the_published_ones(model):
    """Published with one or two digits; some leave out the input embedding, and say so."""
    without = model.params_active - model.shape.vocab * model.shape.hidden
    said = model.params_active_published
    made = without if "leaves out the input embedding" in said.note else model.params_active
    assert abs(made / said.value - 1) <= 0.025


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_every_model_is_whole(model):
    assert model.source
    assert all(fact.source for _, fact in model.facts())
    assert model.params_total >= model.params_active > 0
    assert sum(params_by_part(model.shape).values()) == total_params(model.shape)
    assert model.params_published or isinstance(model.shape, DiffusionShape)
    if isinstance(model.shape, TransformerShape) and not model.shape.experts:
        assert active_params(model.shape) == total_params(model.shape)


def test_families_the_planner_needs_are_there():
    wanted = {"Llama 2", "Llama 3", "Llama 4", "Mistral", "Mixtral", "Qwen 2.5", "Qwen 3", "DeepSeek", "GPT"}
    wanted |= {"gpt-oss", "Gemma 2", "Gemma 3", "ViT", "ResNet", "diffusion"}
    assert {m.family for m in MODELS.values()} == wanted


def test_pencil_case():
    """Two layers, hidden 8, two heads of 4, one key head, gated MLP of 16, vocabulary 10, tied."""
    shape = TransformerShape(
        layers=2, hidden=8, heads=2, kv_heads=1, head_dim=4, mlp_hidden=16, mlp_gated=True, vocab=10,
        tied_embeddings=True, max_context=32,
    )  # fmt: skip
    assert params_by_part(shape) == {
        "embedding": 80,
        "attention": 2 * (8 * 8 + 8 * 4 + 8 * 4 + 8 * 8),
        "mlp": 2 * 3 * 8 * 16,
        "norms": 2 * 16 + 8,
    }


def test_a_name_is_matched_whole_and_whatever_its_case():
    assert get_model(" Llama-3.1-8B ").name == "llama-3.1-8b"
    assert get_model("meta-llama/Llama-3.1-8B-Instruct").name == "llama-3.1-8b"
    assert isinstance(find_model("llama-3.1"), Unknown)
    with pytest.raises(UnknownName) as caught:
        get_model("llama-3.1-9b")
    assert "llama-3.1-8b" in caught.value.hint


GOOD = """
family = "Own"
[[models]]
name = "own-1"
source = "ours"
as_of = "2026-11"
params_published = { value = 1_000, source = "ours", as_of = "2026-11" }
[models.shape]
type = "transformer"
layers = 1
hidden = 8
heads = 2
kv_heads = 1
head_dim = 4
mlp_hidden = 16
mlp_gated = true
vocab = 50
tied_embeddings = true
max_context = 32
"""


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("value = 1_000", "value = 2_000", "params_published"),
        ("kv_heads = 1", "kv_heads = 3", "kv_heads"),
        ("layers = 1", "layers = -1", "layers"),
        ("layers = 1", "layers = 0", "layers"),
        ("mlp_hidden = 16", "mlp_hidden = 0", "mlp_hidden"),
        ("vocab = 50", "vocab = 50\nmoe_layers = 1", "experts_per_token"),
        ("vocab = 50", "vocab = 50\nsliding_layers = 1", "sliding_layers"),
        ('name = "own-1"', 'name = "Own 1"', "name"),
        ('name = "own-1"', 'name = "own-1"\naliases = ["gpt2"]', "aliases"),
        ('as_of = "2026-11"\nparams', 'as_of = "lately"\nparams', "as_of"),
        ("hidden = 8", "width = 8", "shape"),
    ],
)
def test_a_broken_file_is_named_with_its_field(tmp_path, old, new, field):
    (tmp_path / "own.toml").write_text(GOOD)
    assert get_model("own-1", tmp_path).params_total == 1000
    other = tmp_path / "other"
    other.mkdir()
    broken = GOOD.replace(old, new)
    assert broken != GOOD
    (other / "own.toml").write_text(broken)
    with pytest.raises(FactError) as caught:
        load_models(other)
    assert field in caught.value.field
    assert "own.toml" in caught.value.path
    assert caught.value.hint
