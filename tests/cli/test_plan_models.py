"""What does a user see who plans a model of another family, or a paged cache?"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from gpuledger.cli import main
from gpuledger.plan import tracing

GEMMA = {"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
         "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000}  # fmt: skip


def ran(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["plan", *words], prog_name="gpuledger")
    return found.exit_code, found.output


@pytest.fixture
def gemma(tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "installed", lambda: False)
    (tmp_path / "config.json").write_text(json.dumps(GEMMA))
    return str(tmp_path / "config.json")


def test_json_has_the_pool_of_a_paged_cache():
    code, out = ran(
        "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--mode", "serve", "--cache", "paged", "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert found["paged"]["sequences"] > 64
    assert found["paged"]["block_tokens"] == 16


def test_paged_is_for_serving():
    code, out = ran("fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--cache", "paged")
    assert code == 2
    assert "--mode serve" in out


def test_a_config_without_transformers_is_planned_by_formula(gemma):
    code, out = ran("fit", "--config", gemma, "--gpu", "h200-sxm", "--sequence", "2048", "--full")
    assert code == 0
    assert "pip install torch transformers" in " ".join(out.split())


def test_fewer_bytes_without_accumulation(gemma):
    totals = [
        json.loads(ran("fit", "--config", gemma, "--gpu", "h200-sxm", "--json", *more)[1])["total_bytes"]
        for more in ([], ["--no-accumulate"])
    ]
    assert totals[1] < totals[0]


def test_an_unknown_type_ends_with_a_next_step(tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "installed", lambda: False)
    (tmp_path / "config.json").write_text('{"model_type": "martian"}')
    code, out = ran("fit", "--config", str(tmp_path / "config.json"), "--gpu", "h200-sxm")
    assert code == 2
    assert "transformers" in out
