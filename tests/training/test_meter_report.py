"""Are MFU, tokens, dollars and joules what a pencil says, and unknown where they are?"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from loops import V100, observed, place

from gpuledger.efficiency.calibration_files import BoardCalibration, Product
from gpuledger.efficiency.calibration_files import Spread as MeasuredSpread
from gpuledger.training.meter_observed import Spread, Work
from gpuledger.training.meter_report import make_report, price_of, to_json
from gpuledger.units import Unknown


def report(seen, usd=3.6, boards=()):
    return make_report(seen, price_of(seen.place.gpu, usd), boards)


def board(tflops: float) -> BoardCalibration:
    product = Product(tflops=MeasuredSpread(tflops, tflops, tflops, 1), n=8192)
    name = place().name
    return BoardCalibration(gpu_uuid="GPU-a", gpu_model=name, as_of="2026-11-01", seconds=1.0, tflops={"bf16": product})


def test_by_pencil():
    made = report(observed(energy_j_per_step=60.0), boards=[board(700.0)])
    assert made.step_ms == pytest.approx(100)
    assert made.tokens_per_s == pytest.approx(81_920)
    assert made.samples_per_s == pytest.approx(80)
    assert made.mfu_pct == pytest.approx(50)
    assert made.model_tflops == pytest.approx(494.75)
    assert made.mfu_of_measured_pct == pytest.approx(100 * 494.75 / 700)
    # 3.60 dollars an hour are a tenth of a cent a second, in which 81,920 tokens go by.
    assert made.usd_per_million_tokens == pytest.approx(0.001 / 81_920 * 1e6)
    assert made.joules_per_token == pytest.approx(60 / 8192)
    assert sum(made.phases_pct.values()) == pytest.approx(100)
    assert "989.5 TFLOPS" in made.denominator
    assert "bf16" in made.denominator


def test_hfu_counts_what_is_done_twice_and_mfu_does_not():
    work = Work(3e13, 4e13, 1e13, "counted", recompute_ratio=1.0)
    made = report(observed(work=work))
    assert made.hfu_pct / made.mfu_pct == pytest.approx(4 / 3)


def test_flops_follow_the_tokens_where_batches_differ():
    work = Work(3e13, 3e13, 1e13, "counted", tokens=4096, samples=4)
    assert report(observed(work=work)).model_tflops == pytest.approx(2 * 3e13 / 0.1 / 1e12)
    assert report(observed(work=replace(work, tokens=None))).model_tflops == pytest.approx(2 * 300)


def test_one_denominator_whatever_the_precision():
    fast, slow = report(observed()), report(observed(precision="tf32"))
    assert fast.mfu_pct == slow.mfu_pct
    assert slow.mfu_of_precision_pct == pytest.approx(2 * slow.mfu_pct, rel=0.01)


def test_a_gpu_without_bf16_says_so_and_has_the_share_of_its_own_precision():
    made = report(observed(gpu=V100, precision="fp16"))
    assert "no bf16" in made.mfu_pct.why
    assert made.mfu_of_precision_pct > 0
    assert "dense fp16 peak" in made.denominator_of_precision
    assert isinstance(report(observed(gpu=V100)).mfu_of_precision_pct, Unknown)


def test_an_unknown_device_has_no_mfu():
    made = report(observed(gpu=None), usd=None)
    for figure in (made.mfu_pct, made.hfu_pct, made.usd_per_million_tokens):
        assert isinstance(figure, Unknown)
    assert not isinstance(made.tokens_per_s, Unknown)
    assert made.denominator.startswith("none")


def test_prices_are_dated_or_given_never_guessed():
    assert price_of(place().gpu, 2.5).usd_per_gpu_h == 2.5
    listed = price_of(place().gpu, None)
    assert "median" in listed.words
    assert "listed 20" in listed.words


def test_json_is_plain_and_names_what_is_missing():
    made = to_json(report(observed(step=Unknown("no step was timed yet"))))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["mfu_pct"] is None
    assert {"figure": "mfu_pct", "why": "no step was timed yet"} in made["not_known"]
    assert made["seen"]["place"]["gpu"] == "h100-sxm5-80gb"


def test_a_step_of_no_time_is_not_divided_by():
    assert isinstance(report(observed(step=Spread(0, 0, 0, 0))).tokens_per_s, Unknown)
