"""How many sequences does a paged cache hold? Checked by hand, and by counting up one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger import plan
from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.models import get_model
from gpuledger.errors import InputError
from gpuledger.plan.memory.facts import capacity
from gpuledger.plan.memory.paged import paged
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup

LLAMA, GEMMA, H100 = get_model("llama-3.1-8b"), get_model("gemma-3-12b"), get_gpu("h100-sxm")
PER_TOKEN = 2 * 8 * 128 * 32 * 2  # keys and values, heads, width, layers, bytes


def served(**how: object) -> Setup:
    return Setup(mode="serve", cache="paged", **how)


def test_by_hand():
    # 100 tokens are 7 blocks of 16: 112 tokens.
    assert memory(LLAMA, served(context=100, batch=3)).parts["cache"] == 3 * 112 * PER_TOKEN
    found = paged(LLAMA, H100, served(context=4096))
    assert found is not None
    assert found.sequence_bytes == 4096 * PER_TOKEN
    rest = memory(LLAMA, served(context=4096, batch=found.sequences))
    assert found.pool_bytes == int(0.9 * capacity(H100)[0]) - rest.total_bytes + rest.parts["cache"]
    assert found.sequences == found.pool_bytes // found.sequence_bytes


@settings(max_examples=25, deadline=None)
@given(st.integers(256, 65536), st.sampled_from([1, 8, 16, 32]), st.floats(0.4, 1.0))
def test_one_more_sequence_would_not_fit(context, block, share):
    setup = served(context=context, block_tokens=block, memory_share=share)
    for model in (LLAMA, GEMMA):
        found = paged(model, H100, setup)
        assert found is not None
        room = int(share * capacity(H100)[0])
        assert memory(model, replace(setup, batch=found.sequences + 1)).total_bytes > room
        assert not found.sequences or memory(model, replace(setup, batch=found.sequences)).total_bytes <= room


@given(st.integers(1, 100_000), st.integers(1, 64))
@settings(max_examples=50, deadline=None)
def test_blocks_cost_less_than_one_block_per_layer_and_sequence(context, block):
    for model in (LLAMA, GEMMA):
        plain = memory(model, Setup(mode="serve", context=context)).parts["cache"]
        blocks = memory(model, served(context=context, block_tokens=block)).parts["cache"]
        per_layer = 2 * model.shape.kv_heads * model.shape.head_dim * 2
        assert plain <= blocks <= plain + model.shape.layers * 2 * block * per_layer


def test_windowed_layers_hold_their_window_only():
    short, long = (memory(GEMMA, served(context=n)).parts["cache"] for n in (8192, 65536))
    assert long < 8 * short


def test_a_larger_share_holds_more():
    few, more = (plan.fit("llama-3.1-8b", "h100-sxm", mode="serve", cache="paged", memory_share=s).statement.paged
                 for s in (0.5, 0.9))  # fmt: skip
    assert few.sequences < more.sequences


def test_more_than_the_pool_holds_does_not_fit():
    asked = plan.fit("llama-3.1-8b", "h100-sxm", mode="serve", cache="paged", batch=1).statement.paged.sequences + 1
    found = plan.fit("llama-3.1-8b", "h100-sxm", mode="serve", cache="paged", batch=asked).statement
    assert not found.fits
    assert found.remedies


@pytest.mark.parametrize("how", [{"memory_share": 0}, {"memory_share": 1.5}, {"memory_share": float("nan")},
                                 {"block_tokens": 0}])  # fmt: skip
def test_impossible_shares_are_refused(how):
    with pytest.raises(InputError):
        plan.fit("llama-3.1-8b", "h100-sxm", mode="serve", cache="paged", **how)


# What vLLM printed at its start, in GiB: github.com/vllm-project/vllm/pull/10511 (Meta-Llama-3-8B, 79.22 GiB of an
# A100 or H100), and two public logs of Llama-3.1-8B (79.14 GiB; 22.07 GiB with 2,048 tokens per pass).
# memory, share, weights, outside torch, peak of a pass, left for the cache
VLLM = [(79.22, 0.9, 14.96, 1.79, 1.26, 53.29), (79.14, 0.9, 14.99, 0.12, 1.19, 54.93),
        (22.07, 0.9, 14.99, 0.05, 0.22, 4.60)]  # fmt: skip
GIB = 2**30


@pytest.mark.parametrize("log", VLLM)
def test_the_pool_is_what_vllm_takes_it_to_be(log):
    total, share, weights, outside, peak, left = log
    assert total * share - weights - outside - peak == pytest.approx(left, abs=0.02)
    parts = memory(LLAMA, served(context=8192)).parts
    assert parts["weights"] / GIB == pytest.approx(weights, abs=0.05)
    found = paged(LLAMA, H100, served(context=8192))
    rest = memory(LLAMA, served(context=8192, batch=found.sequences)).parts
    pool = int(0.9 * capacity(H100)[0]) - rest["weights"] - rest["working"] - rest["overhead"]
    assert found.pool_bytes == pool


@pytest.mark.parametrize("log", VLLM[:2])
def test_the_pool_of_an_80_gb_card_is_near_what_was_logged(log):
    found = paged(LLAMA, H100, served(context=8192))
    assert found.pool_bytes / GIB == pytest.approx(log[-1], rel=0.03)


def test_blocks_by_hand_as_vllm_counts_them():
    # 2 (keys and values) x 16 tokens x 8 heads x 128 wide x 2 bytes x 32 layers = 2 MiB.
    found = paged(LLAMA, H100, served(context=8192))
    assert found.block_bytes == 2 * 16 * 8 * 128 * 2 * 32 == 2 * 2**20
    # The log with 4.60 GiB left: "# CUDA blocks: 2356", 37696 tokens, concurrency 0.29x of 131072.
    assert 2356 * found.block_bytes / GIB == pytest.approx(4.60, abs=0.005)
    assert 2356 * 16 == 37_696
    assert round(37_696 / 131_072, 2) == 0.29
    assert found.blocks == found.pool_bytes // found.block_bytes
    assert found.tokens == 16 * found.blocks
    assert found.sequences == found.tokens // 8192


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([8, 16, 32, 64]), st.integers(1, 64), st.floats(0.4, 1.0))
def test_whole_sequences_of_blocks_are_what_fits(block, length, share):
    found = paged(LLAMA, H100, served(context=length * 256, block_tokens=block, memory_share=share))
    assert found.blocks * found.block_bytes <= found.pool_bytes < (found.blocks + 1) * found.block_bytes
    assert found.sequences == min(found.blocks // (length * 256 // block), found.sequences)
