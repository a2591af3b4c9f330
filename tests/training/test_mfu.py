"""Is work held against the right peak, said in words, and refused where there is none?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import find_gpu, get_gpu, load_gpus
from gpuledger.catalog.models import get_model
from gpuledger.efficiency.calibration_files import BoardCalibration, Product, Spread
from gpuledger.errors import InputError
from gpuledger.training.mfu import (
    AboveAll,
    measured_achievable,
    mfu_pct,
    rate_for,
    sequence_for,
    training_utilization,
    utilization,
)
from gpuledger.units import Unknown

H100, A100, V100, H200 = (get_gpu(n) for n in ("h100-sxm", "A100-SXM4-80GB", "V100-SXM2-16GB", "h200-sxm-141gb"))
LLAMA = get_model("llama-3.1-8b")


def board(uuid="GPU-1", model="NVIDIA H100 80GB HBM3", tflops=700.0, precision="bf16"):
    product = Product(tflops=Spread(tflops, tflops, tflops, 3), n=8192)
    return BoardCalibration(gpu_uuid=uuid, gpu_model=model, as_of="2026-11-01", seconds=5, tflops={precision: product})


def test_pencil_case():
    """Eight GPUs of 989.5 TFLOPS doing 3.958e15 FLOP a second together: half."""
    assert mfu_pct(3.958e15, H100, count=8) == pytest.approx(50)
    found = utilization(3.958e15, H100, "fp8", 8)
    assert found.achieved_tflops == pytest.approx(494.75)
    assert found.mfu_in_use_pct == pytest.approx(25)
    assert "dense bf16 peak" in found.peak.words
    assert "989.5" in found.peak.words
    assert "dense fp8 peak" in found.in_use.words


def test_the_denominator_stays_bf16_whatever_is_in_use():
    found = {p: utilization(5e13, H100, p) for p in ("bf16", "fp8", "tf32", "fp32")}
    assert len({u.mfu_pct for u in found.values()}) == 1
    assert found["fp32"].mfu_in_use_pct > found["tf32"].mfu_in_use_pct > found["fp8"].mfu_in_use_pct


def test_palms_own_case():
    """PaLM 540B, appendix B: 238.3 thousand tokens a second on 6144 TPU v4 of 275 TFLOPS are 46.2 % with attention."""
    per_token = 6 * 540.35e9 + 12 * 118 * 48 * 256 * 2048
    assert 100 * 238.3e3 * per_token / (6144 * 275e12) == pytest.approx(46.2, abs=0.3)


def test_an_unknown_gpu_has_no_mfu():
    unknown = find_gpu("RTX 9090")
    assert isinstance(unknown, Unknown)
    for found in (mfu_pct(1e15, unknown), utilization(1e15, unknown)):
        assert isinstance(found, Unknown)
        assert "RTX 9090" in found.why


def test_a_gpu_without_bf16_says_so_and_keeps_the_second_column():
    found = utilization(2.5e13, V100, "fp16")
    assert isinstance(found.mfu_pct, Unknown)
    assert "has no bf16" in found.mfu_pct.why
    assert found.mfu_in_use_pct == pytest.approx(20)
    with pytest.raises(InputError) as caught:
        utilization(2.5e13, V100, "bf16")
    assert "fp16" in caught.value.hint


def test_a_precision_the_gpu_lacks_is_refused_with_those_it_has():
    with pytest.raises(InputError) as caught:
        utilization(1e14, A100, "fp8")
    assert "bf16" in caught.value.hint


def test_achievable_is_the_users_own_boards_then_the_catalogs_measurement_then_unknown():
    own = [board("GPU-1", tflops=600), board("GPU-2", tflops=700), board("GPU-3", "NVIDIA A100-SXM4-80GB", tflops=1)]
    mine = measured_achievable(H100, "bf16", own)
    assert mine.tflops == 650
    assert "2 boards" in mine.words
    assert measured_achievable(H100, "bf16", own[:1]).tflops == 600
    assert isinstance(measured_achievable(H100, "fp16", own).tflops, Unknown)
    assert measured_achievable(H200, "bf16", []).tflops == 669
    nobody = measured_achievable(A100, "bf16", [])
    assert "calibrate" in nobody.tflops.why
    found = utilization(3.25e14, H100, boards=own)
    assert found.mfu_achievable_pct == pytest.approx(50)


def test_training_run():
    found = training_utilization(LLAMA, H100, 60_000, count=8, sequence=4096)
    by_hand = 100 * 60_000 * found["flop_per_token"] / (8 * 989.5e12)
    assert found["mfu_pct"] == pytest.approx(by_hand)
    assert by_hand == pytest.approx(39.01, abs=0.01)
    assert found["hfu_pct"] == found["mfu_pct"]
    assert sum(found["flop_per_token_by_part"].values()) == pytest.approx(found["flop_per_token"])
    assert found["mfu_causal_pct"] < found["mfu_pct"]
    again = training_utilization(LLAMA, H100, 60_000, count=8, sequence=4096, recompute=True)
    assert again["mfu_pct"] == found["mfu_pct"]
    assert again["hfu_pct"] == pytest.approx(found["hfu_pct"] * 4 / 3)


def test_images():
    found = training_utilization(get_model("resnet-50"), A100, 2500, precision="bf16")
    assert found["unit"] == "image"
    assert found["mfu_causal_pct"] is None
    assert found["flop_per_image"] == pytest.approx(6 * 4.089e9, rel=0.002)


def test_a_model_without_formula_is_refused():
    assert isinstance(training_utilization(get_model("flux.1-dev"), H100, 1), Unknown)


@pytest.mark.parametrize("bad", [0, -1, float("nan")])
def test_no_rate_no_share(bad):
    with pytest.raises(InputError):
        training_utilization(LLAMA, H100, bad, sequence=4096)
    with pytest.raises(InputError):
        utilization(bad, H100)


def test_no_gpus_no_share():
    with pytest.raises(InputError):
        utilization(1e12, H100, count=0)


def test_plain_data_say_what_is_not_known_and_what_cannot_be():
    data = training_utilization(LLAMA, H100, 60_000, count=1, sequence=4096, assumed=["as given"])
    shares = {"mfu_pct", "mfu_in_use_pct", "mfu_achievable_pct", "hfu_pct", "mfu_causal_pct"}
    assert all(data[name] is None for name in shares), "nothing above 100 % is a figure"
    why = {missing["figure"]: missing["why"] for missing in data["not_known"]}
    assert "% of the dense bf16 peak" in why["mfu_pct"]
    assert "check the rate" in why["mfu_pct"]
    assert data["warnings"] == [why["mfu_in_use_pct"]]
    assert data["achievable_tflops"] is None
    assert set(why) == {"achievable_tflops", *shares}
    assert data["assumptions"][0] == "as given"
    gemma = get_model("gemma-3-4b")
    beside = training_utilization(gemma, H100, 1, sequence=64)
    assert any("only the decoder" in text for text in beside["assumptions"])
    assert not beside["warnings"]


def test_what_the_log_says_must_fit_the_model():
    vit = get_model("vit-b-16")
    assert rate_for(LLAMA, 5.0, None) == 5
    assert rate_for(vit, None, 7.0) == 7
    for model, tokens, images in (
        (LLAMA, None, 5.0),
        (LLAMA, None, None),
        (LLAMA, 0.0, None),
        (LLAMA, math.inf, None),
        (LLAMA, math.nan, None),
        (vit, 5.0, None),
    ):
        with pytest.raises(InputError) as caught:
            rate_for(model, tokens, images)
        assert "per_s" in caught.value.hint or "per second" in caught.value.hint
    assert sequence_for(LLAMA, None, 4096)[0] == 4096
    assert sequence_for(get_model("gpt-2"), None, 4096) == (
        1024,
        ["sequences of 1,024 tokens, as none was given"],
    )
    assert sequence_for(LLAMA, 2048, 4096) == (2048, [])
    assert "at most 1,024" in sequence_for(get_model("gpt-2"), 4096, 4096)[1][0]
    assert sequence_for(vit, None, 4096) == (None, [])
    with pytest.raises(InputError):
        sequence_for(vit, 4096, 4096)
    with pytest.raises(InputError):
        sequence_for(LLAMA, 0, 4096)


RATED = [key for key, g in load_gpus().items() if not isinstance(g.peak(g.reference_precision()), Unknown)]


@given(st.sampled_from(RATED), st.floats(1.0001, 1e6), st.integers(1, 4096))
def test_more_than_all_is_no_share(key, times, count):
    gpu = get_gpu(key)
    precision = gpu.reference_precision()
    found = utilization(times * count * gpu.peak(precision) * 1e12, gpu, precision, count)
    assert isinstance(found.mfu_in_use_pct, AboveAll)
    assert isinstance(found.mfu_pct, Unknown)


@given(st.sampled_from(RATED), st.floats(1e-6, 0.499), st.integers(1, 4096))
def test_shares_scale_with_the_work_and_against_the_gpus(key, share, count):
    gpu = get_gpu(key)
    precision = gpu.reference_precision()
    flop_per_s = share * gpu.peak(precision) * 1e12
    one, more = (utilization(flop_per_s, gpu, precision, n) for n in (1, count))
    assert one.mfu_in_use_pct == pytest.approx(more.mfu_in_use_pct * count)
    twice = utilization(2 * flop_per_s, gpu, precision, count)
    assert twice.mfu_in_use_pct == pytest.approx(2 * more.mfu_in_use_pct)
    assert one.mfu_in_use_pct == pytest.approx(100 * one.achieved_tflops / gpu.peak(precision))


@pytest.mark.parametrize(("name", "words"), [("llama-3.1-8b", "transformers"), ("resnet-50", "convolutional networks")])
def test_the_usual_band_is_of_the_kind_of_model(name, words):
    from gpuledger.catalog.models import get_model
    from gpuledger.training.bands import band_of

    found = band_of(get_model(name))
    assert found.words == words
    assert 0 < found.low_pct < found.high_pct <= 100
    assert found.source
