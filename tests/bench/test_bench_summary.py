"""Are the few figures of a run what a pencil says?"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger.bench.records import Node, Request, Run
from gpuledger.bench.summary import summary_of
from gpuledger.cost.pricing import PriceChoice
from gpuledger.units import Unknown

CHOICE = PriceChoice(price=Decimal("3.60"))  # a tenth of a cent a second


def run_of(requests, planned, nodes, wall_s=10.0):
    return Run("r.jsonl", planned, nodes, None, wall_s, tuple(requests), True)


def batch(number, size, start, latency):
    spent = {"energy_j": 30.0 / size}
    return [
        Request("gpu-0", f"{number}-{i}", True, start, 0.5, latency, 8, 11, batch=size, more=spent) for i in range(size)
    ]


def test_levels_by_the_wall_clock_of_their_own_requests():
    """Two rounds of batch 2: 44 tokens in 4 s for 60 J and 0.4 cents."""
    asked = [*batch(0, 2, 0.0, 1.5), *batch(1, 2, 2.5, 1.5)]
    warm = [Request("gpu-0", "w", True, -5.0, 1.0, 2.0, 8, 11, warmup=True, batch=2)]
    nodes = {"gpu-0": Node("NVIDIA H200", 1, {"weights_bytes_read_per_step": 10**9})}
    short = summary_of(run_of([*warm, *asked], {"gpu-0": 4}, nodes), CHOICE)
    (level,) = short.levels
    assert (level.batch, level.requests, level.ok, level.output_tokens) == (2, 4, 4, 44)
    assert level.wall_s == 4.0
    assert level.tokens_per_s == 11.0
    assert level.per_token_median_s == pytest.approx(0.1)
    assert level.weights_read_bytes_per_s == pytest.approx(1e10)
    assert level.energy_j == pytest.approx(60.0)
    assert level.joules_per_million_tokens == pytest.approx(60 / 44 * 1e6)
    assert level.usd_per_million_tokens == pytest.approx(Decimal("0.004") / 44 * 1_000_000)
    assert short.price_words == "as given: $3.60 per GPU-hour"
    assert short.ok_per_s == 0.4
    assert short.output_tokens_per_s == 4.4


def test_nodes_tell_failed_from_lost_and_unknown_from_nothing():
    asked = [
        Request("a", 0, True, 0.0, 0.1, 1.0, 1, 5),
        Request("a", 1, True, 0.0, 0.3, 3.0, 1, Unknown("not counted")),
        Request("a", 2, False, 0.0, latency_s=9.0, error="HTTP 500: no"),
        Request("b", 0, False, lost=True, error="lost: gone"),
    ]
    short = summary_of(run_of(asked, {"a": 3, "b": 1, "c": 2}, {}), CHOICE)
    a, b, c = short.nodes
    assert (a.planned, a.ok, a.failed, a.lost, a.first_error) == (3, 2, 1, 0, "HTTP 500: no")
    assert (a.ttft_median_s, a.latency_median_s) == (0.2, 2.0)
    assert (b.ok, b.failed, b.lost) == (0, 0, 1)
    assert isinstance(b.latency_median_s, Unknown)
    assert (c.planned, c.ok) == (2, 0)
    assert (short.planned, short.ok, short.failed, short.lost) == (6, 2, 1, 1)
    assert isinstance(short.output_tokens_per_s, Unknown)
    assert short.levels == ()


def test_without_price_energy_or_a_finished_level():
    asked = [Request("a", 0, False, error="no", batch=1), Request("a", 1, True, 0.0, 0.1, 1.0, 1, 5, batch=2)]
    nodes = {"a": Node()}
    short = summary_of(run_of(asked, {"a": 2}, nodes, Unknown("no end")), PriceChoice())
    none, some = short.levels
    assert isinstance(none.tokens_per_s, Unknown)
    assert isinstance(none.usd_per_million_tokens, Unknown)
    assert some.tokens_per_s == 5.0
    assert isinstance(some.energy_j, Unknown)
    assert isinstance(some.joules_per_million_tokens, Unknown)
    assert isinstance(some.usd_per_million_tokens, Unknown)
    assert isinstance(short.ok_per_s, Unknown)
