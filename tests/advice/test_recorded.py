"""Advice on workloads that really ran: our own recordings on one H200, beside the precision they ran in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from case_table import NAMED
from casebook import case

from gpuledger.advice.case import Case
from gpuledger.advice.findings import find_all
from gpuledger.advice.limits import load_limits
from gpuledger.advice.rule import RULES
from gpuledger.physics.behavior import classify
from gpuledger.physics.pipes import precision_name
from gpuledger.physics.signals import Signals

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "h200_windows.json").read_text(encoding="utf-8"))
ROWS = {f"{part}/{name}": row for part in ("h200_truth", "own") for name, row in RECORDED[part].items()}
LIMITS = load_limits()
PRECISION = {"amp", "bf16", "tensor-cores"}


def case_of(name: str, told: bool) -> Case:
    row = ROWS[name]
    signals = Signals(**{k: tuple(v) if isinstance(v, list) else v for k, v in row["signals"].items()})
    found, mhz = classify(signals), row["activity_mhz"]
    kinds = {"fp64": mhz.get("dfma") or 0, "int8": mhz.get("imma") or 0}
    kind = next((k for k, v in kinds.items() if v and 2 * v >= (mhz.get("tensor") or 0)), None)
    made = case(found.klass, gpu="h200-sxm-141gb", confidence=found.confidence, tensor_kind=kind)
    precision = precision_name(row.get("precision")) if told else None
    return replace(made, signals=signals, evidence=found.evidence, precision=precision)


def rules(one: Case) -> set[str]:
    return {f.rule.id for f in find_all([one], LIMITS) if f.rule.lever != "rate"}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_precision_is_advised_only_where_it_helps(name: str, told: bool) -> None:
    one = case_of(name, told)
    ran_in = precision_name(ROWS[name].get("precision"))
    found = rules(one)
    if one.klass == "memory-bound":
        assert found.isdisjoint(PRECISION | {"fp8"})
    if ran_in in {"bf16", "fp16", "fp8", "int8", "fp64"}:
        assert found.isdisjoint(PRECISION)
    if "fp8" in found:
        assert ran_in not in {"int8", "fp64"}
        assert not told or ran_in in {"bf16", "fp16", None}


@pytest.mark.parametrize("name", [n for n in ROWS if precision_name(ROWS[n].get("precision")) == "fp32"])
def test_fp32_products_are_told_to_use_the_tensor_cores(name: str) -> None:
    one = case_of(name, told=False)
    if one.klass in {"compute-bound", "steady-partial"} and (one.signals.tensor_ratio or 0) < 0.1:
        assert rules(one) >= PRECISION


@pytest.mark.parametrize("name", ROWS)
def test_each_class_gets_its_own_advice(name: str) -> None:
    one = case_of(name, told=True)
    found = rules(one)
    if one.klass == "starved":
        assert {"num-workers", "prefetch"} <= found
        assert found.isdisjoint({"larger-batch", "cuda-graphs", "gradient-accumulation"})
    if one.klass == "launch-bound":
        assert ("cuda-graphs" in found) == ((one.signals.engine_ratio or 0) < LIMITS.pipes.gaps_below_ratio)
        assert found.isdisjoint({"num-workers", "dali"})
    if one.klass == "spinning":
        assert "profile" in found
        assert found.isdisjoint(NAMED - {"profile"})
    if one.klass in {"compute-bound", "memory-bound"}:
        assert found.isdisjoint({"num-workers", "dali", "cuda-graphs"})


def test_a_job_in_tf32_is_told_of_bf16_with_its_own_range() -> None:
    found = {f.rule.id: f for f in find_all([case_of("own/lm_tf32_b16", told=True)], LIMITS)}
    assert "tf32" in found["bf16"].reason.why
    assert found["bf16"].gain.range == (1.8, 2.1, 2.4)
    assert "tensor-cores" not in found


def test_the_ranges_are_those_of_the_recordings() -> None:
    rules = dict(RULES)

    def times(one: str, other: str) -> float:
        return ROWS[other]["true_tflops"] / ROWS[one]["true_tflops"]

    strict, lm = "own/resnet50_fp32_strict", "h200_truth/lm_train_fp32_b4"
    bf16, tf32, batch = (rules[name].gain.range for name in ("bf16", "tensor-cores", "larger-batch"))
    assert bf16[0] == pytest.approx(times(strict, "own/resnet50_bf16_b64"), abs=0.06)
    assert bf16[2] == pytest.approx(times(lm, "h200_truth/lm_train_bf16_b4"), abs=0.06)
    assert bf16[1] == pytest.approx((2.65 * 8.0) ** 0.5, abs=0.06)
    assert tf32[0] == pytest.approx(times(strict, "h200_truth/resnet50_fp32_b64"), abs=0.06)
    assert tf32[1] == pytest.approx(times(lm, "own/lm_tf32_b4"), abs=0.06)
    assert tf32[2] == pytest.approx(times("h200_truth/fp32_gemm_8192", "h200_truth/tf32_gemm_8192"), abs=0.06)
    assert batch[0] == pytest.approx(times("h200_truth/lm_train_bf16_b4", "own/lm_bf16_b8"), abs=0.01)
    assert batch[1] == pytest.approx(times("h200_truth/lm_train_bf16_b4", "h200_truth/lm_train_bf16_b16"), abs=0.01)
    from_tf32 = rules["bf16"].gain.variants["tf32"].range
    assert from_tf32[0] == pytest.approx(times("h200_truth/tf32_gemm_8192", "h200_truth/bf16_gemm_8192"), abs=0.06)
    assert from_tf32[1] == pytest.approx(times("own/lm_tf32_b4", "h200_truth/lm_train_bf16_b4"), abs=0.06)
    assert from_tf32[2] == pytest.approx(times("own/lm_tf32_b16", "h200_truth/lm_train_bf16_b16"), abs=0.06)
    waits = times("h200_truth/lm_train_bf16_b8_waits", "h200_truth/lm_train_bf16_b4")
    assert rules["num-workers"].gain.range[2] == pytest.approx(waits, abs=0.06)
