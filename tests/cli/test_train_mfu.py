"""Does `gpuledger train mfu` answer from a log, and refuse what it cannot know?"""

from __future__ import annotations

import json

import pytest

ASKED = ["train", "mfu", "--model", "llama-3.1-8b", "--tokens-per-s", "60000", "--gpu", "h100-sxm", "--count", "8"]


def test_the_documented_command(cli):
    done = cli(*ASKED, "--precision", "bf16", "--sequence", "4096", "--json")
    assert done.code == 0
    said = done.json()
    assert said["mfu_pct"] == pytest.approx(39.01, abs=0.01)
    assert said["flop_per_token"] == pytest.approx(51.47e9, rel=1e-3)
    assert said["peak_tflops"] == 989.5
    assert "dense bf16 peak" in said["denominator"]
    assert said["sequence"] == 4096
    assert said["mfu_in_use_pct"] == said["mfu_pct"]


def test_the_screen_shows_the_same_figures(cli):
    done = cli(*ASKED)
    said = cli(*ASKED, "--json").json()
    assert done.code == 0
    for name in ("mfu_pct", "mfu_causal_pct"):
        assert f"{said[name]:.1f}\u202f%" in done.out
    assert "dense bf16 peak of the H100-SXM5-80GB" in done.out
    assert "as none was given" in done.out


def test_recomputation_moves_hfu_only(cli):
    plain, again = (cli(*ASKED, *more, "--json").json() for more in ([], ["--recompute"]))
    assert again["mfu_pct"] == plain["mfu_pct"]
    assert again["hfu_pct"] == pytest.approx(plain["hfu_pct"] * 4 / 3)


def test_images_and_a_gpu_without_bf16(cli):
    asked = ["train", "mfu", "--model", "resnet-50", "--images-per-s", "1200", "--gpu", "V100-SXM2-16GB"]
    said = cli(*asked, "--precision", "fp16", "--json").json()
    assert said["mfu_pct"] is None
    (why,) = (one["why"] for one in said["not_known"] if one["figure"] == "mfu_pct")
    assert "no bf16" in why
    assert said["mfu_in_use_pct"] > 0
    assert "no bf16" in cli(*asked, "--precision", "fp16").out.replace("\n", " ")
    refused = cli(*asked)
    assert refused.code == 2
    assert "fp16" in refused.err


def test_a_calibration_of_the_lake_is_the_third_denominator(cli, tmp_path):
    folder = tmp_path / "gpuledger-data" / "calibration"
    folder.mkdir(parents=True)
    spread = {"median": 700.0, "low": 690.0, "high": 710.0, "repeats": 10}
    board = {
        "gpu_uuid": "GPU-1", "gpu_model": "NVIDIA H100 80GB HBM3", "as_of": "2026-11-01", "seconds": 5.0,
        "tflops": {"bf16": {"tflops": spread, "n": 8192}},
    }  # fmt: skip
    (folder / "GPU-1.json").write_text(json.dumps(board))
    said = cli(*ASKED, "--json").json()
    assert said["achievable_tflops"] == 700
    assert said["mfu_achievable_pct"] == pytest.approx(said["mfu_pct"] * 989.5 / 700)
    assert "this board" in said["achievable_denominator"]


def test_a_config_json_does_as_well(cli, tmp_path):
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    asked = [*ASKED[:2], "--config", "config.json", *ASKED[4:]]
    assert cli(*asked, "--json").json()["mfu_pct"] == cli(*ASKED, "--json").json()["mfu_pct"]
    (tmp_path / "config.json").write_text("{")
    broken = cli(*asked)
    assert broken.code == 2
    assert "config.json: broken JSON at line 1" in broken.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--gpu": "h100"}, "did you mean H100"),
        ({"--gpu": "H100-SXN5-80GB"}, "H100-SXM5-80GB"),
        ({"--model": "llama-3.1-9b"}, "llama-3.1-8b"),
        ({"--tokens-per-s": "0"}, "above 0"),
        ({"--count": "0"}, "at least 1"),
        ({"--model": "flux.1-dev"}, "reads images"),
        ({"--model": "resnet-50"}, "--images-per-s"),
        ({"--precision": "fp3"}, "bf16"),
        ({"--sequence": "0"}, "such as 4096"),
        ({"--config": "config.json"}, "both --model and --config"),
    ],
)
def test_bad_input_is_exit_2_with_a_next_step(cli, change, words):
    given = dict(zip(ASKED[2::2], ASKED[3::2], strict=True)) | change
    done = cli("train", "mfu", *(word for pair in given.items() for word in pair))
    assert done.code == 2
    assert words in done.err
    assert "next:" in done.err
    assert done.out == ""


def test_a_model_without_formula_says_so(cli):
    done = cli("train", "mfu", "--model", "flux.1-dev", "--images-per-s", "5", "--gpu", "h100-sxm")
    assert done.code == 2
    assert "no formula is known" in done.err
    assert cli("train", "mfu", "--tokens-per-s", "5", "--gpu", "h100-sxm").code == 2


def test_the_models_are_listed(cli):
    said = cli("catalog", "models", "--json").json()["models"]
    (llama,) = (m for m in said if m["name"] == "llama-3.1-8b")
    assert llama["params_total"] == 8_030_261_248
    assert llama["source"]
    assert llama["as_of"]
    shown = cli("catalog", "models")
    assert all(m["name"] in shown.out for m in said)
