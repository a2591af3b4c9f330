"""What does a report say of runs that go well, badly, or not at all?"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import lines, run_of, write

from gpuledger.encode import encode
from gpuledger.errors import FactError, FileFault
from gpuledger.scaling.analysis.counting import counts_of, throughput_of, wall_of
from gpuledger.scaling.build import Given, gather, scaling_statement
from gpuledger.units import Unknown

RNG = np.random.default_rng(4)


def steady(mean: float, n: int) -> list[float]:
    return list(mean * (1 + 0.05 * RNG.standard_normal(n)))


def sizes(n: int, each: float = 0.1, count: int = 150):
    return lines({f"n{i}": steady(each, count) for i in range(n)})


def figures(made):
    return json.loads(json.dumps(encode("scaling", made), allow_nan=False))


def test_efficiency_against_a_measured_baseline(tmp_path):
    two, one = write(tmp_path / "two.jsonl", sizes(2, 0.11)), write(tmp_path / "one.jsonl", sizes(1))
    found = figures(scaling_statement(gather([two], baseline=one)))["scaling"]
    assert found["refused"] is None
    assert found["efficiency_pct"] == pytest.approx(100 / 1.1, rel=0.03)
    assert found["low_pct"] <= found["efficiency_pct"] <= found["high_pct"]
    assert found["superlinear"] is False
    assert found["factor_x"]["value"] == pytest.approx(2 / 1.1, rel=0.03)


def test_the_header_may_name_the_baseline(tmp_path):
    write(tmp_path / "one.jsonl", sizes(1))
    two = write(tmp_path / "two.jsonl", [{**sizes(2)[0], "baseline": "one.jsonl"}, *sizes(2)[1:]])
    assert scaling_statement(gather([two])).facts.scaling.refused is None
    (tmp_path / "one.jsonl").unlink()
    assert "no such file" in scaling_statement(gather([two])).facts.scaling.refused


def test_a_number_in_the_header_is_typed_in_and_no_baseline(tmp_path):
    two = write(tmp_path / "two.jsonl", [{**sizes(2)[0], "baseline": 1.0}, *sizes(2)[1:]])
    made = scaling_statement(gather([two]))
    assert made.facts.scaling.refused
    assert "1.0 is typed in" in next(c.why for c in made.checks if c.check == "baseline_not_measured")


def test_super_linear_only_if_the_interval_leaves_out_one(tmp_path):
    one = write(tmp_path / "one.jsonl", sizes(1))
    close = write(tmp_path / "close.jsonl", sizes(2, 0.0995))
    fast = write(tmp_path / "fast.jsonl", sizes(2, 0.05))
    assert scaling_statement(gather([close], baseline=one)).facts.scaling.superlinear is False
    assert scaling_statement(gather([fast], baseline=one)).facts.scaling.superlinear is True
    claims = tmp_path / "c.json"
    claims.write_text('[{"claim": "super_linear", "value": true}, {"claim": "scaling_efficiency_pct", "value": 100.4}]')
    claimed = scaling_statement(gather([close], baseline=one, claims=claims))
    assert [c.verdict for c in claimed.claims] == ["cannot tell", "cannot tell"]

    def caught(run, **said):
        made = scaling_statement(gather([run], baseline=one, **said))
        return next(c for c in made.checks if c.check == "super_linear_without_interval").caught

    assert caught(close, claims=claims)
    assert not caught(close)  # nobody claims it: half of all linear runs come out a little above 100 %
    assert not caught(fast, claims=claims)


def test_a_run_is_no_baseline_for_itself(tmp_path):
    two = write(tmp_path / "two.jsonl", sizes(2))
    made = scaling_statement(gather([two], baseline=two))
    assert "itself" in made.facts.scaling.refused
    assert next(c for c in made.checks if c.check == "comparison_with_itself").caught


def test_an_open_loop_has_no_efficiency(tmp_path):
    rows = sizes(2)
    rows[0]["load"] = {"kind": "poisson"}
    two, one = write(tmp_path / "two.jsonl", rows), write(tmp_path / "one.jsonl", sizes(1))
    assert "set rate" in scaling_statement(gather([two], baseline=one)).facts.scaling.refused


H100, A30 = {"gpu": "NVIDIA H100 80GB HBM3", "gpus": 1}, {"gpu": "NVIDIA A30", "gpus": 1}
EIGHT = {"kind": "closed", "concurrency": 8}


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ({"load": EIGHT}, {"load": {"kind": "closed", "concurrency": 1}}, "had 1 requests in flight at each node"),
        ({"load": EIGHT}, {"load": {"kind": "sweep", "batches": [1]}}, "another kind of load: sweep there"),
        ({"load": {"kind": "sweep", "batches": [1, 8]}}, {"load": {"kind": "sweep", "batches": [1]}}, "other batches"),
        ({"nodes": {"n0": H100, "n1": H100}}, {"nodes": {"n0": A30}}, "other GPUs: A30 there"),
        ({"model": "llama-3.1-8b"}, {"model": "llama-3.1-70b"}, "another model"),
    ],
)
def test_a_baseline_of_another_kind_makes_no_efficiency(tmp_path, ours, theirs, words):
    """Twice as fast a run would be called super-linear, whatever was measured."""
    two, one, claims = sizes(2, 0.02), sizes(1), tmp_path / "c.json"
    two[0], one[0] = {**two[0], **ours}, {**one[0], **theirs}
    claims.write_text('[{"claim": "super_linear", "value": true}, {"claim": "scaling_efficiency_pct", "value": 500}]')
    files = [write(tmp_path / "two.jsonl", two), write(tmp_path / "one.jsonl", one)]
    made = scaling_statement(gather(files[:1], baseline=files[1], claims=claims))
    assert words in made.facts.scaling.refused
    assert [c.verdict for c in made.claims] == ["cannot tell", "cannot tell"]
    assert made.readiness.verdict != "ready as far as measured"
    assert [p.size for p in made.facts.scaling.curve.points] == [2]
    assert words in made.facts.scaling.curve.refused


def test_the_same_requests_in_all_or_at_each_node_are_both_scaling(tmp_path):
    two, one = sizes(2, 0.11), sizes(1)
    for each, alone in ((8, 8), (8, 16)):
        two[0]["load"], one[0]["load"] = {**EIGHT, "concurrency": each}, {**EIGHT, "concurrency": alone}
        files = [write(tmp_path / "two.jsonl", two), write(tmp_path / "one.jsonl", one)]
        assert scaling_statement(gather(files[:1], baseline=files[1])).facts.scaling.refused is None


def test_nodes_with_more_gpus_than_the_baseline_are_counted_in_gpus(tmp_path):
    """2 nodes of 8 GPUs against 1 node of 1 GPU is 16 times the size, not twice."""
    two, one = sizes(2, 0.02), sizes(1)
    two[0]["nodes"] = {"n0": {**H100, "gpus": 8}, "n1": {**H100, "gpus": 8}}
    files = [write(tmp_path / "two.jsonl", two), write(tmp_path / "one.jsonl", one)]
    found = scaling_statement(gather(files[:1], baseline=files[1])).facts.scaling
    assert (found.unit, found.size, found.baseline_size) == ("GPUs", 16, 1)
    assert found.efficiency_pct.value == pytest.approx(100 * 10 / 16, rel=0.03)
    assert found.superlinear is False


def test_rates_that_were_set_make_no_curve(tmp_path):
    files = []
    for n in (1, 2, 3):
        rows = sizes(n)
        rows[0]["load"] = {"kind": "poisson", "rate_per_s": 10}
        files.append(write(tmp_path / f"{n}.jsonl", rows))
    curve = scaling_statement(gather(files)).facts.scaling.curve
    assert not curve.predictions
    assert "set rate" in curve.refused


def test_shorter_answers_than_the_baselines_are_no_scaling(tmp_path):
    claims = tmp_path / "c.json"
    ids = {"super_linear": True, "scaling_efficiency_pct": 500, "scaling_factor_x": 10}
    claims.write_text(json.dumps([{"claim": k, "value": v} for k, v in ids.items()]))
    two = write(tmp_path / "two.jsonl", lines({f"n{i}": steady(0.02, 150) for i in range(2)}, tokens=2))
    made = scaling_statement(gather([two], baseline=write(tmp_path / "one.jsonl", sizes(1)), claims=claims))
    assert [c.verdict for c in made.claims] == ["cannot tell"] * 3
    assert all("other lengths" in c.why for c in made.claims)


def test_three_sizes_predict_four_and_eight_with_a_range(tmp_path):
    files = [write(tmp_path / f"{n}.jsonl", sizes(n, 0.1 * (1 + 0.05 * (n - 1)))) for n in (1, 2, 3)]
    curve = scaling_statement(gather(files)).facts.scaling.curve
    assert [p.size for p in curve.predictions] == [4, 8]
    four = curve.predictions[0]
    assert four.throughput_per_s.value == pytest.approx(40 / 1.15, rel=0.1)
    assert four.throughput_per_s.low < four.throughput_per_s.value < four.throughput_per_s.high
    assert four.extrapolated
    assert scaling_statement(gather(files[1:])).facts.scaling.curve.refused


def test_zero_successes_still_make_a_report():
    rows = lines({"a": [0.1, 0.1], "b": [0.1]})
    dead = [rows[0], *({**r, "ok": False, "error": "connection refused"} for r in rows[1:])]
    made = scaling_statement(Given(run_of(dead)))
    found = figures(made)
    assert found["success_pct"] == 0
    assert found["throughput_per_s"] == 0
    assert found["latency_s"]["p50"] is None
    assert made.readiness.verdict == "not ready"
    assert "connection refused" in made.facts.nodes[0].problems[0]


def test_a_cold_start_that_cannot_be_told_has_no_grade():
    """Three answers are too few to look for one: that is no clean bill."""
    found = figures(scaling_statement(Given(run=run_of(lines({"a": [0.1, 0.1, 0.1]})))))
    assert found["grades"]["cold_start"]["grade"] is None
    assert found["grades"]["cold_start"]["value"] is None
    assert any(n["figure"] == "grades.cold_start.grade" and "too few" in n["why"] for n in found["not_known"])


def test_a_header_alone_says_what_is_missing():
    made = scaling_statement(Given(run_of([{"v": 1, "kind": "run", "planned": {"a": 3}, "nodes": {}, "wall_s": None}])))
    found = figures(made)
    assert found["success_pct"] == 0
    assert found["counts"]["lost"] == 3
    assert isinstance(made.facts.throughput_per_s, Unknown)


def test_one_node_only():
    made = scaling_statement(Given(run_of(sizes(1)), baseline=Unknown("one node only")))
    assert isinstance(made.facts.nodes[0].slower_pct, Unknown)
    assert not next(c for c in made.checks if c.check == "baseline_not_measured").caught


def test_mixed_versions_and_malformed_lines_are_named(tmp_path):
    rows = sizes(1, count=5)
    file = tmp_path / "mixed.jsonl"
    bad = (
        '{"v": 2, "kind": "request", "node": "n0", "request": 9}\nnot json\n{"v": 1, "kind": "request", "node": "n0"\n'
    )
    file.write_text("".join(json.dumps(r) + "\n" for r in rows) + bad)
    made = scaling_statement(gather([file]))
    assert made.facts.counts.ok == 5
    assert sum("version 2" in f for f in made.facts.faults) == 1
    assert sum("not JSON" in f for f in made.facts.faults) == 2


def test_a_file_without_one_usable_line_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"v": 9}\n')
    with pytest.raises(FileFault):
        gather([tmp_path / "x.jsonl"])


def test_a_good_run_is_ready_as_far_as_measured(tmp_path):
    two, one = write(tmp_path / "two.jsonl", sizes(2, 0.104)), write(tmp_path / "one.jsonl", sizes(1))
    made = scaling_statement(gather([two], baseline=one))
    assert made.readiness.verdict == "ready as far as measured"
    assert not [c.check for c in made.checks if c.caught]


def test_a_sweep_has_a_knee():
    rows = [{"v": 1, "kind": "run", "planned": {"a": 60}, "nodes": {}, "wall_s": 30.0}]
    at, number = 0.0, 0
    for batch, latency in ((1, 1.0), (2, 1.05), (4, 1.1), (8, 1.9)):
        for _round in range(3):
            for _ in range(batch):
                rows.append({"v": 1, "kind": "request", "node": "a", "request": number, "start_s": at, "batch": batch,
                             "latency_s": latency, "output_tokens": 8, "ok": True})  # fmt: skip
                number += 1
            at += latency
    batches = scaling_statement(Given(run_of(rows))).facts.batches
    assert [p.batch for p in batches.points] == [1, 2, 4, 8]
    assert batches.points[1].throughput_per_s == pytest.approx(2 / 1.05)
    assert batches.knee == 4


def test_batching_is_proposed_only_where_requests_go_one_by_one():
    alone = scaling_statement(Given(run_of(sizes(2))))
    rows = lines({"a": [0.5] * 40}, wall_s=2.0)
    for i, row in enumerate(rows[1:]):
        row["start_s"] = 0.05 * (i // 8)  # eight under way
    many = scaling_statement(Given(run_of(rows)))
    assert alone.facts.in_flight == pytest.approx(2, rel=0.05)
    assert many.facts.in_flight > 8
    assert [any("one batch" in o.name for o in s.optimizations) for s in (alone, many)] == [True, False]


def test_dollars_for_a_million_tokens_by_hand(tmp_path):
    file = write(tmp_path / "r.jsonl", lines({"a": [1.0] * 36}, wall_s=36.0, tokens=1000))
    from decimal import Decimal

    from gpuledger.cost.pricing import PriceChoice

    cost = scaling_statement(gather([file], price=PriceChoice(Decimal("2.00")))).facts.cost
    # 36 s at $2 an hour are 2 cents for 36,000 tokens.
    assert float(cost.usd_per_million_tokens) == pytest.approx(0.02 / 36_000 * 1e6)
    assert isinstance(cost.joules_per_million_tokens, Unknown)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.booleans()), min_size=0, max_size=30),
    st.integers(0, 40),
    st.floats(0.1, 50),
)
def test_success_and_throughput_stay_within_what_is_possible(requests, planned, wall):
    rows = lines({"a": [latency for latency, _ in requests]}, planned={"a": planned}, wall_s=wall)
    rows = [rows[0], *({**r, "ok": ok} for r, (_, ok) in zip(rows[1:], requests, strict=True))]
    run = run_of(rows)
    counts, (clock, _) = counts_of(run), wall_of(run)
    if not isinstance(counts.success_pct, Unknown):
        assert 0 <= counts.success_pct.low <= counts.success_pct.value <= counts.success_pct.high <= 100
    assert counts.ok + counts.failed + counts.lost == counts.planned
    rate = throughput_of(run, 1)
    if not isinstance(rate, Unknown):
        assert rate.low <= rate.value <= rate.high
        assert rate.value <= len(run.requests) / clock + 1e-9


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{}", "list"),
        ('[{"claim": "success_pct"}]', "value"),
        ('[{"claim": "success_pct", "value": "all"}]', "success_pct expects a number"),
        ('[{"claim": "ready_for_production", "value": 1}]', "true or false"),
        ('[{"value": 1}]', "claim"),
        ("[1]", "object"),
    ],
)
def test_bad_claims_are_refused_with_the_field(tmp_path, text, where):
    run, claims = write(tmp_path / "r.jsonl", sizes(1, count=4)), tmp_path / "c.json"
    claims.write_text(text)
    with pytest.raises(FactError, match=where):
        gather([run], claims=claims)


def test_a_claim_nobody_judges_is_not_told(tmp_path):
    run, claims = write(tmp_path / "r.jsonl", sizes(1, count=4)), tmp_path / "c.json"
    claims.write_text('[{"claim": "sucess_pct", "value": 1}, {"claim": "success_pct", "value": 100, "node": "zz"}]')
    first, second = scaling_statement(gather([run], claims=claims)).claims
    assert first.verdict == "cannot tell"
    assert "success_pct" in first.why
    assert "no node 'zz'" in second.why
