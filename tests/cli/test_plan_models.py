"""What does a user see who plans a model of another family, or a paged cache?"""

from __future__ import annotations

import json

import pytest

from gpuledger.plan import tracing

GEMMA = {"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
         "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000}  # fmt: skip


@pytest.fixture
def gemma(tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "installed", lambda *_: False)
    (tmp_path / "config.json").write_text(json.dumps(GEMMA))
    return str(tmp_path / "config.json")


def test_json_has_the_pool_of_a_paged_cache(cli):
    ended = cli(
        "plan", "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--mode", "serve", "--cache", "paged", "--json"
    )
    assert ended.code == 0
    assert ended.json()["paged"]["sequences"] > 64
    assert ended.json()["paged"]["block_tokens"] == 16


def test_paged_is_for_serving(cli):
    ended = cli("plan", "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--cache", "paged")
    assert ended.code == 2
    assert "--mode serve" in ended.err


def test_a_config_without_transformers_is_planned_by_formula(cli, gemma):
    ended = cli("plan", "fit", "--config", gemma, "--gpu", "h200-sxm", "--sequence", "2048", "--full")
    assert ended.code == 0
    assert "pip install torch transformers" in " ".join(ended.out.split())


def test_fewer_bytes_without_accumulation(cli, gemma):
    asked = ("plan", "fit", "--config", gemma, "--gpu", "h200-sxm", "--json")
    assert cli(*asked, "--no-accumulate").json()["total_bytes"] < cli(*asked).json()["total_bytes"]


def test_an_unknown_type_ends_with_a_next_step(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "installed", lambda *_: False)
    (tmp_path / "config.json").write_text('{"model_type": "martian"}')
    ended = cli("plan", "fit", "--config", tmp_path / "config.json", "--gpu", "h200-sxm")
    assert ended.code == 2
    assert "pip install torch transformers" in ended.err


UNET = {"_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64], "layers_per_block": 1, "sample_size": 16,
        "norm_num_groups": 8, "cross_attention_dim": 48, "attention_head_dim": 4,
        "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]}  # fmt: skip


def test_a_denoiser_without_diffusers_ends_with_a_next_step(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "installed", lambda *_: False)
    (tmp_path / "config.json").write_text(json.dumps(UNET))
    ended = cli("plan", "fit", "--config", str(tmp_path), "--gpu", "l4")
    assert ended.code == 2
    assert "pip install torch diffusers" in " ".join(ended.err.split())


@pytest.mark.parametrize("option", [("--image", "512"), ("--mode", "serve", "--denoising-steps", "20"),
                                    ("--mode", "serve", "--no-guidance")])  # fmt: skip
def test_options_of_denoisers_are_for_denoisers(cli, option):
    ended = cli("plan", "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", *option)
    assert ended.code == 2
    assert "is for models that make images" in " ".join(ended.err.split())


@pytest.mark.torch
def test_a_denoiser_makes_images(cli, tmp_path):
    pytest.importorskip("diffusers")
    (tmp_path / "config.json").write_text(json.dumps(UNET))
    asked = ("--config", str(tmp_path), "--gpu", "l4", "--mode", "serve", "--batch", "2", "--denoising-steps", "20")
    shown = cli("plan", "throughput", *asked)
    assert shown.code == 0
    assert "images/s" in shown.out
    assert "20 denoising steps" in shown.out
    assert cli("plan", "throughput", *asked, "--json").json()["images"]["steps"] == 20
    refused = cli("plan", "fit", "--config", str(tmp_path), "--gpu", "l4", "--image", "100")
    assert refused.code == 2
    assert "not a multiple of 8 pixels" in " ".join(refused.err.split())
    assert cli("plan", "fit", *asked, "--cache-precision", "fp8").code == 2
