"""Does the report catch by itself what the published two-node report got wrong?"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from gpuledger.encode import encode
from gpuledger.scaling.build import gather, scaling_statement

S2 = Path(__file__).parents[1] / "data" / "s2"


@pytest.fixture(scope="module")
def made():
    return scaling_statement(gather([S2 / "results.jsonl"], claims=S2 / "claims.json"))


@pytest.fixture(scope="module")
def figures(made):
    return json.loads(json.dumps(encode("scaling", made), allow_nan=False))


def verdict(figures, claim, node=None):
    (found,) = [c for c in figures["claims"] if c["claim"] == claim and c["node"] == node]
    return found["verdict"], found["why"]


def check(figures, name):
    (found,) = [c for c in figures["checks"] if c["check"] == name]
    return found["caught"] and found["why"]


def test_the_fixture_is_what_its_script_makes():
    script = runpy.run_path(str(S2 / "make.py"))
    script["check"]()
    lines = [json.loads(line) for line in (S2 / "results.jsonl").read_text().splitlines()]
    assert lines == script["lines"]()
    assert json.loads((S2 / "claims.json").read_text()) == script["CLAIMS"]


def test_success_is_75_percent_and_not_100(figures):
    assert figures["success_pct"] == 75
    assert verdict(figures, "success_pct")[0] == "contradicted"
    assert "100.0 %" in check(figures, "survivors_only")


def test_throughput_is_by_wall_clock(figures):
    assert figures["throughput_per_s"] == pytest.approx(15 / 22.16)
    assert figures["tokens"]["per_s"]["value"] == pytest.approx(21.2, abs=0.05)
    word, why = verdict(figures, "throughput_per_s")
    assert word == "contradicted"
    assert "1 / mean latency" in why
    assert "2.04/s" in check(figures, "throughput_from_latency")
    assert verdict(figures, "tokens_per_s")[0] == "contradicted"


def test_memory_is_of_the_real_card(figures):
    assert figures["memory_pct"] == pytest.approx(66, abs=0.05)
    assert verdict(figures, "memory_pct")[0] == "contradicted"
    assert "32 GB" in check(figures, "memory_of_assumed_card")


def test_a_typed_in_baseline_gives_no_efficiency(figures):
    assert figures["scaling"]["efficiency_pct"] is None
    assert "no measured baseline" in figures["scaling"]["refused"]
    assert "typed in" in check(figures, "baseline_not_measured")
    word, why = verdict(figures, "scaling_efficiency_pct")
    assert word == "cannot tell"
    assert "33.8 %" in why
    assert "without an interval" in check(figures, "super_linear_without_interval")


def test_intervals_are_shown(figures):
    spread = figures["throughput_interval"]
    assert spread["low"] < figures["throughput_per_s"] < spread["high"]
    low, high = figures["latency_s"]["interval"]["mean"]
    assert low < figures["latency_s"]["mean"] < high
    assert figures["latency_s"]["p99"] is None
    assert any(n["figure"] == "latency_s.p99" and "too few" in n["why"] for n in figures["not_known"])


def test_the_cold_start_is_apart(figures):
    jw2, jw3 = figures["nodes"]
    assert (round(jw2["cold_start"]["over_mean_pct"]), round(jw2["cold_start"]["over_min_pct"])) == (57, 87)
    assert round(1000 * jw2["warm_latency_s"]["mean"]) == 878
    assert round(1000 * jw3["warm_latency_s"]["mean"]) == 890
    assert jw2["outlier"] is False
    assert verdict(figures, "slower_node")[0] == "contradicted"
    assert verdict(figures, "cold_start_pct", "jw2")[0] == "contradicted"
    assert check(figures, "cold_start_in_the_means")


def test_token_scaling_is_circular(figures):
    word, why = verdict(figures, "token_scaling_x")
    assert word == "cannot tell"
    assert "comparison with itself" in why
    assert check(figures, "comparison_with_itself")


def test_rankings_and_causes_need_something_behind_them(figures):
    assert verdict(figures, "ranking") == ("cannot tell", verdict(figures, "ranking")[1])
    assert "TOP 5%" in check(figures, "ranking_without_source")
    words = {c["value"]: c["verdict"] for c in figures["claims"] if c["claim"] == "cause"}
    assert words == {
        "Network latency: inter-node communication overhead": "contradicted",
        "Cold start effect": "supported",
    }
    assert "do not talk" in check(figures, "cause_without_evidence")
    assert "No public figure is known" in figures["public_words"]


def test_it_is_not_ready_and_mending_gains_a_third(figures):
    assert figures["readiness"]["verdict"] == "not ready"
    assert verdict(figures, "ready_for_production")[0] == "contradicted"
    assert check(figures, "ready_despite_failures")
    gains = {b["name"]: b["gain_pct"] for b in figures["bottlenecks"]}
    assert gains["Lost and failed requests"] == pytest.approx(100 / 3)
    assert verdict(figures, "mending_gain_pct")[0] == "contradicted"


def test_too_few_samples_an_uneven_mix_and_an_impossible_deviation(figures):
    assert check(figures, "too_few_samples")
    assert check(figures, "uneven_mix")
    assert "impossible" in verdict(figures, "latency_sd_s", "jw2")[1]
    assert verdict(figures, "latency_sd_s", "jw3")[0] == "supported"


def test_four_and_eight_nodes_are_not_predicted(figures):
    assert figures["scaling"]["curve"]["predictions"] == []
    assert "3 sizes are needed" in figures["scaling"]["curve"]["refused"]


def test_the_grade_is_not_an_a(figures):
    assert figures["overall_grade"] == "F"
    assert figures["grades"]["success"]["grade"] == "F"
    assert figures["grades"]["scaling"]["grade"] is None


def test_without_claims_the_mistakes_in_the_run_are_still_caught():
    alone = scaling_statement(gather([S2 / "results.jsonl"]))
    caught = {c.check for c in alone.checks if c.caught}
    assert caught >= {
        "too_few_samples", "baseline_not_measured", "survivors_only", "throughput_from_latency", "uneven_mix",
        "cold_start_in_the_means", "ready_despite_failures",
    }  # fmt: skip
    assert alone.claims == ()
