"""Does benchmarks/truth/score.py score what it is given, and say what is wrong with its input?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCORE = ROOT / "benchmarks" / "truth" / "score.py"
HELD_OUT = ROOT / "benchmarks" / "truth" / "recordings" / "heldout_h200"
ROWS = ROOT / "tests" / "data" / "truth_rows"
FORMULAS = {"utilization x peak", "power / limit x peak", "SM active x peak", "tensor active x peak"}


def score(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCORE), *map(str, args)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def held_out() -> tuple[int, dict[str, Any]]:
    ran = score(HELD_OUT, "--json")
    assert ran.returncode in (0, 1), ran.stderr
    return ran.returncode, json.loads(ran.stdout)["recordings"]["heldout_h200"]


def test_the_held_out_recording_is_within_the_bars(held_out: tuple[int, dict[str, Any]]) -> None:
    code, found = held_out
    assert all(found["bars"].values()), (found["bars"], found["scores"]["gpuledger"])
    assert code == 0


def test_the_exit_code_follows_the_bars(held_out: tuple[int, dict[str, Any]]) -> None:
    code, found = held_out
    assert code == (0 if all(found["bars"].values()) else 1)


def test_the_formulas_of_the_field_are_scored_on_the_same_rows(held_out: tuple[int, dict[str, Any]]) -> None:
    _, found = held_out
    assert set(found["scores"]) == {"gpuledger", *FORMULAS}
    assert len({s["rows"] for s in found["scores"].values()}) == 1
    errors = found["workloads"]["fp32_gemm_10000"]["error_pct"]
    assert errors["tensor active x peak"] == pytest.approx(-100, abs=0.1), "fp32 products do not use the tensor pipe"
    assert errors["utilization x peak"] == pytest.approx(100 * (0.997 * 67.0 / 48.688 - 1), abs=1)
    assert found["scores"]["utilization x peak"]["ranges_held"] is None


def test_rows_that_only_have_a_class_or_a_range_count_there_only(held_out: tuple[int, dict[str, Any]]) -> None:
    workloads = held_out[1]["workloads"]
    assert not workloads["efficientnet_bf16_b128"]["error_pct"], "its FLOPs are not known"
    assert not workloads["densenet_tf32_b64"]["error_pct"], "convolutions are held to the range"
    assert workloads["tf32_gemm_6000"]["error_pct"]
    assert held_out[1]["scores"]["gpuledger"]["ranges_held"][1] == len(workloads) - 2


def answers(tmp_path: Path, factor: float, klass: str | None = None, leave_out: str = "") -> Path:
    facts = json.loads((ROWS / "truth.json").read_text(encoding="utf-8"))["workloads"]
    given = {
        name: {
            "tflops": factor * one["tflop_per_s"],
            "low_tflops": 0.9 * factor * one["tflop_per_s"],
            "high_tflops": 1.1 * factor * one["tflop_per_s"],
            "class": klass or one["accepted_classes"][0],
        }
        for name, one in facts.items()
        if name != leave_out
    }
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"truth_rows": given}), encoding="utf-8")
    return path


def test_another_tool_that_is_right_passes(tmp_path: Path) -> None:
    ran = score(ROWS, "--answers", answers(tmp_path, 1.0), "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(ran.stdout)["recordings"]["truth_rows"]["scores"]["other"]
    assert found["worst_pct"] == pytest.approx(0)
    assert found["ranges_held"] == [7, 7]
    assert found["classes_accepted"] == [7, 7]


def test_another_tool_that_is_wrong_fails(tmp_path: Path) -> None:
    ran = score(ROWS, "--answers", answers(tmp_path, 1.2, "idle"))
    assert ran.returncode == 1
    assert "FAILS  worst error within 15 %" in ran.stdout
    assert "FAILS  at least 95 % of the ranges contain the truth" in ran.stdout
    assert "0 of 7" in ran.stdout, "no class is accepted"


def test_no_answer_counts_as_a_miss(tmp_path: Path) -> None:
    ran = score(ROWS, "--answers", answers(tmp_path, 1.0, leave_out="bf16_gemm_8192"), "--json")
    assert ran.returncode == 1
    found = json.loads(ran.stdout)["recordings"]["truth_rows"]["scores"]["other"]
    assert (found["worst_workload"], found["worst_pct"]) == ("bf16_gemm_8192", -100)
    assert found["ranges_missed"] == found["classes_missed"] == ["bf16_gemm_8192"]


def test_tables_in_a_document_are_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- truth summary truth_rows -->\nstale\n<!-- /truth -->\nbetween\n"
        "<!-- truth detail truth_rows -->\nstale\n<!-- /truth -->\nafter\n",
        encoding="utf-8",
    )
    given = answers(tmp_path, 1.0)
    assert score(ROWS, "--answers", given, "--update", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "stale" not in text
    assert "| other | +0.0 % |" in text.replace("-0.0 %", "+0.0 %")
    assert "| bf16_gemm_8192 | bf16 | 668.8 | 668.8 |" in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- /truth -->\nafter\n")
    assert score(ROWS, "--answers", given, "--update", page).returncode == 0
    assert page.read_text(encoding="utf-8") == text


def test_the_rows_can_be_exported_for_another_tool(tmp_path: Path) -> None:
    assert score(ROWS, "--export", tmp_path).returncode == 0
    known, unknown = ((tmp_path / f"truth_rows{end}.csv").read_text("utf-8") for end in ("", "_no_precision"))
    assert known.count("\n") == unknown.count("\n") > 280
    assert ",bf16," in known
    assert ",bf16," not in unknown


def test_bad_input_in_words(tmp_path: Path) -> None:
    (tmp_path / "samples.csv.gz").write_bytes(b"not gzipped")
    (tmp_path / "truth.json").write_text('{"info": {}, "workloads": {}}', encoding="utf-8")
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    page, sound = tmp_path / "page.md", tmp_path / "sound"
    page.write_text("no marks", encoding="utf-8")
    sound.mkdir()
    cases: list[tuple[str | Path, ...]] = [
        (tmp_path / "missing",),
        (tmp_path,),
        (ROWS, "--answers", tmp_path / "other.json"),
        (ROWS, "--answers", answers(sound, 1.0), "--update", page),
    ]
    for args in cases:
        ran = score(*args)
        assert ran.returncode == 2, (args, ran.stdout)
        assert ran.stderr.strip()
        assert "Traceback" not in ran.stderr
