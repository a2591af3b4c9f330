"""Is the shipped list of measured types what the data says, and does the range of first plans follow its rule?"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.plan.measured_types import measured_types
from gpuledger.plan.speed.facts import spread

ROOT = Path(__file__).parents[2]
SCRIPT, DATA = ROOT / "benchmarks" / "measured_types.py", ROOT / "benchmarks" / "data"


def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measured_types_script", SCRIPT)
    assert spec
    assert spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


script = module()
ROWS = script.first_plans(DATA, script.measured_runs(DATA))


def check(data: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--check", "--data", str(data)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_shipped_file_is_what_the_data_says():
    done = check(DATA)
    assert done.returncode == 0, done.stderr


def test_a_run_of_another_type_asks_for_the_file_to_be_made_again(tmp_path):
    for file in (*DATA.glob("models_*h200.json"), *DATA.glob("models_*_planned.json")):
        shutil.copy(file, tmp_path)
    runs = json.loads((tmp_path / "models_third_h200.json").read_text(encoding="utf-8"))
    runs["runs"].append({**runs["runs"][0], "config": {"model_type": "never_measured"}})
    (tmp_path / "models_third_h200.json").write_text(json.dumps(runs), encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 1
    assert "run python benchmarks/measured_types.py" in done.stderr


def test_every_first_plan_lies_in_the_range_of_memory_and_of_speed():
    memory, speeds = measured_types().first.memory, measured_types().first.speed
    for row in ROWS:
        low, high = memory.span(row["planned"])
        assert low <= row["taken"] <= high, row["type"]
        errors = spread(speeds, "all" if row["unit"] == "token" else "images_or_sound")
        assert errors.p10 <= row["speed_ratio"] <= errors.p90, row["type"]


def test_no_type_was_planned_first_twice():
    types = [row["type"] for row in ROWS]
    assert len(types) == len(set(types))


ERRORS = st.lists(st.floats(min_value=1e-3, max_value=2.0), min_size=20, max_size=200)


@given(errors=ERRORS, times=st.floats(min_value=0.1, max_value=10))
def test_the_tail_grows_with_the_errors_and_begins_at_the_outer_tenth(errors, times):
    found = script.tail(errors)
    assert found >= sorted(errors, reverse=True)[round(0.1 * len(errors))]
    assert script.tail([times * error for error in errors]) == pytest.approx(times * found)


def test_the_tail_of_a_law_is_a_little_beyond_where_the_law_has_it():
    """Quantiles of an exponential law: one in 500 lies beyond ln 500. The more of them, the nearer."""

    def beyond(rows: int) -> float:
        return script.tail([-math.log((at + 0.5) / rows) for at in range(rows)]) / math.log(500)

    assert 1 < beyond(50_000) < 1.02 < beyond(5_000) < 1.06 < beyond(500) < 1.25


def test_the_tail_holds_one_in_500_with_the_confidence_it_states():
    """89 errors drawn from the law 2,000 times: the end lies beyond the true one in nearly all."""
    draw = random.Random(14)
    ends = [script.tail([draw.expovariate(1.0) for _ in range(89)]) for _ in range(2_000)]
    assert sum(end >= math.log(500) for end in ends) >= (script.SURE - 0.02) * len(ends)


def test_nearer_plans_do_not_widen_the_range():
    """Doubling the number of plans with errors no larger than those there are."""
    errors = [0.158, 0.066, 0.06, 0.05, 0.043, 0.04, 0.038, 0.034, 0.023, 0.02, *[0.001 * at for at in range(20)]]
    assert script.tail([*errors, *([0.0] * 30)]) <= script.tail(errors)


def test_too_few_first_plans_have_no_range():
    with pytest.raises(SystemExit, match="3 first plans are too few"):
        script.tail([0.1, 0.2, math.e])
