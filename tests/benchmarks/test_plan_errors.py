"""Does the error table run, with and without the shared files, and do the shipped quantiles say what it finds?"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.speed.facts import factors

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


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
    for mode in ("train", "serve"):
        totals, told = [row["total_ratio"] for row in found if row["mode"] == mode], overheads().error.of(mode)
        cuts = statistics.quantiles(totals, n=10, method="inclusive")
        assert told.rows == len(totals)
        for name, at in (("p10", 0), ("p50", 4), ("p90", 8)):
            assert getattr(told, name) == pytest.approx(cuts[at], abs=0.002)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the measured serving file is not here")
def test_the_shipped_quantiles_are_those_found():
    found = json.loads(errors("--json", "--shared", SHARED).stdout)
    held = found["serving"]["held_out"]
    for error in factors().decode.errors:
        assert error.rows == held[error.of]["rows"]
        for name in ("p10", "p50", "p90"):
            assert getattr(error, name) == pytest.approx(held[error.of][name], abs=0.002)
    ratios = sorted(row["ratio"] for row in found["training"] if row["held_out"])
    whole = next(error for error in factors().train.errors if error.of == "all")
    assert whole.rows == len(ratios)
    middle = (ratios[(len(ratios) - 1) // 2] + ratios[len(ratios) // 2]) / 2
    assert whole.p50 == pytest.approx(middle, abs=0.002)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the measured serving file is not here")
def test_no_model_both_calibrates_and_checks():
    import tomllib

    split = tomllib.loads((ROOT / "benchmarks" / "plan_split.toml").read_text(encoding="utf-8"))
    assert not set(split["calibrate"].values()) & set(split["held_out"].values())
