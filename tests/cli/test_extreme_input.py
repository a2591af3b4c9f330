"""Is input at the edge of what can be written refused in words, never with a traceback?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

DEEP = 100_000


def refused(ended, *words: str) -> None:
    """Exit 2, one error line with these words, and a next step."""
    assert ended.code == 2, ended
    assert ended.out == ""
    first, second = ended.err.strip().splitlines()
    assert first.startswith("error: ")
    assert second.startswith("next: ")
    assert "bug in gpuledger" not in ended.err
    for word in words:
        assert word in ended.err, (word, ended.err)


@pytest.fixture
def lake(cli, fleet_lake):
    shutil.copytree(fleet_lake, "lake")
    return "lake"


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--since", "0001-01-01", "not between 1970 and 2199"),
        ("--since", "9999-12-31T23:59:59.999999+00:00", "not between 1970 and 2199"),
        ("--until", "0001-01-01T00:00:00+14:00", "not between 1970 and 2199"),
        ("--until", "9999-12-31T23:59:59.999999+00:00", "not between 1970 and 2199"),
        ("--until", "9999-12-31T23:59:59.999999-14:00", "not between 1970 and 2199"),
        ("--last", "99999999999d", "thousand years"),
        ("--last", f"{'9' * 400}w", "thousand years"),
    ],
)
@pytest.mark.parametrize("command", ["analyze", "audit"])
def test_windows(cli, lake, command, option, value, word):
    refused(cli(command, "--lake", lake, option, value), word)


@pytest.mark.parametrize(("option", "value"), [("--since", "1970-01-01"), ("--until", "2199-12-31"), ("--last", "99w")])
def test_wide_windows_are_windows(cli, lake, option, value):
    for command in ("analyze", "audit"):
        assert cli(command, "--lake", lake, option, value, "--json").json()["samples"] == 864


TOML_OPTIONS = (("analyze", "--thresholds"), ("audit", "--teams"), ("audit", "--limits"))


@pytest.mark.parametrize(("command", "option"), TOML_OPTIONS)
@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("name = 'café'\n".encode("latin-1"), "not UTF-8 text"),
        (b"a = " + b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
        (b"a = " + b"9" * 5000, "broken TOML"),
    ],
    ids=["latin-1", "nested", "digits"],
)
def test_toml_files(cli, lake, tmp_path, command, option, content, word):
    (tmp_path / "own.toml").write_bytes(content)
    refused(cli(command, "--lake", lake, option, "own.toml"), "own.toml", word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (f"device,usd_per_h\n{'x' * 200_000},1\n", "line 2"),
        (f"device,usd_per_h\nGPU-1,{'1' * 200_000}\n", "line 2"),
        ("device,usd_per_h\nGPU-1,1e25\n", "usd_per_h"),
        ("device,usd_per_h\nGPU-1,1e-308\n", "usd_per_h"),
        ("device,from,usd_per_h\nGPU-1,0001-01-01,1\n", "from"),
        ("device,to,usd_per_h\nGPU-1,9999-12-31T23:59:59.999999+00:00,1\n", "to"),
    ],
)
def test_inventories(cli, lake, tmp_path, text, word):
    (tmp_path / "i.csv").write_text(text)
    refused(cli("audit", "--lake", lake, "--inventory", "i.csv"), "i.csv", word)


@pytest.mark.parametrize("price", ["1e25", "1e-308", "1000001", "0.0000009", "NaN", "Infinity", "-1", "0"])
def test_prices(cli, lake, price):
    refused(cli("audit", "--lake", lake, "--price", price), "is not a price")
    if price != "0":  # electricity may be free
        refused(cli("audit", "--lake", lake, "--usd-per-kwh", price), "is not a price")


@pytest.mark.parametrize("price", ["0.000001", "1000000"])
def test_prices_at_the_edge_are_prices(cli, lake, price):
    ended = cli("audit", "--lake", lake, "--price", price, "--out", "out", "--json")
    assert ended.code == 0, ended.err
    assert float(ended.json()["paid_usd"]) == pytest.approx(float(price) * 3 * 48, rel=1e-3)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--tokens-per-s", "1e308"),
        ("--tokens-per-s", "inf"),
        ("--tokens-per-s", "nan"),
        ("--count", "9" * 400),
        ("--count", "0"),
        ("--sequence", "9" * 400),
    ],
)
def test_training_rates(cli, option, value):
    given = {"--model": "llama-3.1-8b", "--gpu": "h100-sxm5-80gb", "--tokens-per-s": "60000", option: value}
    refused(cli("train", "mfu", *(part for pair in given.items() for part in pair)), option)


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("r.json", "[" * DEEP + "]" * DEEP, "nested too deeply"),
        ("r.json", '[{"usd_per_h": ' + "9" * 5000 + "}]", "broken JSON"),
        ("r.json", '[{"usd_per_h": [[2]]}]', "list or a table"),
        ("r.toml", "a = " + "[" * DEEP, "nested too deeply"),
        ("r.csv", f"usd_per_h,price_scope,as_of,note\n2,gpu,2026-01-01,{'x' * 200_000}\n", "cannot be read as CSV"),
        ("r.csv", "usd_per_h,price_scope,as_of,gpu\n1e25,gpu,2026-01-01,h100-sxm5-80gb\n", "usd_per_h"),
        ("r.csv", f"usd_per_h,price_scope,as_of,gpu,count\n2,gpu,2026-01-01,h100-sxm5-80gb,{'9' * 5000}\n", "99,999"),
    ],
)
def test_own_rates(cli, tmp_path, name, text, word):
    (tmp_path / name).write_text(text)
    refused(cli("prices", "update", name, "--lake", "lake"), name, word)
    assert not Path("lake").exists()


LLAMA = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 1000,
    "intermediate_size": 128, "max_position_embeddings": 512, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"model_type": ["llama"]}, "model_type"),
        ({"model_type": {"a": 1}}, "model_type"),
        ({"model_type": 3}, "model_type"),
        ({"num_hidden_layers": 10**18}, "num_hidden_layers"),
        ({"hidden_size": 10**400}, "hidden_size"),
        ({"text_config": {"model_type": ["llama"]}}, "model_type"),
    ],
)
def test_model_configurations(cli, tmp_path, changes, word):
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, **changes}))
    ended = cli("train", "mfu", "--config", "config.json", "--gpu", "h100-sxm5-80gb", "--tokens-per-s", "1")
    refused(ended, "config.json", word)


def test_a_nested_model_configuration(cli, tmp_path):
    (tmp_path / "config.json").write_text("[" * DEEP)
    ended = cli("plan", "fit", "--config", "config.json", "--gpu", "h100-sxm5-80gb")
    refused(ended, "config.json", "nested too deeply")


@pytest.mark.parametrize("duration", ["nan", "inf", "-inf", "0", "-1", "1e300"])
def test_recording_needs_a_length(cli, duration):
    refused(cli("record", "--lake", "lake", "--duration", duration, "--device", "replay:none.csv"), "cannot record for")


REQUEST = {
    "v": 1, "kind": "request", "node": "a", "ok": True, "start_s": 0.0, "latency_s": 0.5, "input_tokens": 10,
    "output_tokens": 10,
}  # fmt: skip


def results(path: Path, header: dict, request: dict) -> Path:
    first = {"v": 1, "kind": "run", "planned": {"a": 4}, "nodes": {"a": {"gpu": "NVIDIA A30", "gpus": 1}},
             "baseline": None, "wall_s": 4.0, **header}  # fmt: skip
    rows = [first, {**REQUEST, "request": 0, **request}, *({**REQUEST, "request": i} for i in range(1, 4))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("header", "request_", "word"),
    [
        ({"load": {"kind": ["poisson"]}}, {}, "load.kind"),
        ({"load": {"kind": {"a": 1}}}, {}, "load.kind"),
        ({"wall_s": 1e308}, {}, "wall_s"),
        ({"wall_s": 1e-308}, {}, "wall_s"),
        ({"planned": {"a": 10**30}}, {}, "planned"),
        ({}, {"latency_s": 1e-308}, "latency_s"),
        ({}, {"latency_s": 1e308}, "latency_s"),
        ({}, {"start_s": -1e308}, "start_s"),
        ({}, {"output_tokens": 10**30}, "output_tokens"),
        ({}, {"input_tokens": 1e308}, "input_tokens"),
        ({}, {"batch": [1]}, "batch"),
    ],
)
def test_benchmark_results_lose_only_the_value(cli, tmp_path, header, request_, word):
    ended = cli("scaling", results(tmp_path / "r.jsonl", header, request_), "--out", "out", "--json")
    assert ended.code == 0, ended.err
    assert any(word in fault for fault in ended.json()["faults"])
