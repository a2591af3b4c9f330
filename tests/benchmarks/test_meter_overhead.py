"""Can half a percent be told with the blocks there is time for, and does the interval hold?"""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "meter_overhead.py"
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("meter_overhead", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fours(seed, count, true_pct, spread_pct, hiccup_ratio=0.0):
    """Seconds without and with the meter; blocks of four steps spread as on the H200: 0.7 % a four."""
    dice = random.Random(seed)
    plain = [0.44 * math.exp(dice.gauss(0, 0.01)) for _ in range(count)]
    ratio = [
        (1 + true_pct / 100) * math.exp(dice.gauss(0, spread_pct / 100)) * (1.2 if dice.random() < hiccup_ratio else 1)
        for _ in range(count)
    ]
    return plain, [p * r for p, r in zip(plain, ratio, strict=True)]


def test_by_hand(script):
    assert script.middle([1.0, 3.0, 8.0]) == (3.75, 1.0, 8.0)  # 1, 2, 3, 4.5, 5.5, 8
    found = script.judged([1.0] * 6, [1.01] * 6, 4)
    assert found["overhead_pct"] == pytest.approx(1.0)
    assert not found["within_bar"]
    assert found["step_ms"] == 250.0


@pytest.mark.parametrize("count", [12, 60])
def test_the_interval_holds_what_is_true(script, count):
    inside = 0
    for seed in range(100):
        found = script.judged(*fours(seed, count, 0.1, 0.7), 4)
        inside += found["low_pct"] <= 0.1 <= found["high_pct"]
    assert inside >= 90


def test_two_minutes_of_a_long_step_show_a_tenth_of_a_percent_below_the_bar(script):
    """68 fours of four blocks of four steps of 110 ms; one four in fifty is disturbed."""
    shown = [script.judged(*fours(seed, 68, 0.1, 0.7, 0.02), 4)["interval_within_bar"] for seed in range(40)]
    assert sum(shown) >= 38
    hidden = [script.judged(*fours(seed, 68, 0.7, 0.7), 4)["interval_within_bar"] for seed in range(20)]
    assert sum(hidden) == 0


def test_it_runs_on_a_processor_in_the_time_given(script):
    script.torch.set_num_threads(1)
    loop = script.Loop("tiny", "cpu")
    meter = script.Meter(loop.model)
    found = script.overhead(loop, meter, 1.0, 2)
    meter.finish()
    assert found["fours"] >= script.LEAST_FOURS
    assert found["low_pct"] <= found["overhead_pct"] <= found["high_pct"]
