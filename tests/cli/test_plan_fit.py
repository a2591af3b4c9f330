"""Does `gpuledger plan fit` answer, in words and in JSON, and refuse with exit code 2?"""

from __future__ import annotations

import json

import pytest

from gpuledger.plan import tracing

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA = ("plan", "fit", "--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--count", "8")


def test_train_as_json(cli):
    ended = cli(*LLAMA, "--mode", "train", "--precision", "bf16", "--json")
    data = ended.json()
    assert ended.code == 0
    assert data["fits"] is False
    assert set(data["per_gpu_bytes"]) == {"weights", "gradients", "optimizer", "activations", "working", "overhead"}
    assert sum(data["per_gpu_bytes"].values()) == data["total_bytes"]
    assert data["remedies"][0]["total_bytes"] <= data["remedies"][0]["capacity_bytes"]


@pytest.mark.parametrize("command", ["fit", "throughput"])
def test_a_model_or_its_file_may_stand_without_an_option(cli, tmp_path, command):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    rest = ("--gpu", "h100-sxm", "--count", "8", "--trace", "never", "--json")
    for option, value in (("--model", "llama-3.1-8b"), ("--config", "config.json")):
        assert cli("plan", command, value, *rest).json() == cli("plan", command, option, value, *rest).json()


@pytest.mark.parametrize(
    ("given", "what", "following"),
    [
        ((), "give one model", "--config config.json"),
        (("config.json", "--model", "llama-3.1-8b"), "give one model", "--config config.json"),
        (("llama-3.1-8b", "--config", "config.json"), "give one model", "--config config.json"),
        (("missing.json",), "missing.json: cannot read", "check the path"),
        (("lama-3.1-8b",), "no model is called 'lama-3.1-8b'", "llama-3.1-8b"),
    ],
)
def test_a_model_that_is_missing_twice_or_unknown(cli, given, what, following):
    ended = cli("plan", "fit", *given, "--gpu", "h100-sxm")
    assert ended.code == 2
    assert what in ended.err.splitlines()[0]
    assert following in ended.err.splitlines()[1]


def test_serve_as_json(cli):
    data = cli(*LLAMA, "--mode", "serve", "--context", "8192", "--batch", "32", "--json").json()
    assert data["fits"] is True
    assert data["setup"]["tensor"] == 8
    assert data["per_gpu_bytes"]["cache"] == 327_680 * 8192 * 32 // 8


def test_the_first_line_is_the_answer(cli):
    ended = cli(*LLAMA)
    first, *rest = ended.out.splitlines()
    assert first.startswith("Does not fit: llama-3.1-70b (70.6 B) to train on 8 x h100-sxm5-80gb: 1,275.4 GB per GPU")
    assert max(map(len, rest)) <= 100
    assert "plain data parallel over 8, no sharding" in cli(*LLAMA, "--full").out
    assert cli(*LLAMA, "--mode", "serve").out.startswith("Fits: ")
    assert "fits nowhere" not in ended.out


SERVED = ("plan", "fit", "--model", "llama-3.1-70b", "--gpu", "l4", "--mode", "serve", "--batch", "64")


@pytest.mark.parametrize("asked", [LLAMA, SERVED])
def test_the_options_of_a_remedy_make_it_fit(cli, asked):
    remedies = cli(*asked, "--json").json()["remedies"]
    assert remedies
    for remedy in remedies:
        again = cli(*asked, *remedy["options"].split(), "--json").json()
        assert again["fits"]
        assert again["total_bytes"] == remedy["total_bytes"]
        assert again["close"] is remedy["close"]


def test_a_remedy_within_the_error_is_marked(cli):
    marked = [r["close"] for r in cli(*LLAMA, "--json").json()["remedies"]]
    assert set(marked) == {True, False}
    out = cli(*LLAMA).out
    assert sum(" !  " in line for line in out.splitlines()) == sum(marked)
    assert "! fits barely: within the error of the estimate" in out


@pytest.mark.parametrize(
    ("mode", "option", "other"),
    [("train", ("--context", "100"), "serve"), ("train", ("--batch", "2"), "serve"),
     ("serve", ("--zero", "3"), "train"), ("serve", ("--recompute",), "train")],
)  # fmt: skip
def test_an_option_of_the_other_mode_is_refused_not_passed_over(cli, mode, option, other):
    ended = cli(*LLAMA, "--mode", mode, *option)
    assert ended.code == 2
    assert f"{option[0]} is for --mode {other}" in ended.err


def test_a_lower_bound_is_reported(cli):
    ended = cli("plan", "fit", "--model", "flux.1-dev", "--gpu", "b300-sxm")
    assert ended.out.startswith("What is known fits: ")
    assert "at least" in ended.out.splitlines()[0]
    assert "activations  unknown: no closed form" in ended.out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--count", "0"), "--count 0"),
        (("--gpu", "a100-sxm4-80gb", "--precision", "fp8"), "no fp8 units"),
        (("--gpu", "h100x"), "did you mean"),
        (("--model", "llama-3-7b"), "did you mean"),
        (("--config", "x.json"), "either --model or --config"),
        (("--count", "3", "--tensor", "3"), "does not divide"),
        (("--mode", "dance"), "--mode"),
    ],
)
def test_bad_input(cli, args, says):
    ended = cli("plan", "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", *args)
    assert ended.code == 2
    assert ended.out == ""
    assert says in ended.err
    assert "next: " in ended.err


def test_a_config_file(cli, tmp_path):
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    data = cli("plan", "fit", "--config", "config.json", "--gpu", "h100-sxm", "--mode", "serve", "--json").json()
    named = cli("plan", "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--mode", "serve", "--json").json()
    assert data["params_total"] == named["params_total"] == 8_030_261_248
    assert data["per_gpu_bytes"] == named["per_gpu_bytes"]


def test_documents(cli, tmp_path):
    ended = cli(*LLAMA, "--out", "there", "--json")
    files = ended.json()["files"]
    assert set(files) == {"fit.html", "fit.md", "fit.json"}
    page = (tmp_path / files["fit.html"]).read_text(encoding="utf-8")
    assert "Does not fit" in page
    assert "--zero 3" in page
    text = (tmp_path / files["fit.md"]).read_text(encoding="utf-8")
    assert text.startswith("# Does not fit: llama-3.1-70b (70.6 B) to train on 8 x h100-sxm5-80gb")
    assert json.loads((tmp_path / files["fit.json"]).read_text(encoding="utf-8"))["fits"] is False
    assert "the report: there/fit.html" in cli(*LLAMA, "--mode", "serve", "--out", "there").out


def test_a_model_that_reads_less_than_the_usual_length(cli):
    ended = cli("plan", "fit", "--model", "gpt-2", "--gpu", "t4", "--json")
    assert ended.json()["setup"]["sequence"] == 1024
    ended = cli("plan", "fit", "--model", "gpt-2", "--gpu", "t4", "--sequence", "4096")
    assert ended.code == 2
    assert "reads at most 1024 tokens" in ended.err


def test_a_model_that_fits_nowhere_ends_with_2_after_the_whole_answer(cli, tmp_path):
    shape = {
        "model_type": "llama", "hidden_size": 2**20, "intermediate_size": 2**22, "num_hidden_layers": 200,
        "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 32000, "max_position_embeddings": 4096,
    }  # fmt: skip
    (tmp_path / "huge.json").write_text(json.dumps(shape))
    ended = cli("plan", "fit", "--config", "huge.json", "--gpu", "h100-sxm")
    assert ended.code == 2
    assert "It fits nowhere" in ended.out
    assert "error: nothing tried makes huge fit" in ended.err
    assert "next: " in ended.err


@pytest.mark.parametrize(("mode", "option", "value"), [("train", "--sequence", 512), ("serve", "--context", 400),
                                                       ("serve", "--cache-precision", "fp8")])  # fmt: skip
def test_an_option_of_text_is_refused_for_images(cli, mode, option, value):
    for command in ("fit", "throughput"):
        ended = cli("plan", command, "--model", "resnet-50", "--gpu", "h100-sxm", "--mode", mode, option, value)
        assert ended.code == 2
        assert f"{option} is for text models, and resnet-50 is not one" in ended.err


def test_what_a_file_describes_besides_the_decoder_is_reported_as_omitted(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "installed", lambda: False)
    shape = {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34}
    (tmp_path / "seeing.json").write_text(json.dumps({"model_type": "gemma3", "text_config": shape}))
    for command in ("fit", "throughput"):
        ended = cli("plan", command, "--config", "seeing.json", "--gpu", "h100-sxm", "--json")
        assert any("vision encoder, is not in it" in words for words in ended.json()["assumptions"])


def test_a_small_model_has_millions_of_parameters(cli):
    out = cli("plan", "fit", "--model", "resnet-50", "--gpu", "h100-sxm").out
    assert out.startswith("Fits: resnet-50 (25.6 M) to train")
