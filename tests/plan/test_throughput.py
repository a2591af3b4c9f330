"""Are the rates what the roofline says, do they keep their laws, and does every answer carry its range?"""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.gpus import get_gpu, load_gpus
from gpuledger.catalog.models import get_model
from gpuledger.encode import encode
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import Decode, Way, all_reduce_s, factors, gather_s, way
from gpuledger.plan.speed.ranges import decode_errors, train_errors
from gpuledger.plan.speed.steps import compute_peak, exchange_s, experts_touched, rated, step_load
from gpuledger.plan.speed.throughput import decode_step_s, prefill_rate, step_s, throughput, train_rate
from gpuledger.training.flops import training_flop
from gpuledger.units import Unknown

H100, B200, A100 = get_gpu("h100-sxm"), get_gpu("b200-sxm"), get_gpu("a100-sxm4-80gb")
LLAMA = get_model("llama-3.1-8b")
NO_LOSS = Decode(
    memory_ratio=1, expert_memory_ratio=1, spread_experts=0, compute_ratio=1, per_layer_s=0, per_moe_layer_s=0,
    per_collective_s=0, per_sequence_s=0, per_step_s=0, source="", as_of="", calibrated_on="", held_out="", errors=(),
)  # fmt: skip


def test_a_decoding_step_by_pencil():
    """8.03 B parameters less the input table, in 2 bytes, at 3.35 TB/s; 131,072 bytes of cache a token."""
    setup = Setup(mode="serve", batch=16, cache_precision="bf16")
    load = step_load(LLAMA, H100, setup, 1000)
    assert load.weights_s == pytest.approx((LLAMA.params_total - 128256 * 4096) * 2 / 3.35e12)
    assert load.cache_s == pytest.approx(16 * 1000 * 131_072 / 3.35e12)
    products = 2 * LLAMA.params_total * 16
    scores = 2 * 16 * 1000 * 32 * 32 * 2 * 128
    assert load.compute_s == pytest.approx((products + scores) / 989.5e12)
    whole = step_s(load, NO_LOSS, way(H100, 1), 1)
    assert whole == pytest.approx(load.weights_s + load.cache_s + load.compute_s)


def test_experts_touched():
    shape = get_model("mixtral-8x7b").shape
    assert experts_touched(shape, 1) == pytest.approx(2)
    assert experts_touched(shape, 2) == pytest.approx(8 * (1 - 0.75**2))
    assert experts_touched(shape, 1000) == pytest.approx(8)
    assert experts_touched(LLAMA.shape, 10) == 0


def test_narrow_weights_run_at_the_widened_peak():
    assert compute_peak(A100, "int4") == compute_peak(A100, "bf16") == pytest.approx(312e12)
    assert compute_peak(H100, "fp8") == pytest.approx(1979e12)
    assert isinstance(compute_peak(A100, "fp8"), Unknown)


def test_training_by_pencil():
    """The parts of a step, each from its own formula."""
    setup = Setup(mode="train", count=1, micro_batch=2)
    answer = train_rate(LLAMA, H100, setup, 4)
    facts = factors().train
    flop = training_flop(LLAMA.shape, 2, 4096, causal=True)
    assert answer.step_parts_s["products"] == pytest.approx(4 * flop / 989.5e12 / facts.compute_ratio)
    assert answer.step_s == pytest.approx(sum(answer.step_parts_s.values()))
    assert answer.per_step == 4 * 2 * 4096
    assert answer.rate.per_s == pytest.approx(answer.per_step / answer.step_s)
    full = training_flop(LLAMA.shape, 1, 4096)
    assert answer.mfu_pct == pytest.approx(100 * answer.rate.per_s / 4096 * full / 989.5e12)
    # Weights read and written, gradients read, 12 bytes of states read and written.
    moved = (2 * 14 + 2) * LLAMA.params_total
    assert answer.step_parts_s["optimizer"] == pytest.approx(moved / 3.35e12 / facts.memory_ratio)


def test_pipeline_bubble_and_exchange():
    one = train_rate(LLAMA, H100, Setup(mode="train", count=4, pipeline=4), 12)
    work = sum(one.step_parts_s[name] for name in ("products", "other_traffic", "launches", "tensor_parallel"))
    assert one.step_parts_s["pipeline_bubble"] == pytest.approx(work * 3 / 12)
    slow = Way("slow", 1e9)
    plain_copies, sharded = Setup(mode="train", count=8), Setup(mode="train", count=8, zero=3)
    gradients = 2 * LLAMA.params_total
    assert exchange_s(LLAMA, plain_copies, slow, 5) == pytest.approx(2 * 7 / 8 * gradients / 1e9)
    assert exchange_s(LLAMA, sharded, slow, 5) == pytest.approx(5 * 3 * 7 / 8 * gradients / 1e9)
    assert exchange_s(LLAMA, Setup(mode="train"), slow, 5) == 0


def test_every_answer_is_a_range():
    serve = throughput(LLAMA, H100, Setup(mode="serve", context=4096, batch=48))
    assert [row.batch for row in serve.decode] == [1, 2, 4, 8, 16, 32, 48]
    for rate in (serve.prefill, *(row.rate for row in serve.decode)):
        assert rate.low_per_s > 0
        assert rate.low_per_s < rate.high_per_s
        assert rate.error_rows > 0
    train = throughput(LLAMA, H100, Setup(mode="train", count=8, zero=1)).train
    assert train.rate.low_per_s < train.rate.high_per_s
    assert train.rate.error_rows > 0


def test_errors_by_kind_and_gpu():
    assert decode_errors(LLAMA, H100).of == "dense, Hopper"
    assert decode_errors(get_model("qwen3-30b-a3b"), B200).of == "moe, Blackwell"
    assert decode_errors(LLAMA, A100).of == "dense"  # nothing was measured on Ampere


def test_errors_of_training_by_formula():
    train, moe = Setup(mode="train"), get_model("qwen3-30b-a3b")
    assert train_errors(LLAMA, train).of == "all"
    assert train_errors(moe, train).of == "moe"
    family = msgspec.structs.replace(LLAMA, by_formula=False)
    assert train_errors(family, train).of == "unchecked"
    dense, experts = (" ".join(throughput(model, H100, train).assumptions) for model in (LLAMA, moe))
    assert "models with experts in plain torch" in experts
    assert "models with experts in plain torch" not in dense


def test_images_a_second():
    answer = train_rate(get_model("resnet-50"), H100, Setup(mode="train", micro_batch=256), 1)
    assert answer.unit == "image"
    assert 500 < answer.rate.per_s < 20_000
    serve = throughput(get_model("resnet-50"), H100, Setup(mode="serve"))
    assert isinstance(serve.decode, Unknown)
    assert isinstance(serve.prefill, Unknown)
    assert isinstance(train_rate(get_model("flux.1-dev"), H100, Setup(mode="train"), 1), Unknown)


def test_json_is_whole():
    for setup in (Setup(mode="train", count=8), Setup(mode="serve", count=8, tensor=8, batch=4)):
        data = json.loads(json.dumps(encode("throughput", throughput(LLAMA, H100, setup)), allow_nan=False))
        assert data["setup"]["count"] == 8
    assert data["decode"][-1]["rate"]["per_s"] > 0
    unknown = encode("throughput", throughput(get_model("flux.1-dev"), H100, Setup(mode="train")))
    assert unknown["train"] is None
    assert [n["figure"] for n in unknown["not_known"]] == ["train"]


models = st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-12b", "deepseek-v2-lite", "gpt-oss-20b"])


@settings(max_examples=40, deadline=None)
@given(models, st.integers(1, 512), st.integers(128, 8192), st.sampled_from(["h100-sxm", "b200-sxm", "l4"]))
def test_laws_of_decoding(name, batch, context, gpu_name):
    model, gpu = get_model(name), get_gpu(gpu_name)
    setup = Setup(mode="serve", batch=batch, context=context)
    once = decode_step_s(model, gpu, setup, context)
    # A larger batch takes longer and writes more a second; a longer context takes longer; narrower weights do not.
    twice = decode_step_s(model, gpu, replace(setup, batch=2 * batch), context)
    assert once < twice < 2 * once
    assert decode_step_s(model, gpu, setup, 2 * context) >= once
    assert decode_step_s(model, gpu, replace(setup, precision="int4"), context) <= once * 1.0001


@settings(max_examples=30, deadline=None)
@given(models, st.integers(1, 4), st.sampled_from([512, 4096]), st.booleans())
def test_laws_of_training(name, micro_batch, sequence, recompute):
    model = get_model(name)
    setup = Setup(mode="train", micro_batch=micro_batch, sequence=sequence)
    rate = train_rate(model, H100, setup, 8).rate.per_s
    assert train_rate(model, H100, replace(setup, recompute=True), 8).rate.per_s < rate
    assert train_rate(model, H100, replace(setup, count=8), 8).rate.per_s <= 8 * rate * 1.0001
    assert train_rate(model, B200, setup, 8).rate.per_s > rate
    ideal = rated(model, H100, replace(setup, recompute=recompute))
    assert min(ideal.compute_s, ideal.traffic_s, ideal.layers) > 0
    adapters = rated(model, H100, replace(setup, recompute=recompute, lora_rank=8))
    left = 3 / 4 if recompute else 2 / 3
    assert adapters.compute_s == pytest.approx(left * ideal.compute_s)


def test_prefill_takes_all_copies():
    one = prefill_rate(LLAMA, H100, Setup(mode="serve", batch=4))
    two = prefill_rate(LLAMA, H100, Setup(mode="serve", batch=4, count=2))
    assert two.per_s == pytest.approx(2 * one.per_s)


def test_a_ring_by_pencil():
    over = Way("test", 100e9)
    assert all_reduce_s(8e9, 4, over) == pytest.approx(2 * 3 / 4 * 8 / 100)
    assert gather_s(8e9, 4, over) == pytest.approx(3 / 4 * 8 / 100)
    assert all_reduce_s(8e9, 1, over) == gather_s(8e9, 1, over) == 0


def test_the_way_of_a_group():
    h100, l40s, pcie = get_gpu("h100-sxm"), get_gpu("l40s"), get_gpu("a100-pcie-80gb")
    assert way(h100, 8).bytes_per_s == pytest.approx(450e9 * 0.82)
    assert way(l40s, 4).words == "PCIe4 x16"
    # A bridge joins two cards; four of them meet over PCIe.
    assert way(pcie, 4).bytes_per_s < way(pcie, 2).bytes_per_s
    # One 400 Gb/s adapter a GPU: 50 GB/s, of which 0.8 is reached; eight in a node share the bytes.
    assert way(h100, 16).bytes_per_s == pytest.approx(40e9)
    assert way(h100, 16, node_gbps=100).bytes_per_s == pytest.approx(10e9)
    assert way(h100, 64, in_node=8).bytes_per_s == pytest.approx(8 * 40e9)
    assert way(h100, 64, in_node=8, node_gbps=3200).bytes_per_s == way(h100, 8).bytes_per_s


def test_every_gpu_has_a_way():
    for gpu in load_gpus().values():
        assert way(gpu, 8).bytes_per_s > 1e9
