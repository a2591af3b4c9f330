"""Does the code of docs/training.md run, and are its figures those that were measured?"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "training.md"
KEPT = ROOT / "docs" / "results" / "training_h200.json"
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def figures_script():
    if str(ROOT / "benchmarks") not in sys.path:
        sys.path.append(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("training_figures", ROOT / "benchmarks" / "training_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_code_of_the_guide_runs():
    pytest.importorskip("torch").set_num_threads(1)
    blocks = CODE.findall(GUIDE.read_text(encoding="utf-8"))
    assert len(blocks) >= 8
    names: dict[str, object] = {"__name__": "guide"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"training.md block {number}", "exec"), names)


def test_all_eight_sections_are_there():
    heads = re.findall(r"^## (\d)\. ", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert heads == [str(n) for n in range(1, 9)]
    text = GUIDE.read_text(encoding="utf-8")
    for word in ("torch.jit", "deprecated", "max-autotune", "CUDA graphs", "cuDNN", "TF32", "non_blocking", "MFU"):
        assert word in text


def test_the_figures_of_the_guide_are_those_measured():
    script = figures_script()
    results = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for page in script.PAGES:
        if page.exists():
            text = page.read_text(encoding="utf-8")
            assert script.filled(text, results) == text, "run: python benchmarks/training_figures.py"


def test_a_changed_figure_is_noticed():
    script = figures_script()
    page = "<!-- figures: idle -->\nold\n<!-- end -->\n"
    row = {"idle_pct": 41.2, "idle_low_pct": 40, "idle_high_pct": 43.4, "samples_per_s": 1234.5}
    made = script.filled(page, {"idle": {"0 workers": row}})
    assert "| 0 workers | 1,234 | 41 % (40 to 43) |" in made
    assert script.filled(made, {"idle": {"0 workers": row}}) == made
    assert script.filled(made, {"idle": {"0 workers": {**row, "idle_pct": 12}}}) != made
    assert script.NOT_YET in script.filled(page, {})


def test_a_part_that_was_run_again_counts_as_in_the_last_run():
    script = figures_script()
    made = {"date": "2026-11-15", "gpu": "G", "torch": "2", "python": "3", "command": "c"}
    first = {"made_with": made, "spent_s": {}, "idle": 1, "worked": {"total": 1}}
    second = {"made_with": {**made, "command": "d"}, "idle": 2}
    found = script.joined([first, second])
    assert (found["idle"], found["worked"]) == (2, {"total": 1})
    assert [run["parts"] for run in found["runs"]] == [["worked"], ["idle"]]
    assert script.made_with(found).count("one G") == 2


def test_what_is_there_of_a_cut_run_is_shown_and_the_rest_named():
    script = figures_script()
    results = json.loads(KEPT.read_text(encoding="utf-8"))
    worked = {**results["worked"], "total": None, "side_by_side": None, "payback": None}
    shown = script.ladder({"worked": worked, "unfinished": {"worked": "the run ended in the middle of it"}})
    assert "alternating: not measured; the run ended in the middle of it." in shown
    job = results["language_model"]
    half = {**job["grid"], "points": job["grid"]["points"][:5], "whole": False, "winner_over_best": None}
    shown = script.grids({"language_model": {**job, "grid": half}, "tuned": {"tuning": results["tuned"]["tuning"]}})
    assert "| 5 of 24 |  | not shown: the grid was cut short |" in shown
    assert "not shown: no grid was measured" in shown


def test_a_claim_is_judged_by_its_interval():
    script = figures_script()
    worked = json.loads(KEPT.read_text(encoding="utf-8"))["worked"]
    for low, verdict in ((3.8, "| holds |"), (3.7, "| holds; the interval reaches below |")):
        total = {"ratio": 4.0, "low": low, "high": 4.2, "pairs": 5}
        assert verdict in script.claims({"worked": {**worked, "total": total}})
    total = {"ratio": 3.0, "low": 2.9, "high": 3.2, "pairs": 5}
    assert "| does not hold |" in script.claims({"worked": {**worked, "total": total}})
