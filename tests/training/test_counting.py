"""Do the closed formulas agree with what torch counts on real modules?"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gpuledger.catalog.models import CnnShape, MlaShape, TransformerShape, VitShape, get_model  # noqa: E402
from gpuledger.training.flops import count, forward_flop, forward_flop_by_part, training_flop  # noqa: E402

pytestmark = pytest.mark.torch

WITHIN = 0.02
BATCH, SEQUENCE, VOCAB = 2, 64, 512


def count_forward(module, *args, **kwargs):
    with torch.no_grad():
        return count(lambda: module(*args, **kwargs))


def count_training(module, **kwargs):
    def run():
        out = module(**kwargs)
        (out.logits.float().sum() if out.loss is None else out.loss).backward()

    return count(run)


def decoder(**shape):
    plain = {"mlp_hidden": 0, "mlp_gated": True, "vocab": VOCAB, "tied_embeddings": False, "max_context": 256}
    return TransformerShape(**{**plain, **shape})


SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GQA = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16}


def llama():
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, intermediate_size=176)
    return transformers.LlamaForCausalLM(config), decoder(**GQA, mlp_hidden=176)


def mixtral():
    config = transformers.MixtralConfig(**SMALL, num_key_value_heads=2, intermediate_size=96, num_local_experts=4)
    experts = {"experts": 4, "experts_per_token": 2, "expert_hidden": 96, "moe_layers": 2}
    return transformers.MixtralForCausalLM(config), decoder(**GQA, **experts)


def gpt_2():
    config = transformers.GPT2Config(
        n_embd=64, n_layer=2, n_head=4, vocab_size=VOCAB, n_positions=256, bos_token_id=1, eos_token_id=2
    )
    shape = decoder(layers=2, hidden=64, heads=4, kv_heads=4, head_dim=16, mlp_hidden=256, mlp_gated=False)
    return transformers.GPT2LMHeadModel(config), shape


def deepseek():
    config = transformers.DeepseekV3Config(
        **SMALL, num_key_value_heads=4, intermediate_size=176, moe_intermediate_size=48, n_routed_experts=8,
        num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=1, q_lora_rank=32, kv_lora_rank=16,
        qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16,
    )  # fmt: skip
    experts = {"experts": 8, "experts_per_token": 2, "shared_experts": 1, "expert_hidden": 48, "moe_layers": 1}
    mla = MlaShape(q_lora_rank=32, kv_lora_rank=16, qk_nope_dim=16, qk_rope_dim=8, v_dim=16)
    shape = decoder(layers=2, hidden=64, heads=4, kv_heads=4, head_dim=16, mlp_hidden=176, mla=mla, **experts)
    return transformers.DeepseekV3ForCausalLM(config), shape


def gemma():
    """The window is longer than the sequence here: of a shorter one torch multiplies the masked part as well."""
    config = transformers.Gemma2Config(
        **SMALL, num_key_value_heads=2, head_dim=32, intermediate_size=176, attn_implementation="eager"
    )
    gqa = {**GQA, "head_dim": 32}
    return transformers.Gemma2ForCausalLM(config), decoder(**gqa, mlp_hidden=176, norms_per_layer=4)


@pytest.mark.parametrize("build", [llama, mixtral, gpt_2, deepseek, gemma])
def test_decoders(build):
    torch.manual_seed(0)
    module, shape = build()
    tokens = torch.randint(0, VOCAB, (BATCH, SEQUENCE))
    forward = count_forward(module, input_ids=tokens)
    assert forward_flop(shape, BATCH, SEQUENCE) == pytest.approx(forward, rel=WITHIN)
    trained = count_training(module, input_ids=tokens, labels=tokens)
    assert training_flop(shape, BATCH, SEQUENCE) == pytest.approx(trained, rel=WITHIN)


def test_vit():
    config = transformers.ViTConfig(
        hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512, image_size=64,
        patch_size=8, num_labels=10,
    )  # fmt: skip
    shape = VitShape(layers=4, hidden=128, heads=4, mlp_hidden=512, image=64, patch=8, classes=10)
    module, images = transformers.ViTForImageClassification(config), torch.randn(BATCH, 3, 64, 64)
    assert forward_flop(shape, BATCH) == pytest.approx(count_forward(module, pixel_values=images), rel=WITHIN)
    trained = count_training(module, pixel_values=images)
    assert training_flop(shape, BATCH) == pytest.approx(trained, rel=WITHIN)


@pytest.mark.parametrize("kind", ["basic", "bottleneck"])
def test_resnet(kind):
    widths = (64, 128, 256, 512) if kind == "basic" else (256, 512, 1024, 2048)
    config = transformers.ResNetConfig(
        layer_type=kind, embedding_size=64, hidden_sizes=list(widths), depths=[2, 2, 2, 2], num_labels=10
    )
    shape = CnnShape(block=kind, depths=(2, 2, 2, 2), widths=widths, stem=64, image=65, classes=10)
    module, images = transformers.ResNetForImageClassification(config), torch.randn(BATCH, 3, 65, 65)
    assert forward_flop(shape, BATCH) == pytest.approx(count_forward(module, pixel_values=images), rel=WITHIN)
    trained = count_training(module, pixel_values=images)
    # The image itself needs no gradient: three times the forward pass is one product of the stem too many, no more.
    stem = forward_flop_by_part(shape, BATCH)["conv_stem"]
    assert training_flop(shape, BATCH) - stem == pytest.approx(trained, rel=0.001)
    whole = count_training(module, pixel_values=images.requires_grad_())
    assert training_flop(shape, BATCH) == pytest.approx(whole, rel=WITHIN)


def test_a_model_of_the_catalog_at_full_size_without_memory_for_it():
    config = transformers.LlamaConfig(
        vocab_size=128_256, hidden_size=4096, intermediate_size=14_336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, attn_implementation="eager",
    )  # fmt: skip
    with torch.device("meta"):
        module = transformers.LlamaForCausalLM(config)
        tokens = torch.zeros((1, 128), dtype=torch.long)
    model = get_model("llama-3.1-8b")
    assert sum(p.numel() for p in module.parameters()) == model.params_total
    assert count_forward(module, input_ids=tokens) == forward_flop(model.shape, 1, 128)


def test_recomputed_scores_are_the_hardwares_work():
    q = torch.randn(1, 2, 8, 4, requires_grad=True)

    def attend():
        torch.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()

    products = 2 * 2 * 8 * 8 * 4
    assert count(attend) == 6 * products
    assert count(attend, hardware=True) == 7 * products


def test_one_layer_by_pencil():
    layer = torch.nn.Linear(8, 4, bias=False)
    given = torch.randn(3, 8)
    assert count_forward(layer, given) == 2 * 3 * 8 * 4
    assert count(lambda: layer(given).square().mean().backward()) == 2 * 2 * 3 * 8 * 4


@pytest.mark.parametrize("groups", [1, 4, 32])
@pytest.mark.parametrize("kind", ["Conv2d", "ConvTranspose2d"])
def test_gradients_of_a_convolution_in_groups_count_once(kind, groups):
    layer = getattr(torch.nn, kind)(32, 64, 3, stride=2, groups=groups)
    image = torch.zeros(2, 32, 9, 9, requires_grad=True)
    forward = count(lambda: layer(image))
    places = 9 * 9 if kind == "ConvTranspose2d" else 4 * 4
    assert forward == 2 * 2 * places * 32 * 64 * 9 // groups
    assert count(lambda: layer(image).sum().backward()) == 3 * forward
