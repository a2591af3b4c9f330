"""Does the error table run, with and without measured files, and do the shipped quantiles say what it finds?"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.speed.facts import factors

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"  # holds the training runs of our own H200 recording


def errors(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "plan_errors.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_without_the_shared_files(tmp_path):
    done = errors("--shared", tmp_path, "--measured", tmp_path / "nothing.json")
    assert "serving: left out" in done.stdout
    assert "nothing measured on a GPU" in done.stdout
    assert "ZeRO 3, 7.5 B, 64 GPUs" in done.stdout


def test_memory_measured_on_a_gpu():
    found = json.loads(errors("--json", "--shared", "nowhere").stdout)["measured_memory"]
    steady = [row for row in found if "no accumulation" not in row["row"]]
    assert all(abs(row["tensors_ratio"] - 1) < 0.02 for row in steady), "tensors are within 2 % of torch's own peak"
    errors_of = overheads().error
    for row in (row for row in found if row["mode"] == "train"):
        told = errors_of.train_autocast if "autocast" in row["row"] else errors_of.train
        assert told.p10 < row["total_ratio"] < told.p90, "the printed range holds every run"
    served = [row["total_ratio"] for row in found if row["mode"] == "serve"]
    cuts = statistics.quantiles(served, n=10, method="inclusive")
    assert errors_of.serve.rows == len(served)
    for name, at in (("p10", 0), ("p50", 4), ("p90", 8)):
        assert getattr(errors_of.serve, name) == pytest.approx(cuts[at], abs=0.002)


def test_the_shipped_quantiles_of_training_are_those_found():
    """Those of decoding come from a file that is not part of the project: tests/outside holds them to it."""
    found = json.loads(errors("--json", "--shared", DATA).stdout)["training"]
    ratios = defaultdict(list)
    for row in (row for row in found if row["held_out"]):
        ratios[row["of"]].append(row["ratio"])
    assert {error.of for error in factors().train.errors} == set(ratios)
    for error in factors().train.errors:
        mine = ratios[error.of]
        assert error.rows == len(mine)
        assert error.p50 == pytest.approx(statistics.median(mine), abs=0.002)
        inside = sum(error.p10 <= ratio <= error.p90 for ratio in mine)
        assert inside >= 0.8 * len(mine), "what is printed as a range held eight of ten"


def test_only_models_that_did_not_calibrate_are_in_the_quantiles_of_decoding(tmp_path):
    """Three rates of one model that checks, each half the one before, and one of a model that calibrates."""
    rows = [("Qwen/Qwen3-8B", rate) for rate in (400, 200, 100)] + [("Qwen/Qwen3-14B", 50)]
    usual = {"task": "gpqa", "data_parallel": 1, "gpu_model": "H100", "avg_batch_size": 8, "num_gpus": 1,
             "avg_output_len": 1000, "weight_precision": "bfloat16"}  # fmt: skip
    (tmp_path / "telemetry").mkdir()
    with (tmp_path / "telemetry" / "mlenergy_v3_serving_energy.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, [*usual, "model_id", "output_throughput_tokens_per_sec"])
        table.writeheader()
        for model, rate in rows:
            table.writerow({**usual, "model_id": model, "output_throughput_tokens_per_sec": rate})
    found = json.loads(errors("--json", "--shared", tmp_path).stdout)["serving"]
    assert {row["held_out"] for row in found["by_model"]} == {True, False}
    held = found["held_out"]
    assert set(held) == {"all", "dense", "dense, Hopper"}
    assert held["all"] == held["dense"] == held["dense, Hopper"]
    assert held["all"]["rows"] == 3
    first = held["all"]["p50"] / 2  # predicted over measured: twice as slow is twice the ratio
    assert held["all"]["p10"] == pytest.approx(1.2 * first)
    assert held["all"]["p90"] == pytest.approx(3.6 * first)


def test_no_model_both_calibrates_and_checks():
    split = tomllib.loads((ROOT / "benchmarks" / "plan_split.toml").read_text(encoding="utf-8"))
    assert not set(split["calibrate"].values()) & set(split["held_out"].values())
