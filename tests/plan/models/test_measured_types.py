"""Does a type that was never measured on a GPU get the range of first plans, and is it shown which range it is?"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger import plan
from gpuledger.catalog.models import get_model
from gpuledger.encode import encode
from gpuledger.plan import tracing
from gpuledger.plan.measured_types import measured_types, memory_errors, range_from, speed_errors
from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.speed.facts import ErrorSpread, factors
from gpuledger.report.documents.fit import fit_document
from gpuledger.report.documents.throughput import throughput_document

LLAMA = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
         "num_key_value_heads": 4, "intermediate_size": 1408, "vocab_size": 4096, "max_position_embeddings": 2048,
         "tie_word_embeddings": False}  # fmt: skip
NEVER = {**LLAMA, "model_type": "never_measured", "text_config": LLAMA}
SIZES = st.integers(min_value=0, max_value=10**12)
LOW, HIGH = st.floats(min_value=0.05, max_value=1.5), st.floats(min_value=0.7, max_value=9.0)


def written(folder: Path, fields: dict[str, object]) -> Path:
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    return folder / "config.json"


@pytest.fixture
def bare(monkeypatch):
    """An installation without torch and transformers."""
    monkeypatch.setattr(tracing, "installed", lambda *_: False)


@given(low=LOW, high=HIGH, gaps=st.integers(min_value=0, max_value=10**10), size=SIZES)
def test_the_range_of_memory_of_a_first_plan_holds_the_usual_one(low, high, gaps, size):
    usual = msgspec.structs.replace(overheads().error.traced, p10=low, p90=high, gaps_bytes=gaps)
    least, most = memory_errors(usual, "first_plans").span(size)
    assert least <= usual.span(size)[0] <= size <= usual.span(size)[1] <= most
    assert memory_errors(usual, "measured_type") is memory_errors(usual, None) is usual


@given(low=LOW, high=HIGH, of=st.sampled_from(["all", "images_or_sound", "denoisers", "autoencoders"]),
       per_s=st.floats(min_value=1e-3, max_value=1e9))  # fmt: skip
def test_the_range_of_speed_of_a_first_plan_holds_the_usual_one(low, high, of, per_s):
    usual = ErrorSpread(of=of, rows=3, p10=low, p50=1.0, p90=high)
    least, most = speed_errors(usual, "first_plans").range_of(per_s)
    assert least <= usual.range_of(per_s)[0]
    assert most >= usual.range_of(per_s)[1]
    assert speed_errors(usual, "measured_type") is speed_errors(usual, None) is usual


def test_first_plans_widen_every_shipped_range_of_traced_plans():
    errors = overheads().error
    for usual in (errors.traced, errors.train, errors.train_autocast):
        wide = memory_errors(usual, "first_plans")
        assert wide.p10 < usual.p10
        assert wide.p90 > usual.p90
    for usual in (one for one in factors().traced.errors if one.of in ("all", "images_or_sound")):
        wide = speed_errors(usual, "first_plans")
        assert wide.p10 < usual.p10
        assert wide.p90 > usual.p90


def test_a_type_is_measured_or_not_and_a_formula_of_a_measured_one_keeps_its_range(bare, tmp_path):
    llama = tracing.configured_model(written(tmp_path, LLAMA))
    assert range_from(llama, traced=True) == "measured_type"
    assert range_from(llama, traced=False) is None
    never = tracing.configured_model(written(tmp_path, NEVER))
    assert range_from(never, traced=True) == range_from(never, traced=False) == "first_plans"
    assert range_from(get_model("llama-3.2-1b"), traced=False) is None
    assert "UNet2DConditionModel" in measured_types().types


def test_a_measured_text_model_within_a_type_never_measured_is_a_first_plan(bare, tmp_path):
    usual, wide = (plan.fit(written(tmp_path, fields), "l4").statement for fields in (LLAMA, NEVER))
    assert usual.total_bytes == wide.total_bytes
    assert wide.low_bytes < usual.low_bytes
    assert wide.high_bytes > usual.high_bytes
    assert usual.range_from is None
    assert encode("fit", wide)["range_from"] == "first_plans"
    assert any("first plans of" in words for words in wide.assumptions)
    slow, fast = (plan.throughput(written(tmp_path, fields), "l4").statement.train.rate for fields in (LLAMA, NEVER))
    assert fast.low_per_s <= slow.low_per_s < slow.per_s == fast.per_s < slow.high_per_s < fast.high_per_s
    assert fast.range_from == "first_plans"


def test_both_documents_show_that_the_type_was_not_measured(bare, tmp_path):
    file, words = written(tmp_path, NEVER), "type not measured on a GPU; range of first predictions"
    fit = fit_document(plan.fit(file, "l4").statement)
    assert any(words in getattr(block, "text", "") for block in fit.screen)
    rate = throughput_document(plan.throughput(file, "l4").statement)
    assert any(words in getattr(block, "text", "") for block in rate.summary)


class TestTraced:
    """With transformers installed."""

    pytestmark = pytest.mark.torch

    @pytest.fixture(autouse=True)
    def transformers(self):
        return pytest.importorskip("transformers")

    def test_a_measured_type_keeps_its_range_and_another_has_that_of_first_plans(self, tmp_path):
        small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
                 "vocab_size": 512}  # fmt: skip
        for kind, rests_on in (("bert", "measured_type"), ("roc_bert", "first_plans")):
            file = written(tmp_path, {"model_type": kind, **small})
            found = plan.fit(file, "l4", micro_batch=4).statement
            assert found.range_from == rests_on
            errors = memory_errors(overheads().error.traced, rests_on)
            assert (found.low_bytes, found.high_bytes) == errors.span(found.total_bytes)
            assert plan.throughput(file, "l4", micro_batch=4).statement.train.rate.range_from == rests_on

    def test_a_model_that_reads_video_is_planned_by_the_clip(self, tmp_path):
        fields = {"model_type": "videomae", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "intermediate_size": 96, "image_size": 32, "patch_size": 8, "num_frames": 4}  # fmt: skip
        file = written(tmp_path, fields)
        found = plan.fit(file, "l4", micro_batch=2).statement
        assert not found.not_known
        assert "clips of 4 frames" in found.assumptions
        more = plan.fit(written(tmp_path, {**fields, "num_frames": 8}), "l4", micro_batch=2).statement
        assert more.per_gpu_bytes["activations"] > found.per_gpu_bytes["activations"]
        assert plan.throughput(file, "l4", micro_batch=2).statement.train.unit == "clip"
