"""Are MFU, tokens, dollars and joules what a pencil says, and unknown where they are?"""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from loops import V100, observed, place
from rich.console import Console

from gpuledger.efficiency.calibration_files import BoardCalibration, Product
from gpuledger.efficiency.calibration_files import Spread as MeasuredSpread
from gpuledger.report.documents.training import meter_document
from gpuledger.report.render.terminal import screen
from gpuledger.training.meter.observed import StepSeconds, Work
from gpuledger.training.meter.report import make_report, price_of, to_json
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
    work = Work(2e13, 2e13, 7e12, "counted")
    fast, slow = report(observed(work=work)), report(observed(work=work, precision="tf32"))
    assert fast.mfu_pct == slow.mfu_pct
    assert slow.mfu_of_precision_pct == pytest.approx(2 * slow.mfu_pct, rel=0.01)


def test_a_gpu_without_bf16_says_so_and_has_the_share_of_its_own_precision():
    made = report(observed(gpu=V100, precision="fp16", work=Work(5e12, 5e12, 2e12, "counted")))
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
    assert {"figure": "mfu_pct", "why": "no step was timed yet", "count": 1} in made["not_known"]
    assert made["seen"]["place"]["gpu"] == "h100-sxm5-80gb"


def test_a_step_of_no_time_is_not_divided_by():
    assert isinstance(report(observed(step=StepSeconds(0, 0, 0, 0))).tokens_per_s, Unknown)


def test_the_share_of_the_precision_in_use_needs_the_precision():
    made = report(observed(precision=Unknown("precision is observed in the second step, which did not come")))
    assert made.mfu_pct == pytest.approx(50), "MFU does not rest on it"
    for figure in (made.mfu_of_precision_pct, made.mfu_of_measured_pct):
        assert "second step" in figure.why


def test_a_share_above_all_is_refused_with_the_reason():
    """494.75 TFLOPS are half the bf16 peak and more than seven times what fp32 products can do."""
    made = report(observed(precision="fp32"))
    assert made.mfu_pct == pytest.approx(50)
    assert "% of the dense fp32 peak" in made.mfu_of_precision_pct.why
    assert "cannot all run in fp32" in made.mfu_of_precision_pct.why
    wrong = report(observed(work=Work(989.5e12 * 0.2, 989.5e12 * 0.2, 7e13, "counted")), boards=[board(700.0)])
    for figure in (wrong.mfu_pct, wrong.hfu_pct, wrong.mfu_of_precision_pct, wrong.mfu_of_measured_pct):
        assert isinstance(figure, Unknown)
    assert "200.0 % of the dense bf16 peak" in wrong.mfu_pct.why


def test_fp8_may_pass_the_bf16_peak_and_is_told_over_its_own():
    made = report(observed(precision="fp8", work=Work(989.5e12 * 0.12, 989.5e12 * 0.12, 4e13, "counted")))
    assert "fp8 products run above it" in made.mfu_pct.why
    assert made.mfu_of_precision_pct == pytest.approx(60, rel=0.01)


def test_several_precisions_share_the_time():
    """Nine tenths of the FLOPs at the bf16 peak and one at the fp32 peak: the last takes most of the time."""
    seen = observed(precision_ratios={"bf16": 0.9, "fp32": 0.1}, work=Work(2e13, 2e13, 7e12, "counted"))
    made = report(seen)
    fp32 = seen.place.gpu.peak("fp32")
    together = 1 / (0.9 / 989.5 + 0.1 / fp32)
    assert made.mfu_of_precision_pct == pytest.approx(100 * 200 / together)
    assert "90.0 % of the FLOPs at the dense bf16 peak" in made.denominator_of_precision
    assert "10.0 % of the FLOPs at the dense fp32 peak" in made.denominator_of_precision
    assert isinstance(report(seen, boards=[board(700.0)]).mfu_of_measured_pct, Unknown), "fp32 was not measured"


def test_fp64_products_run_on_the_tensor_cores_that_have_it():
    made = report(observed(precision="fp64", work=Work(5e12, 5e12, 2e12, "counted")))
    assert made.mfu_of_precision_pct == pytest.approx(100 * 50 / place().gpu.peak("fp64_tensor"))


def shown(found):
    console = Console(width=120, file=io.StringIO())
    for part in screen(meter_document(found), console.width):
        console.print(part)
    return console.file.getvalue()


def test_no_share_above_all_is_printed_not_even_of_a_stored_report():
    stored = to_json(report(observed())) | {"mfu_of_precision_pct": 116.6}
    stored["seen"] = {k: v for k, v in stored["seen"].items() if k != "precision_ratios"}
    text = shown(stored)
    assert "MFU in use" not in text
    assert "Unknown: mfu_of_precision_pct: 116.6 % is impossible" in " ".join(text.split())


def test_the_precision_and_its_shares_are_shown():
    text = shown(to_json(report(observed(precision_ratios={"bf16": 0.9, "fp32": 0.1}))))
    assert "as observed: bf16 90.0 %, fp32 10.0 % of the FLOPs" in " ".join(text.split())
