"""Does benchmarks/truth.py print what it promises, and say what is wrong with its input?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "data" / "h200_replay.csv.gz"
INFO = {"gpu": "NVIDIA H200", "power_limit_w": 700.0, "measured_bf16_gemm_tflops": 669}
TRUTH = {
    "bf16_gemm_8192": {"tflop_per_s": 668.8, "precision": "bf16", "accepted_classes": ["compute-bound"]},
    "lm_train_bf16_b16": {"tflop_per_s": 477.8, "precision": "bfloat16"},
    "memcopy": {"tflop_per_s": 0.0, "accepted_classes": ["memory-bound"]},
    "spin_one_block": {"tflop_per_s": 0.0, "accepted_classes": ["spinning"]},
    "idle": {"tflop_per_s": 0.0, "accepted_classes": ["idle"]},
    "never_ran": {"tflop_per_s": 1.0},
}


def truth(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "truth.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("truth") / "truth.json"
    path.write_text(json.dumps({"info": INFO, "workloads": TRUTH}), encoding="utf-8")
    return str(path)


def test_json(told: str) -> None:
    ran = truth(str(SAMPLES), told, "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)["workloads"]
    assert set(found) == set(TRUTH) - {"never_ran"}
    assert "never_ran" in ran.stderr
    gemm = found["bf16_gemm_8192"]
    promised = {"true_tflops", "power_tflops", "counters_tflops", "low_tflops", "high_tflops", "class"}
    assert promised <= set(gemm)
    assert gemm["counters_tflops"] == pytest.approx(668.8, rel=0.05)
    assert gemm["power_tflops"] == pytest.approx(661, rel=0.02)
    # Four of this row's counter windows were missed in the whole recording; they must not read as idle time.
    assert found["lm_train_bf16_b16"]["counters_tflops"] == pytest.approx(477.8, rel=0.08)


def test_table_and_bars(told: str) -> None:
    ran = truth(str(SAMPLES), told)
    assert ran.returncode == 0, ran.stdout
    assert "FAILS" not in ran.stdout
    assert "holds  worst error within 15%" in ran.stdout


def test_a_bar_that_is_missed_is_said(tmp_path: Path) -> None:
    wrong = {"bf16_gemm_8192": {"tflop_per_s": 400.0, "precision": "bf16", "accepted_classes": ["idle"]}}
    (tmp_path / "t.json").write_text(json.dumps({"info": INFO, "workloads": wrong}), encoding="utf-8")
    ran = truth(str(SAMPLES), str(tmp_path / "t.json"))
    assert ran.returncode == 1
    assert "FAILS  every class is an accepted one: bf16_gemm_8192" in ran.stdout


def test_bad_input_in_words(tmp_path: Path, told: str) -> None:
    (tmp_path / "s.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for samples, truths in (
        (str(tmp_path / "no.csv"), told),
        (str(tmp_path / "s.csv"), told),
        (str(SAMPLES), "no.json"),
    ):
        ran = truth(samples, truths)
        assert ran.returncode == 2
        assert ran.stderr.strip()
        assert "Traceback" not in ran.stderr


def test_the_held_out_recording_stays_within_the_bars() -> None:
    """28 workloads; three classes written down beforehand were wrong guesses, and the page of results says so."""
    held = ROOT / "benchmarks" / "data" / "heldout_h200"
    ran = truth(str(held / "samples.csv.gz"), str(held / "truth.json"))
    bars = [line for line in ran.stdout.splitlines() if line.startswith(("holds", "FAILS"))]
    said = {line.split(": ")[0].split("  ")[1]: line for line in bars}
    assert said["every range contains the truth"].startswith("holds"), ran.stdout
    assert said["no range wider than 4 x"].startswith("holds")
    assert said["worst error within 15%"].startswith("holds")
    assert said["median error within 8%"].startswith("holds")
    wrong = said["every class is an accepted one"].split(": ")[1].split(", ")
    assert wrong == ["efficientnet_bf16_b128", "densenet_tf32_b64", "softmax_bf16"]
