"""Does a traced step of a denoiser hold what autograd really keeps, and has it the published number of parameters?"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from gpuledger.errors import InputError  # noqa: E402
from gpuledger.training import flops  # noqa: E402
from gpuledger.training.blueprint import denoisers, forward, step  # noqa: E402
from gpuledger.training.blueprint.step import Asked, traced  # noqa: E402

pytestmark = pytest.mark.torch

CASES = Path(__file__).parents[2] / "benchmarks" / "model_cases_diffusion.toml"
PUBLISHED = {case["name"]: case for case in tomllib.loads(CASES.read_text(encoding="utf-8"))["case"]}
BLOCKS = {"block_out_channels": [32, 64], "layers_per_block": 1, "norm_num_groups": 8, "sample_size": 16}
SMALL = {
    "UNet2DModel": {**BLOCKS, "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
                    "up_block_types": ["AttnUpBlock2D", "UpBlock2D"], "attention_head_dim": 16},
    "UNet2DConditionModel": {**BLOCKS, "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
                             "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"], "cross_attention_dim": 48,
                             "attention_head_dim": 4, "addition_embed_type": "text_time",
                             "addition_time_embed_dim": 8, "projection_class_embeddings_input_dim": 80},
    "DiTTransformer2DModel": {"num_attention_heads": 4, "attention_head_dim": 16, "num_layers": 2, "sample_size": 16,
                              "norm_type": "ada_norm_zero", "num_embeds_ada_norm": 10, "out_channels": 8},
    "PixArtTransformer2DModel": {"num_attention_heads": 4, "attention_head_dim": 16, "cross_attention_dim": 64,
                                 "num_layers": 2, "sample_size": 16, "caption_channels": 48},
    "SD3Transformer2DModel": {"num_attention_heads": 4, "attention_head_dim": 16, "caption_projection_dim": 64,
                              "num_layers": 2, "sample_size": 16, "joint_attention_dim": 48,
                              "pooled_projection_dim": 32},
    "FluxTransformer2DModel": {"num_attention_heads": 2, "attention_head_dim": 16, "axes_dims_rope": [4, 4, 8],
                               "num_layers": 1, "num_single_layers": 2, "joint_attention_dim": 48, "in_channels": 16,
                               "pooled_projection_dim": 32, "guidance_embeds": True},
    "SanaTransformer2DModel": {"num_attention_heads": 4, "attention_head_dim": 8, "num_cross_attention_heads": 2,
                               "cross_attention_head_dim": 16, "cross_attention_dim": 32, "caption_channels": 24,
                               "num_layers": 2, "sample_size": 8, "in_channels": 8, "out_channels": 8},
    "AutoencoderKL": {**BLOCKS, "down_block_types": ["DownEncoderBlock2D"] * 2, "latent_channels": 4,
                      "up_block_types": ["UpDecoderBlock2D"] * 2, "sample_size": 32},
}  # fmt: skip
IMAGE = {"FluxTransformer2DModel": 128, "SanaTransformer2DModel": 256}  # pixels; the others as configured
TEXT = 12


def config(kind: str, **more: object) -> str:
    return json.dumps({"_class_name": kind, **SMALL[kind], **more})


def asked(kind: str, rows: int = 2, **how: object) -> Asked:
    return Asked(rows, TEXT, image=IMAGE.get(kind, 0), **how)


@pytest.mark.parametrize(("name", "params"), [
    ("sd-1.5-unet", 859_520_964),
    ("sdxl-unet", 2_567_463_684),
    ("sd3-medium", 2_028_328_000),
    ("flux.1-dev", 11_901_408_320),
    ("pixart-sigma", 610_856_096),
    ("sd-autoencoder", 83_653_863),
])  # fmt: skip
def test_published_models_have_their_published_parameters(name, params):
    found = step.weights(json.dumps({**PUBLISHED[name]["config"], "_class_name": PUBLISHED[name]["class"]}))
    assert found.matrices + found.rest == params


def test_dit_has_an_embedding_of_time_and_class_in_every_block():
    # The paper's 675 M have one; diffusers writes one into each of 28 blocks.
    found = step.weights(json.dumps({**PUBLISHED["dit-xl-2"]["config"], "_class_name": "DiTTransformer2DModel"}))
    classes, time = 1001 * 1152, 256 * 1152 + 1152 + 1152 * 1152 + 1152
    assert found.matrices + found.rest - 27 * (classes + time) == 674_834_720


def on_cpu(kind: str, *, full: bool) -> tuple[object, dict[str, object]]:
    """The small module with weights of zero, and a batch of inputs for it."""
    built = denoisers.build(json.loads(config(kind)), fp32=True, full_attention=full)
    module = built.module.to_empty(device="cpu")
    for one in (*module.parameters(), *module.buffers()):
        one.data.zero_()
    given = step.batch(built, 2, TEXT, IMAGE.get(kind, 0))

    def real(value: object) -> object:
        if isinstance(value, dict):
            return {name: real(one) for name, one in value.items()}
        return torch.zeros_like(value, device="cpu") if hasattr(value, "dtype") else value

    return module, real(given)


def saved_bytes(module: object, given: dict[str, object]) -> int:
    own = {one.untyped_storage()._cdata for one in (*module.parameters(), *module.buffers())}
    kept: dict[int, object] = {}

    def pack(tensor: object) -> object:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = module(**given)
    del out
    return sum(-(-store.nbytes() // 512) * 512 for key, store in kept.items() if key not in own)


@pytest.mark.parametrize("kind", [name for name in SMALL if name != "SanaTransformer2DModel"])
def test_keeps_what_autograd_saves_on_a_real_device(kind):
    full = kind == "UNet2DConditionModel"
    ours = traced(config(kind), asked(kind, fp32=True, full_attention=full)).kept_bytes
    assert ours == pytest.approx(saved_bytes(*on_cpu(kind, full=full)), rel=0.05)


@pytest.mark.parametrize("kind", SMALL)
def test_counts_the_flop_torch_counts_on_a_real_device(kind):
    module, given = on_cpu(kind, full=False)
    found = traced(config(kind), asked(kind, fp32=True))

    def run() -> None:
        module(**given).sample.sum().backward()

    assert found.product_flop + found.attention_flop == pytest.approx(flops.count(run), rel=0.01)


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_runs_in_every_way(kind):
    one, two, three = (traced(config(kind), asked(kind, rows)) for rows in (8, 16, 24))
    assert 0 < one.kept_bytes < one.peak_bytes
    assert three.kept_bytes - two.kept_bytes == pytest.approx(two.kept_bytes - one.kept_bytes, rel=0.1)
    cast = traced(config(kind), asked(kind, autocast=True))
    assert cast.kernels > traced(config(kind), asked(kind, fp32=True)).kernels
    less = traced(config(kind), asked(kind, 8, recompute=True))
    assert less.kept_bytes < one.kept_bytes
    assert less.product_flop > one.product_flop
    small, large = (forward.served(config(kind), rows, TEXT, IMAGE.get(kind, 0)) for rows in (2, 4))
    assert small.cache_bytes == large.cache_bytes == 0
    assert small.working_bytes < large.working_bytes
    assert large.product_flop < one.product_flop


def test_a_larger_image_takes_more():
    small, large = (traced(config("UNet2DConditionModel"), Asked(2, TEXT, image=side)) for side in (128, 256))
    assert 3 < large.kept_bytes / small.kept_bytes < 5
    with pytest.raises(InputError, match="not a multiple of 8 pixels"):
        traced(config("UNet2DConditionModel"), Asked(2, TEXT, image=129))


def test_an_autoencoder_serves_by_decoding():
    whole = traced(config("AutoencoderKL"), asked("AutoencoderKL", 2))
    decoded = forward.served(config("AutoencoderKL"), 2, 0, 32)
    assert 0 < decoded.product_flop < whole.product_flop / 3  # and training encodes as well


@pytest.mark.parametrize(("fields", "words"), [
    ({"_class_name": "Martian2DModel"}, "has no model class 'Martian2DModel'"),
    ({"_class_name": "StableDiffusionPipeline"}, "has no model class"),
    ({**SMALL["UNet2DModel"], "_class_name": "UNet2DModel", "down_block_types": ["Rock"]}, "could not build"),
])  # fmt: skip
def test_what_diffusers_cannot_build_is_refused(fields, words):
    with pytest.raises(InputError, match=words):
        step.weights(json.dumps(fields))


@pytest.mark.parametrize(("fields", "words"), [
    ({"_class_name": "WanTransformer3DModel", "num_layers": 1, "num_attention_heads": 2, "ffn_dim": 64}, "makes video"),
    ({"_class_name": "ControlNetModel", "block_out_channels": [32, 32, 32, 32], "attention_head_dim": 4,
      "layers_per_block": 1, "cross_attention_dim": 32}, "reads controlnet_cond"),
])  # fmt: skip
def test_what_cannot_be_fed_has_weights_but_no_step(fields, words):
    assert step.weights(json.dumps(fields)).matrices > 0
    with pytest.raises(InputError, match=words):
        traced(json.dumps(fields), Asked(1, TEXT))


def test_full_attention_keeps_its_scores_where_there_is_a_choice():
    kind = "UNet2DConditionModel"
    fused, full = (traced(config(kind), asked(kind, full_attention=on)).kept_bytes for on in (False, True))
    assert full > fused
    with pytest.raises(InputError, match="fused attention only"):
        traced(config("SD3Transformer2DModel"), asked("SD3Transformer2DModel", full_attention=True))
