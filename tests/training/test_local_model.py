"""Does the local model compute what a Llama computes, whether it reads or writes a token?"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpuledger.catalog.models import get_model  # noqa: E402
from gpuledger.catalog.models.shapes import TransformerShape  # noqa: E402
from gpuledger.errors import DeviceError, InputError  # noqa: E402
from gpuledger.training.local_model import open_model, open_shape  # noqa: E402
from gpuledger.training.torch_llama import EPS, ROPE_BASE, Llama, random_weights  # noqa: E402

pytestmark = pytest.mark.torch

SMALL = TransformerShape(
    layers=3, hidden=64, heads=8, kv_heads=2, head_dim=8, mlp_hidden=96, mlp_gated=True, vocab=101,
    tied_embeddings=False, max_context=64,
)  # fmt: skip


def test_a_token_written_is_the_token_read():
    """Decoding step by step from the cache chooses what reading the whole text at once chooses."""
    weights = random_weights(torch, SMALL, torch.device("cpu"), torch.float32, 3)
    llama = Llama(torch, SMALL, weights, batch=4, context=24)
    prompt = torch.randint(SMALL.vocab, (4, 9), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        llama.prefill(prompt)
        text = torch.cat((prompt, llama.tokens[:, None]), dim=1)
        for _ in range(12):
            llama.step()
            text = torch.cat((text, llama.tokens[:, None]), dim=1)
        assert len(torch.unique(text)) > 5
        for length in range(9, 21):
            again = Llama(torch, SMALL, weights, batch=4, context=24)
            again.prefill(text[:, :length])
            assert torch.equal(again.tokens, text[:, length])


def test_it_is_the_llama_others_know():
    """The same weights in transformers' own Llama give the same next tokens."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=SMALL.vocab, hidden_size=SMALL.hidden, intermediate_size=SMALL.mlp_hidden,
        num_hidden_layers=SMALL.layers, num_attention_heads=SMALL.heads, num_key_value_heads=SMALL.kv_heads,
        head_dim=SMALL.head_dim, rms_norm_eps=EPS, rope_theta=ROPE_BASE,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE}, tie_word_embeddings=False,
    )  # fmt: skip
    theirs = transformers.LlamaForCausalLM(config).eval()
    weights = random_weights(torch, SMALL, torch.device("cpu"), torch.float32, 5)
    wide, narrow = SMALL.heads * SMALL.head_dim, SMALL.kv_heads * SMALL.head_dim
    with torch.inference_mode():
        theirs.model.embed_tokens.weight.copy_(weights.embedding)
        theirs.lm_head.weight.copy_(weights.head)
        for mine, layer in zip(weights.layers, theirs.model.layers, strict=True):
            q, k, v = mine.qkv.split((wide, narrow, narrow))
            attention, mlp = layer.self_attn, layer.mlp
            gate, up = mine.gate_up.chunk(2)
            for place, weight in (
                (attention.q_proj, q), (attention.k_proj, k), (attention.v_proj, v), (attention.o_proj, mine.out),
                (mlp.gate_proj, gate), (mlp.up_proj, up), (mlp.down_proj, mine.down),
            ):  # fmt: skip
                place.weight.copy_(weight)
        prompt = torch.randint(SMALL.vocab, (2, 11), generator=torch.Generator().manual_seed(2))
        llama = Llama(torch, SMALL, weights, batch=2, context=32)
        llama.prefill(prompt)
        text = torch.cat((prompt, llama.tokens[:, None]), dim=1)
        for _ in range(8):
            llama.step()
            text = torch.cat((text, llama.tokens[:, None]), dim=1)
        said = theirs(text[:, :-1]).logits.argmax(dim=-1)[:, 10:]
    assert torch.equal(said, text[:, 11:])


def test_a_batch_is_timed_and_its_facts_are_known():
    model = open_shape("small", SMALL, device="cpu", dtype="float32")
    made = model.generate(2, 8, 5)
    assert (made.batch, made.input_tokens, made.output_tokens) == (2, 8, 5)
    assert 0 < made.ttft_s < made.latency_s
    facts = model.facts()
    matrices = 3 * (64 * 64 + 2 * 16 * 64 + 64 * 64 + 3 * 96 * 64) + 2 * 101 * 64
    assert facts["params"] == matrices + (2 * 3 + 1) * 64
    assert facts["weights_bytes_read_per_step"] == 4 * (facts["params"] - 101 * 64)
    assert facts["compiled"].startswith("no")
    assert "gpu" not in facts


def test_the_shape_of_the_catalog_has_the_published_size():
    shape = get_model("llama-3.1-8b").shape
    weights = random_weights(torch, shape, torch.device("meta"), torch.bfloat16, 0)
    assert weights.params == get_model("llama-3.1-8b").params_total
    assert weights.params == pytest.approx(8.03e9, rel=1e-3)


def test_what_it_cannot_run_is_refused():
    with pytest.raises(InputError, match="experts"):
        open_model("mixtral-8x7b", device="cpu")
    with pytest.raises(InputError, match="not a language model"):
        open_model("resnet-50", device="cpu")
    with pytest.raises(InputError, match="dtype"):
        open_shape("small", SMALL, device="cpu", dtype="int3")
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match="no GPU"):
            open_shape("small", SMALL, device="cuda:0")


def test_it_is_benchmarked_batch_by_batch(monkeypatch):
    """The target runs a whole batch as one and shares its times."""
    import asyncio

    from gpuledger.bench.load import Order
    from gpuledger.bench.targets import TARGETS
    from gpuledger.training import local_model

    small = lambda _name, **how: open_shape("small", SMALL, **{**how, "dtype": "float32"})  # noqa: E731
    monkeypatch.setattr(local_model, "open_model", small)

    async def work():
        target = TARGETS.get("local_model")({"model": "small", "device": "cpu"}, "0/a", 30.0)
        opened = await target.open()
        orders = [Order(i, 6, 4, batch=3) for i in range(3)]
        answers = await asyncio.gather(*(target.ask(o) for o in orders))
        await target.close()
        return opened, answers, target.found()

    opened, answers, found = asyncio.run(work())
    assert opened.facts["params"] == found["params"]
    assert {a.latency_s for a in answers} == {answers[0].latency_s}
    assert all(a.ok and a.output_tokens == 4 and 0 < a.ttft_s < a.latency_s for a in answers)
    assert "energy_j" not in answers[0].more
