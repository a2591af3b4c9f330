"""Are the requests that stand out, the distances between nodes and the marks of grades what a pencil says?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import lines, run_of

from gpuledger.report.documents.scaling import scaling_document
from gpuledger.report.render.markdown import render_markdown
from gpuledger.scaling.analysis.standouts import latency_against, standouts_of
from gpuledger.scaling.build import Given, gather, scaling_statement
from gpuledger.scaling.grades import LETTERS, load_scaling_thresholds
from gpuledger.units import Unknown

LIMITS = load_scaling_thresholds()
S2 = Path(__file__).parents[1] / "data" / "s2" / "results.jsonl"
MARKS = [letter + sign for letter in LETTERS for sign in ("+", "", "-")]


@pytest.fixture(scope="module")
def published():
    return scaling_statement(gather([S2]))


def test_the_published_report_names_the_same_samples(published):
    """It gives sample 2 and sample 1 as the fastest, sample 0 as the slowest of both, 36.32 and 16.77 tokens/s."""
    found = {(s.node, s.what): (s.request, round(s.value, 2)) for s in published.detail.standouts}
    assert found["jw3", "fastest"] == ("2", 0.87)
    assert found["jw2", "fastest"] == ("1", 0.86)
    assert found["jw3", "slowest"] == ("0", 1.35)
    assert found["jw2", "slowest"] == ("0", 1.61)
    assert found["jw2", "best token rate"][0] == "4"
    assert found["jw2", "worst token rate"] == ("0", 16.77)


def test_nodes_apart_by_pencil(published):
    found = {m.metric: m for m in published.detail.metrics_apart}
    assert found["requests answered"].apart_pct == pytest.approx(50)
    assert found["memory in use"].status == "equal"
    rate = found["answers per second"]
    assert (rate.low_node, rate.high_node, rate.status) == ("jw2", "jw3", "critical")
    assert rate.apart_pct == pytest.approx(100)  # 5 and 10 answers over one wall clock
    latency = found["warm latency"]
    assert latency.apart_pct == pytest.approx(100 * (latency.high / latency.low - 1))
    assert latency.status == "good"


@pytest.mark.parametrize(("apart", "status"), [(0, "equal"), (6.8, "good"), (9.4, "moderate"), (50, "critical")])
def test_the_bands_are_those_of_the_published_table(apart, status):
    assert LIMITS.variance.status(apart) == status


def test_an_outlier_lies_beyond_the_fence():
    """Quartiles of 1 to 8 s are 2.75 and 6.25: beyond 6.25 + 1.5 x 3.5 = 11.5 s."""
    inside, beyond = (run_of(lines({"a": [1, 2, 3, 4, 5, 6, 7, last]})) for last in (8, 13))
    assert not [s for s in standouts_of(inside) if s.what == "outlier"]
    (found,) = [s for s in standouts_of(beyond) if s.what == "outlier"]
    assert (found.request, found.value) == ("7", 13)


def test_a_run_without_answers_has_none():
    run = run_of(lines({"a": []}, planned={"a": 3}, wall_s=1.0))
    assert standouts_of(run) == ()


def test_latency_against_the_baseline_by_pencil():
    one, two = run_of(lines({"a": [1.0] * 20})), run_of(lines({"a": [0.8] * 20, "b": [0.8] * 20}))
    assert latency_against(two, one, 1).value == pytest.approx(80)
    assert isinstance(latency_against(two, Unknown("none was given"), 1), Unknown)
    made = scaling_statement(Given(run=two, baseline=one))
    assert "Warm latency, of the baseline's" in render_markdown(scaling_document(made))
    assert made.detail.study == "scaling against a measured baseline, comparison of 2 nodes"


def test_the_report_says_what_it_is_and_when_to_look_again(published):
    assert published.detail.study == "comparison of 2 nodes"
    assert published.detail.next_review == "after fixing: time outside requests"
    text = render_markdown(scaling_document(published))
    for words in (
        "Kind of study",
        "Next review",
        "66.8 per request (59 to 71)",
        "31.3 per request (27 to 32)",
        "31.66 GB",
    ):
        assert words in text


@given(st.sampled_from(sorted(LIMITS.grades)), st.floats(0, 2000), st.floats(0, 2000))
def test_a_better_value_never_has_a_worse_mark(area, one, other):
    scale = LIMITS.grades[area]
    worse, better = sorted((one, other), reverse=scale.better == "lower")
    assert MARKS.index(scale.mark(better)) <= MARKS.index(scale.mark(worse))
    assert scale.mark(one)[0] == scale.grade(one)


@pytest.mark.parametrize(("value", "mark"), [(100, "A"), (96, "A-"), (94.9, "B+"), (92.5, "B"), (90, "B-"), (69, "F")])
def test_marks_by_pencil(value, mark):
    """Scaling: A from 95 %, B from 90 %, a third of the span is 1.67 points."""
    assert LIMITS.grades["scaling"].mark(value) == mark


def test_pooling_is_proposed_with_its_published_gain_and_source(published):
    (found,) = [o for o in published.optimizations if "Pool the memory" in o.name]
    assert "published" in found.gain
    assert "arXiv:2309.06180" in found.basis
