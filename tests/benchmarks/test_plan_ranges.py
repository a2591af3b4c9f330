"""Are the shipped ranges of plans, the page of results and the guide what the kept plans and measured runs say?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger import plan
from gpuledger.plan.memory.facts import overheads

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import plan_pages  # noqa: E402
import plan_ranges  # noqa: E402
import plan_runs  # noqa: E402


def test_the_shipped_figures_are_computed_and_ranges_hold_their_runs():
    assert plan_ranges.problems() == []


def test_page_and_guide_are_what_the_runs_say():
    assert plan_pages.problems() == []


def test_every_measured_run_has_a_plan_or_a_reason():
    plans = {plan_runs.key(one["measured_in"], one): one for one in plan_runs.kept_plans()["plans"]}
    for file, run in plan_runs.measured_runs():
        found = plans[plan_runs.key(file, run)]
        assert found.get("not_planned") or found["total_bytes"] > 0


@pytest.mark.parametrize("of", ["train", "train_autocast"])
def test_kept_plans_of_formulas_are_those_of_today(tmp_path, of):
    """Formulas need no torch, so what was kept of them is planned again."""
    plans = {plan_runs.key(one["measured_in"], one): one for one in plan_runs.kept_plans()["plans"]}
    pairs = [(run, plans[plan_runs.key(file, run)]) for file, run in plan_runs.measured_runs()]
    own = [(run, kept) for run, kept in pairs if kept.get("memory_of") == of]
    assert own
    file = tmp_path / "config.json"
    for run, kept in own:
        file.write_text(json.dumps(run["config"]), encoding="utf-8")
        again = plan.fit(file, plan_runs.GPU, **{**plan_runs.setup_of(run), "trace": "never"}).statement.total_bytes
        assert again == kept["total_bytes"], run["name"]


def changed(monkeypatch, of: str, **figures: float) -> list[str]:
    """What is found where one shipped range says something else."""
    facts = overheads()
    own = msgspec.structs.replace(getattr(facts.error, of), **figures)
    other = msgspec.structs.replace(facts, error=msgspec.structs.replace(facts.error, **{of: own}))
    monkeypatch.setattr(plan_ranges, "overheads", lambda: other)
    return list(plan_ranges._memory_problems())


def test_a_figure_that_was_typed_is_found(monkeypatch):
    (problem,) = changed(monkeypatch, "traced", rows=1)
    assert "[error.traced]: rows is 1, the runs say" in problem
    assert "plan_ranges.py --write" in problem


def test_a_range_that_does_not_hold_a_run_names_it(monkeypatch):
    problems = changed(monkeypatch, "unchecked", p90=1.2)
    assert any("does not hold vit-base" in problem for problem in problems)


@given(ratios=st.lists(st.floats(min_value=0.1, max_value=10), min_size=1, max_size=50))
def test_computed_figures_are_ordered_and_a_run_more_never_narrows_them(ratios):
    runs = [plan_ranges.Run(str(at), "", ratio) for at, ratio in enumerate(ratios)]
    found = plan_ranges.computed(runs, memory=True)
    assert found["least"] <= found["p50"] <= found["most"]
    assert found["rows"] == found["models"] == len(ratios)
    more = plan_ranges.computed([*runs, plan_ranges.Run("more", "", 1.0)], memory=True)
    assert more["least"] <= found["least"]
    assert more["most"] >= found["most"]


def test_the_words_of_a_range_have_its_figures():
    for of in overheads().error.__struct_fields__:
        errors = getattr(overheads().error, of)
        assert "{" not in errors.text
        assert f"{errors.least:.2f}" in errors.text
        assert f"{errors.most:.2f}" in errors.text
