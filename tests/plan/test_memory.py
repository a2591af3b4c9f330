"""Does the breakdown agree with published tables and a pencil, and does it keep its laws?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.models import MlaShape, Model, TransformerShape, get_model, load_models
from gpuledger.plan.fitting.build import assumptions
from gpuledger.plan.guide.schema import dense_model
from gpuledger.plan.memory.activations import activations
from gpuledger.plan.memory.facts import overheads, precisions
from gpuledger.plan.memory.parts import cache_bytes, memory
from gpuledger.plan.memory.weights import held, stages
from gpuledger.plan.setup import Setup

GPT_22B = TransformerShape(
    layers=48, hidden=6144, heads=64, kv_heads=64, head_dim=96, mlp_hidden=4 * 6144, mlp_gated=False, vocab=51200,
    tied_embeddings=True, max_context=2048, norm_bias=True,
)  # fmt: skip


def states_gb(setup: Setup, params: int) -> float:
    """Weights, gradients and optimizer of one GPU, as the ZeRO paper counts them."""
    parts = memory(dense_model("as large", params), setup).parts
    return sum(parts[name] for name in ("weights", "gradients", "optimizer")) / 1e9


@pytest.mark.parametrize(("zero", "published"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_zero_paper_figure_1(zero, published):
    """Rajbhandari et al. 2020, figure 1: 7.5 B parameters, 64 GPUs, K = 12."""
    assert round(states_gb(Setup(mode="train", count=64, zero=zero), 7_500_000_000), 1) == published


@pytest.mark.parametrize(
    ("count", "zero", "published"),
    [(4, 1, 52.5), (4, 2, 41.3), (4, 3, 30.0), (16, 1, 35.6), (16, 2, 21.6), (16, 3, 7.5),
     (256, 1, 30.4), (256, 2, 15.4), (256, 3, 0.47), (1024, 1, 30.1), (1024, 3, 0.12)],
)  # fmt: skip
def test_zero_paper_table_1(count, zero, published):
    """The same paper, table 1, the column of 7.5 B."""
    ours = states_gb(Setup(mode="train", count=count, zero=zero), 7_500_000_000)
    assert ours == pytest.approx(published, abs=0.06)


def layer_bytes(**how) -> float:
    shape = replace_shape(GPT_22B, layers=1, vocab=64)
    setup = Setup(mode="train", precision="fp16", kernels="fused", dropout=True, sequence=2048, micro_batch=4, **how)
    model = Model(name="gpt-22b", shape=shape)
    setup = replace(setup, count=setup.tensor)
    kept = activations(model, setup, replace(stages(model, 1)[0], last=False))
    return kept.kept_bytes / (2048 * 4 * 6144)  # in units of s b h


def replace_shape(shape: TransformerShape, **fields) -> TransformerShape:
    import msgspec

    return msgspec.structs.replace(shape, **fields)


def test_korthikanti_equations():
    """Equations 1, 2 and 4, and their attention term, with a = 64 heads, s = 2048, h = 6144, t = 8."""
    scores = 5 * 64 * 2048 / 6144
    assert layer_bytes(attention="full") == pytest.approx(34 + scores)
    assert layer_bytes(attention="full", tensor=8) == pytest.approx(10 + 24 / 8 + scores / 8)
    assert layer_bytes(attention="full", tensor=8, sequence_parallel=True) == pytest.approx((34 + scores) / 8)
    # Flash attention keeps one fp32 number a head instead of the scores: 4 a bytes a token.
    assert layer_bytes() == pytest.approx(34 + 4 * 64 / 6144)
    assert layer_bytes(recompute=True) == pytest.approx(2)


def test_tensors_saved_by_a_hugging_face_llama():
    """Counted with saved_tensors_hooks on LlamaForCausalLM, the growth from 2 to 3 layers, less 8 bytes a token."""
    shape = TransformerShape(
        layers=1, hidden=256, heads=8, kv_heads=2, head_dim=32, mlp_hidden=688, mlp_gated=True, vocab=64,
        tied_embeddings=False, max_context=2048,
    )  # fmt: skip
    model = Model(name="llama", shape=shape)
    stage = replace(stages(model, 1)[0], last=False)
    counted = {
        ("bf16", "flash", "mixed"): 2_795_520, ("fp32", "flash", "mixed"): 5_056_512,
        ("bf16", "full", "mixed"): 4_556_800, ("bf16", "flash", "autocast"): 4_835_328 - 2 * 692_224,
    }  # fmt: skip
    for (precision, attention, scheme), measured in counted.items():
        how = {"precision": precision, "attention": attention, "scheme": scheme}
        setup = Setup(mode="train", sequence=128, micro_batch=2, **how)
        assert activations(model, setup, stage).kept_bytes == measured - 8 * 256, how


def test_cache_by_pencil():
    """Llama 3.1 70B: 80 layers x 2 x 8 heads x 128 x 2 bytes = 327,680 bytes a token."""
    model = get_model("llama-3.1-70b")
    setup = Setup(mode="serve", context=8192, batch=32)
    stage = stages(model, 1)[0]
    assert cache_bytes(model, setup, stage) == 327_680 * 8192 * 32
    assert cache_bytes(model, replace(setup, count=8, tensor=8), stage) == 327_680 * 8192 * 32 // 8
    # Beyond 8 GPUs the heads are repeated: each GPU keeps one of them.
    assert cache_bytes(model, replace(setup, count=16, tensor=16), stage) == 327_680 * 8192 * 32 // 8
    assert cache_bytes(model, replace(setup, cache_precision="fp8"), stage) == 327_680 * 8192 * 32 // 2


def test_cache_of_windows_and_latents():
    windowed = replace_shape(GPT_22B, layers=4, kv_heads=4, heads=64, sliding_window=1024, sliding_layers=3)
    model = Model(name="windowed", shape=windowed)
    setup = Setup(mode="serve", context=4096, batch=1)
    tokens = 1 * 4096 + 3 * 1024
    assert cache_bytes(model, setup, stages(model, 1)[0]) == tokens * 2 * 4 * 96 * 2
    latent = replace_shape(
        GPT_22B, mla=MlaShape(kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_dim=128), layers=61, heads=128
    )
    model = Model(name="latent", shape=latent)
    # DeepSeek-V2 paper: (512 + 64) x layers numbers a token, however many GPUs share the heads.
    assert cache_bytes(model, replace(setup, count=8, tensor=8), stages(model, 1)[0]) == 4096 * 61 * 576 * 2


@pytest.mark.parametrize("name", sorted(load_models()))
def test_one_gpu_holds_all_parameters(name):
    model = load_models()[name]
    own = held(model, stages(model, 1)[0], 1)
    assert own.total == model.params_total


def test_a_pipeline_holds_all_layers_once():
    model = get_model("llama-3.1-70b")
    parts = [held(model, stage, 1) for stage in stages(model, 8)]
    assert sum(part.matrices + part.rest for part in parts) == model.params_total
    assert [stage.in_flight for stage in stages(model, 8)] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_qlora_by_pencil():
    """Llama 2 7B: 32 layers of 4 x 4096^2 + 3 x 4096 x 11008 in 4.127 bits; edges 8 x 4096 + 3 x 15104 a rank."""
    model = get_model("llama-2-7b")
    setup = Setup(mode="train", lora_rank=64, frozen_precision="nf4", recompute=True, sequence=512)
    need = memory(model, setup)
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    adapters = 64 * 32 * (8 * 4096 + 3 * (4096 + 11008))
    rest = model.params_total - matrices
    assert need.parts["weights"] == pytest.approx(matrices * 4.127 / 8 + 2 * rest + 2 * adapters, abs=1)
    assert need.parts["gradients"] == 2 * adapters
    assert need.parts["optimizer"] == 12 * adapters


def test_what_is_not_known_is_no_zero():
    need = memory(get_model("flux.1-dev"), Setup(mode="train"))
    assert "activations" not in need.parts
    assert "no closed form" in need.not_known["activations"]


small = st.builds(
    lambda layers, heads, kv, dim, wide, vocab, moe: TransformerShape(
        layers=layers, hidden=heads * dim, heads=heads, kv_heads=heads if kv else heads // 2, head_dim=dim,
        mlp_hidden=wide * 16, mlp_gated=True, vocab=vocab, tied_embeddings=False, max_context=65536,
        experts=8 * moe, experts_per_token=2 * moe, expert_hidden=16 * wide * moe, moe_layers=moe * (layers // 2),
    ),
    st.integers(1, 40), st.sampled_from([4, 8, 16]), st.booleans(), st.sampled_from([32, 64, 128]), st.integers(1, 64),
    st.integers(100, 100_000), st.booleans(),
)  # fmt: skip
trained = st.builds(
    lambda **how: Setup(mode="train", **how),
    count=st.sampled_from([2, 4, 8, 16, 64]), zero=st.integers(0, 3), sequence=st.sampled_from([128, 1024, 8192]),
    micro_batch=st.integers(1, 4), recompute=st.booleans(), scheme=st.sampled_from(["mixed", "autocast", "pure"]),
    optimizer=st.sampled_from(["adamw", "adamw-8bit", "adafactor", "sgd", "sgd-momentum"]),
    precision=st.sampled_from(["bf16", "fp16", "fp32", "fp8"]), tensor=st.sampled_from([1, 2]),
    lora_rank=st.sampled_from([0, 0, 16]), attention=st.sampled_from(["flash", "full"]),
)  # fmt: skip
quick = settings(max_examples=60, deadline=None)


@quick
@given(small, trained)
def test_parts_sum_to_the_total_and_none_is_negative(shape, setup):
    need = memory(Model(name="m", shape=shape), setup)
    assert sum(need.parts.values()) == need.total_bytes
    assert all(isinstance(part, int) and part >= 0 for part in need.parts.values())


@quick
@given(small, trained)
def test_a_further_zero_stage_never_needs_more(shape, setup):
    model = Model(name="m", shape=shape)
    needs = [memory(model, replace(setup, zero=zero)).total_bytes for zero in range(4)]
    assert needs == sorted(needs, reverse=True)


@quick
@given(small, trained)
def test_more_gpus_in_fsdp_never_need_more_each(shape, setup):
    model = Model(name="m", shape=shape)
    needs = [memory(model, replace(setup, zero=3, count=n)).total_bytes for n in (2, 4, 8, 64, 512)]
    assert needs == sorted(needs, reverse=True)


@quick
@given(small, trained)
def test_recomputation_keeps_no_more(shape, setup):
    model = Model(name="m", shape=shape)
    plain, again = (memory(model, replace(setup, recompute=how)) for how in (False, True))
    assert again.parts["activations"] <= plain.parts["activations"]


SERVED = {"mode": "serve", "precision": "mxfp4"}


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-20b", 12.8), ("gpt-oss-120b", 60.8)])
def test_mxfp4_is_of_the_experts_only(name, gib):
    """gpt-oss model card (arXiv 2508.10925), table 1: size of the checkpoint; attention and embeddings are bf16."""
    found = memory(get_model(name), Setup(**SERVED)).parts["weights"]
    assert found / 2**30 == pytest.approx(gib, rel=0.005)
    assert any("attention, embeddings" in words for words in assumptions(get_model(name), Setup(**SERVED)))


@quick
@given(small, st.integers(1, 64), st.sampled_from([256, 4096, 32768]), st.sampled_from([1, 2, 4]))
def test_fewer_bits_never_need_more(shape, batch, context, tensor):
    model = Model(name="m", shape=shape)
    # What leaves a model's attention in 16 bits has its own size.
    alike = (p for p in precisions().values() if not (p.experts_only and shape.experts))
    by_bits = sorted(alike, key=lambda p: p.bits)
    setup = Setup(mode="serve", batch=batch, context=context, count=tensor, tensor=tensor)
    needs = [memory(model, replace(setup, precision=p.name)).total_bytes for p in by_bits]
    assert needs == sorted(needs)
    caches = sorted((p for p in by_bits if p.cache), key=lambda p: p.bits)
    needs = [memory(model, replace(setup, cache_precision=p.name)).total_bytes for p in caches]
    assert needs == sorted(needs)


def test_the_facts_have_sources():
    facts = overheads()
    for fact in (facts.context_bytes, facts.workspace_bytes, facts.collective_bytes, facts.fragmentation_ratio):
        assert fact.source
        assert fact.value > 0
