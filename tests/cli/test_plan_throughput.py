"""Does `gpuledger plan throughput` answer with a range, and refuse with exit code 2?"""

from __future__ import annotations

import pytest

LLAMA = ("plan", "throughput", "--model", "llama-3.1-8b", "--gpu", "h100-sxm")


def test_serving(cli):
    ended = cli(*LLAMA, "--mode", "serve", "--batch", "16")
    assert ended.code == 0
    assert " to " in ended.out.splitlines()[0]
    words = " ".join(ended.out.split())
    assert "tokens/s written: llama-3.1-8b to serve on 1 x h100-sxm5-80gb, batch 16" in words
    assert max(map(len, ended.out.splitlines())) <= 100
    data = cli(*LLAMA, "--mode", "serve", "--batch", "16", "--json").json()
    last = data["decode"][-1]
    assert last["batch"] == 16
    assert last["rate"]["low_per_s"] < last["rate"]["high_per_s"]
    assert data["train"] is None


def test_training(cli):
    ended = cli(*LLAMA, "--count", "8", "--zero", "3", "--recompute")
    assert ended.code == 0
    assert "tokens/s: llama-3.1-8b to train on 8 x h100-sxm5-80gb" in ended.out.splitlines()[0]
    assert "does not fit" not in ended.out
    assert "It does not fit" in cli(*LLAMA).out
    assert "checked on:" in ended.out


def test_what_is_not_known(cli):
    ended = cli("plan", "throughput", "--model", "flux.1-dev", "--gpu", "h100-sxm")
    assert ended.code == 0
    assert ended.out.startswith("Unknown: ")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--micro-batches", "0"), "--micro-batches 0"),
        (("--node-gbps", "0"), "--node-gbps 0"),
        (("--count", "0"), "--count 0"),
    ],
)
def test_bad_input(cli, args, says):
    ended = cli(*LLAMA, *args)
    assert ended.code == 2
    assert says in ended.err
    assert "next: " in ended.err


def test_a_slow_rate_is_not_written_as_0(cli):
    ended = cli("plan", "throughput", "--model", "llama-3.1-405b", "--gpu", "t4", "--mode", "serve")
    assert ended.out.startswith("0.35 (")
    assert " 0 " not in ended.out.splitlines()[0]


@pytest.mark.parametrize("option", [("--micro-batches", 4), ("--node-gbps", 100)])
def test_what_only_training_reads_is_refused_for_serving(cli, option):
    ended = cli("plan", "throughput", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--mode", "serve", *option)
    assert ended.code == 2
    assert f"{option[0]} is for --mode train, and this is serve" in ended.err
