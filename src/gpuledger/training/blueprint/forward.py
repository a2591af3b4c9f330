"""What does a forward pass without gradients hold, move and compute?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any

from gpuledger.errors import InputError
from gpuledger.training.blueprint import denoisers
from gpuledger.training.blueprint.modules import Built
from gpuledger.training.blueprint.step import REMEMBERED, batch, module_of
from gpuledger.training.runtime import first_line


@dataclass(frozen=True)
class Served:
    """A forward pass without gradients: the cache it leaves, what it holds in addition at most, and its work."""

    cache_bytes: int
    working_bytes: int
    product_flop: int
    attention_flop: int
    moved_bytes: int
    kernels: int


@lru_cache(maxsize=REMEMBERED)
def served(config: str, rows: int, context: int, image: int = 0) -> Served:
    """Prompts read in one pass in bf16; one step of a denoiser; an autoencoder's way from latents to pixels."""
    import torch
    from torch.utils._pytree import tree_iter

    from gpuledger.training.blueprint.kernels import as_on_gpu
    from gpuledger.training.blueprint.watch import Watch

    built = module_of(config, False, False)
    given = _prompts(built, rows, context) if built.denoises is None else batch(built, rows, context, image)
    run = built.module
    if built.name.startswith("Autoencoder"):
        run, given = built.module.decode, {"z": denoisers.latents_of(built, given["sample"])}
    built.module.eval()
    watch = Watch((*built.module.parameters(), *built.module.buffers()))
    if built.denoises:
        watch.hold(tree_iter(given))
    try:
        with torch.no_grad(), as_on_gpu(autocast=False) as attention, watch:
            out = run(**given)
            cache = next((out[name] for name in ("past_key_values", "cache_params") if out.get(name) is not None), None)
            del out
            kept = 0 if built.denoises else watch.now
            del cache
    except InputError:
        raise
    except Exception as error:
        problem = f"{built.name} could not run on the meta device: {first_line(error)}"
        raise InputError(problem, hint="its control flow may depend on values; measure it on a GPU instead") from error
    finally:
        built.module.train()
    return Served(kept, watch.peak - kept, watch.flop, attention.forward_flop, watch.moved_bytes, watch.kernels)


def _prompts(built: Built, rows: int, context: int) -> dict[str, Any]:
    """Prompts for a model of transformers, which is to leave its cache."""
    import torch

    given = {name: value for name, value in batch(built, rows, context).items() if name != "labels"}
    if built.module.config.is_encoder_decoder and "decoder_input_ids" not in given:
        given["decoder_input_ids"] = torch.zeros(rows, context, dtype=torch.long, device="meta")
    if "use_cache" in signature(built.module.forward).parameters:
        given["use_cache"] = True
    return given
