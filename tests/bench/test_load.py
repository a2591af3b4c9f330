"""Are requests sent when they should be, the same for the same seed?"""

from __future__ import annotations

from statistics import mean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.bench.load import Load, plan
from gpuledger.errors import FileFault, InputError


@given(
    st.integers(1, 30), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3),
    st.none() | st.floats(0.1, 1e4), st.lists(st.integers(1, 9), max_size=3, unique=True), st.integers(0, 9),
)  # fmt: skip
def test_every_request_is_planned_once(requests, rounds, nodes, warmup, rate, batches, seed):
    load = Load(requests=requests, rounds=rounds, rate_per_s=None if batches else rate, batches=tuple(batches),
                warmup=warmup, seed=seed)  # fmt: skip
    plans = plan(load, nodes)
    assert plans == plan(load, nodes)
    assert len(plans) == nodes
    for phases in plans:
        names = [o.request for p in phases for o in (*p.orders, *p.warmup)]
        assert len(set(names)) == len(names)
        wanted = rounds * sum(batches) if batches else requests
        assert [o.request for p in phases for o in p.orders] == list(range(wanted))
        assert sum(len(p.warmup) for p in phases) == warmup * (sum(batches) if batches else 1)
        assert all(o.warmup for p in phases for o in p.warmup)


def test_random_arrivals_have_the_rate_and_no_memory():
    """Times between arrivals of a Poisson process: mean 1 / rate, and as much spread as mean."""
    (first,), (second,) = plan(Load(requests=20_000, rate_per_s=50.0, seed=3), 2)
    due = [o.due_s for o in first.orders]
    gaps = [b - a for a, b in zip([0.0, *due], due, strict=False)]
    assert first.concurrency is None
    assert mean(gaps) == pytest.approx(1 / 50, rel=0.03)
    assert pstdev(gaps) == pytest.approx(1 / 50, rel=0.05)
    assert due != [o.due_s for o in second.orders]


def test_a_trace_is_dealt_out_in_turn(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
                    "2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51,10,0\n")  # fmt: skip
    (a,), (b,) = plan(Load(requests=5, trace=str(file), speed=2.0), 2)
    assert [(o.input_tokens, o.output_tokens) for o in a.orders] == [(374, 44), (10, 1)]
    assert [o.due_s for o in a.orders] == pytest.approx([0.0, (51 - 46.68059) / 2], abs=1e-5)
    assert b.orders[0].due_s == pytest.approx(4.314579 / 2, abs=1e-5)
    file.write_text("start_s,input_tokens,output_tokens\n5,1,2\n6.5,3,four\n")
    with pytest.raises(FileFault, match="line 3 is not a request"):
        plan(Load(trace=str(file)), 1)
    file.write_text("a,b\n1,2\n")
    with pytest.raises(FileFault, match="it has the columns a, b"):
        plan(Load(trace=str(file)), 1)
    with pytest.raises(FileFault, match="no such file"):
        plan(Load(trace=str(tmp_path / "none.csv")), 1)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (Load(requests=0), "requests is 0"), (Load(concurrency=0), "concurrency is 0"), (Load(warmup=-1), "warmup"),
        (Load(rate_per_s=0.0), "rate is 0"), (Load(trace="t.csv", rate_per_s=1.0), "three kinds of load"),
        (Load(batches=(2, 0)), "a batch of 0"), (Load(speed=0.0), "speed"),
        (Load(rate_per_s=float("nan")), "rate is nan"), (Load(rate_per_s=float("inf")), "rate is inf"),
        (Load(speed=float("nan")), "speed is nan"), (Load(output_tokens=0), "output"),
    ],
)  # fmt: skip
def test_a_load_that_cannot_be(load, words):
    with pytest.raises(InputError, match=words):
        plan(load, 1)
