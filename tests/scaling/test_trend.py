"""Is a change told from noise, and a trend from chance?"""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import lines, run_of

from gpuledger.scaling.trend import compare_runs, trend_of
from gpuledger.units import Unknown

RNG = np.random.default_rng(8)


def run(mean: float, n: int = 120, **header):
    return run_of(lines({"a": list(mean * (1 + 0.05 * RNG.standard_normal(n)))}, **header), f"{mean}.jsonl")


def change(found, name):
    return next(c for c in found.changes if c.figure == name)


def test_the_same_load_again_is_within_noise():
    found = compare_runs(run(0.1), run(0.1), 1)
    assert change(found, "throughput_per_s").beyond_noise is False
    assert change(found, "warm_latency_mean_s").beyond_noise is False
    assert change(found, "success_pct").beyond_noise is False
    assert found.settings == ()


def test_a_tenth_slower_is_beyond_it():
    found = compare_runs(run(0.1, model="a"), run(0.11, model="b"), 1)
    slower = change(found, "warm_latency_mean_s")
    assert slower.beyond_noise is True
    assert slower.change_pct.value == pytest.approx(10, abs=2)
    assert change(found, "throughput_per_s").change_pct.value < -7
    assert found.settings == ("model: a before, b after",)


def test_lost_requests_are_compared_as_counts():
    found = compare_runs(run(0.1), run(0.1, planned={"a": 150}), 1)
    assert change(found, "success_pct").beyond_noise is True


def test_a_tail_that_cannot_be_known_is_not_compared():
    assert isinstance(change(compare_runs(run(0.1, 30), run(0.1, 30), 1), "warm_latency_p99_s").change_pct, Unknown)


def test_the_setting_that_differs_is_named_however_deep_it_lies():
    load = {"kind": "closed", "requests": 100, "concurrency": 8, "input_tokens": 512, "output_tokens": 128}
    served = {"gpu": "NVIDIA A30", "gpus": 1}
    one = lines({"a": [0.1] * 5}, load=load, nodes={"a": {**served, "model": "m-1"}})
    two = lines({"a": [0.1] * 5}, load={**load, "output_tokens": 16}, nodes={"a": {**served, "model": "m-2"}})
    said = compare_runs(run_of(one), run_of(two), 1).settings
    assert said == ("model: m-1 before, m-2 after", "load.output_tokens: 128 before, 16 after")


def test_runs_are_put_in_order_of_their_start():
    runs = [run(0.1 * 1.05**i, started=f"2026-01-0{9 - i}") for i in range(5)]
    found = trend_of(runs, 1)
    assert [p.started for p in found.points] == sorted(p.started for p in found.points)
    slopes = {s.figure: s.direction for s in found.slopes}
    assert slopes["throughput_per_s"] == "rising"  # the newest is the fastest
    assert slopes["warm_latency_mean_s"] == "falling"
    assert found.points[0].changes == ()
    assert all(p.settings == () for p in found.points)


def test_a_run_set_otherwise_is_named_in_the_trend():
    found = trend_of([run(0.1), run(0.05, load={"kind": "closed", "concurrency": 16})], 1)
    assert found.points[1].settings == (
        "load.concurrency: not given before, 16 after",
        "load.kind: not given before, closed after",
    )


def test_three_runs_have_no_slope():
    found = trend_of([run(0.1), run(0.2), run(0.3)], 1)
    assert all(isinstance(s.per_run_pct, Unknown) for s in found.slopes)
    assert "as given" in found.order
