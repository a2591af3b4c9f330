"""What does a plan for a model of diffusers, or for a whole pipeline, take and give?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger import plan
from gpuledger.catalog.models.configs import UnreadType
from gpuledger.errors import FactError, InputError
from gpuledger.plan import tracing
from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.speed.facts import factors

DATA = Path(__file__).parents[3] / "benchmarks" / "data"
MEASURED = (DATA / "models_diffusion_h200.json", DATA / "models_check_h200.json", DATA / "models_settled_h200.json")
BLOCKS = {"block_out_channels": [32, 64], "layers_per_block": 1, "norm_num_groups": 8}
UNET = {"_class_name": "UNet2DConditionModel", **BLOCKS, "sample_size": 16, "cross_attention_dim": 48,
        "attention_head_dim": 4, "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]}  # fmt: skip
VAE = {"_class_name": "AutoencoderKL", **BLOCKS, "down_block_types": ["DownEncoderBlock2D"] * 2, "latent_channels": 4,
       "up_block_types": ["UpDecoderBlock2D"] * 2, "sample_size": 32}  # fmt: skip
TEXT = {"model_type": "clip_text_model", "architectures": ["CLIPTextModel"], "hidden_size": 48, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}  # fmt: skip
INDEX = {"_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.30.0",
         "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"],
         "text_encoder": ["transformers", "CLIPTextModel"], "scheduler": ["diffusers", "PNDMScheduler"],
         "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"],
         "feature_extractor": [None, None]}  # fmt: skip


def one_file(folder: Path, fields: dict[str, object] = UNET) -> Path:
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    return folder / "config.json"


def pipeline(folder: Path) -> Path:
    for name, fields in (("unet", UNET), ("vae", VAE), ("text_encoder", TEXT), ("safety_checker", {"a": 1})):
        (folder / name).mkdir()
        one_file(folder / name, fields)
    (folder / "model_index.json").write_text(json.dumps(INDEX), encoding="utf-8")
    return folder


@pytest.fixture
def bare(monkeypatch):
    """An installation without torch and diffusers."""
    monkeypatch.setattr(tracing, "installed", lambda *_: False)


def test_without_diffusers_the_error_names_what_to_install(bare, tmp_path):
    with pytest.raises(UnreadType, match="_class_name: 'UNet2DConditionModel' has no formula") as caught:
        plan.fit(one_file(tmp_path), "l4")
    assert "pip install torch diffusers" in caught.value.hint
    assert "stable-diffusion-xl" in caught.value.hint


def test_without_libraries_a_pipeline_names_all_it_needs(bare, tmp_path):
    with pytest.raises(InputError, match="StableDiffusionPipeline are built by diffusers") as caught:
        plan.fit(pipeline(tmp_path), "l4")
    assert "pip install torch diffusers transformers" in caught.value.hint


def test_an_index_without_its_folders_is_refused(tmp_path):
    (tmp_path / "model_index.json").write_text(json.dumps(INDEX), encoding="utf-8")
    for path in (tmp_path, tmp_path / "model_index.json"):
        with pytest.raises(FactError, match=r"unet/config\.json is not there"):
            plan.fit(path, "l4")


@pytest.mark.parametrize("how", [{"image": 512}, {"denoising_steps": 20, "mode": "serve"},
                                 {"guidance": False, "mode": "serve"}])  # fmt: skip
def test_options_of_denoisers_are_refused_for_text(how):
    with pytest.raises(InputError, match="is for models that make images"):
        plan.fit("llama-3.2-1b", "l4", **how)


def test_the_errors_of_denoisers_are_those_of_all_runs_measured():
    every = [run for file in MEASURED for run in json.loads(file.read_text(encoding="utf-8"))["runs"]]
    runs = [run for run in every if "model_type" not in run["config"]]
    by_kind = Counter((run["run"].get("mode", "train"), run["class"].startswith("Autoencoder")) for run in runs)
    memory, speed = overheads().error, {error.of: error.rows for error in factors().traced.errors}
    assert memory.denoise.rows == by_kind["train", False] + by_kind["train", True]
    assert memory.denoise_serve.rows == by_kind["serve", False]
    assert memory.pixels_serve.rows == by_kind["serve", True]
    assert speed["denoisers"] == by_kind["train", False] + by_kind["serve", False]
    assert speed["autoencoders"] == by_kind["train", True] + by_kind["serve", True]


class TestBuilt:
    """With diffusers installed."""

    pytestmark = pytest.mark.torch

    @pytest.fixture(autouse=True)
    def _library(self):
        pytest.importorskip("torch")
        pytest.importorskip("diffusers")

    def test_training_counts_all_and_says_what_it_assumes(self, tmp_path):
        found = plan.fit(one_file(tmp_path), "l4", micro_batch=4).statement
        assert not found.not_known
        assert found.setup.sequence == 77
        assert found.setup.image == 128
        assert found.per_gpu_bytes["optimizer"] == 12 * found.params_total
        words = " ".join(found.assumptions)
        assert "images of 128 x 128 pixels, prompts of 77 tokens" in words
        rate = plan.throughput(tmp_path / "config.json", "l4", micro_batch=4).statement.train
        assert rate.unit == "image"
        assert 0 < rate.rate.low_per_s < rate.rate.per_s < rate.rate.high_per_s

    def test_size_and_prompt_can_be_asked_for(self, tmp_path):
        file = one_file(tmp_path)
        usual, large, long = (plan.fit(file, "l4", micro_batch=4, **how).statement.per_gpu_bytes["activations"]
                              for how in ({}, {"image": 256}, {"sequence": 300}))  # fmt: skip
        assert large > 3 * usual
        assert usual < long < 2 * usual
        with pytest.raises(InputError, match="image=-8 is below 0"):
            plan.fit(file, "l4", image=-8)

    def test_a_pipeline_keeps_its_other_parts_frozen(self, tmp_path):
        torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
        whole = plan.fit(pipeline(tmp_path), "l4", micro_batch=4).statement
        denoiser = plan.fit(tmp_path / "unet", "l4", micro_batch=4).statement
        vae = plan.fit(tmp_path / "vae", "l4").statement
        with torch.device("meta"):
            text = transformers.CLIPTextModel(transformers.CLIPTextConfig.from_dict(TEXT))
        others = vae.params_total + sum(one.numel() for one in text.parameters())
        assert whole.params_total == denoiser.params_total + others
        assert whole.per_gpu_bytes["weights"] == denoiser.per_gpu_bytes["weights"] + 2 * others
        for part in ("gradients", "optimizer", "activations"):
            assert whole.per_gpu_bytes[part] == denoiser.per_gpu_bytes[part]
        assert any("safety_checker" in words for words in whole.assumptions)
        assert whole.model == tmp_path.name

    def test_a_pipeline_serves_with_the_larger_of_its_passes(self, tmp_path):
        folder = pipeline(tmp_path)
        parts = [plan.fit(folder / name, "l4", mode="serve", batch=2, image=128).statement for name in ("unet", "vae")]
        whole = plan.fit(folder, "l4", mode="serve", batch=2).statement
        assert whole.per_gpu_bytes["working"] == max(part.per_gpu_bytes["working"] for part in parts)
        assert "cache" not in whole.per_gpu_bytes
        speed = plan.throughput(folder, "l4", mode="serve", batch=2).statement.images
        assert speed.pixels_s > 0
        assert speed.batch_s == pytest.approx(50 * speed.step_s + speed.pixels_s)
        assert speed.rate.per_s == pytest.approx(2 / speed.batch_s)

    def test_where_pixels_hold_the_most_the_range_is_that_of_autoencoders(self, tmp_path):
        """The way to pixels holds more than a small U-Net, and less than a large one."""
        folder, errors = pipeline(tmp_path), overheads().error
        small = plan.fit(folder, "l4", mode="serve", batch=2).statement
        assert small.high_bytes == errors.pixels_serve.span(small.total_bytes)[1]
        alone = plan.fit(folder / "vae", "l4", mode="serve", batch=2).statement
        assert alone.high_bytes == errors.pixels_serve.span(alone.total_bytes)[1]
        one_file(folder / "unet", {**UNET, "block_out_channels": [512, 1024], "attention_head_dim": 8})
        large = plan.fit(folder, "l4", mode="serve", batch=2).statement
        assert large.high_bytes == errors.denoise_serve.span(large.total_bytes)[1]
        assert alone.high_bytes / alone.total_bytes > large.high_bytes / large.total_bytes

    def test_speed_of_autoencoders_has_its_own_range(self, tmp_path):
        folder = pipeline(tmp_path)
        trained, made = (plan.throughput(folder / "vae", "l4", **how).statement for how in ({}, {"mode": "serve"}))
        assert trained.train.rate.errors_of == made.images.rate.errors_of == "autoencoders"
        assert plan.throughput(folder, "l4", mode="serve").statement.images.rate.errors_of == "denoisers"

    def test_guidance_takes_each_image_twice(self, tmp_path):
        file = one_file(tmp_path)
        ways = ({"batch": 2}, {"batch": 2, "guidance": False}, {"batch": 4, "guidance": False})
        found = [plan.fit(file, "l4", mode="serve", **how).statement.per_gpu_bytes["working"] for how in ways]
        assert found[0] == found[2] > found[1]

    @settings(max_examples=10, deadline=None)
    @given(steps=st.integers(1, 100), more=st.integers(1, 100))
    def test_every_step_takes_as_long(self, tmp_path_factory, steps, more):
        file = one_file(tmp_path_factory.mktemp("unet"))
        few, many = (plan.throughput(file, "l4", mode="serve", denoising_steps=n).statement.images
                     for n in (steps, steps + more))  # fmt: skip
        assert many.batch_s == pytest.approx(few.batch_s * (steps + more) / steps)
        assert many.rate.per_s < few.rate.per_s

    def test_what_cannot_be_traced_is_unknown_and_weights_are_not(self, tmp_path):
        fields = {"_class_name": "WanTransformer3DModel", "num_layers": 1, "num_attention_heads": 2, "ffn_dim": 64}
        file = one_file(tmp_path, fields)
        trained = plan.fit(file, "l4").statement
        assert "makes video" in trained.not_known["activations"]
        assert trained.per_gpu_bytes["optimizer"] == 12 * trained.params_total
        served = plan.fit(file, "l4", mode="serve").statement
        assert "makes video" in served.not_known["working"]
        assert "makes video" in plan.throughput(file, "l4", mode="serve").statement.images.why

    def test_a_cache_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="caches nothing"):
            plan.fit(one_file(tmp_path), "l4", mode="serve", cache="paged")
