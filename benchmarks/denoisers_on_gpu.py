"""How is a denoiser of diffusers built and fed on a GPU? The part of models_on_gpu.py that knows diffusers."""

from __future__ import annotations

import gc
from typing import Any

import diffusers
import torch
from diffusers.utils import logging


def build(case: dict[str, Any], *, fp32: bool) -> Any:
    """The module with random weights on the GPU; torch's peaks begin once it is there."""
    logging.set_verbosity_error()
    with torch.device("cuda"):
        net = getattr(diffusers, case["class"]).from_config(dict(case["config"]))
    net = net.to(torch.float32 if fp32 else torch.bfloat16).train()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return net


def inputs(case: dict[str, Any], rows: int, dtype: torch.dtype) -> dict[str, Any]:
    """Random inputs of the shapes the case names."""

    def made(size: Any) -> Any:
        if isinstance(size, dict):
            return {name: made(one) for name, one in size.items()}
        if size in ("time", "class"):
            return torch.randint(0, 1000, (rows,), device="cuda")
        if size == "share":
            return torch.rand(rows, device="cuda", dtype=dtype)
        if isinstance(size, str):  # "mask 300"
            return torch.ones(rows, int(size.split()[1]), device="cuda", dtype=torch.long)
        return torch.randn(rows, *size, device="cuda", dtype=dtype)

    found = {name: made(size) for name, size in case["inputs"].items()}
    return found | {
        name: torch.zeros(*size, device="cuda", dtype=dtype) for name, size in case.get("fixed", {}).items()
    }


def loss(net: Any, given: dict[str, Any]) -> Any:
    """The mean square of what is left of the noise, in fp32 as the training scripts of diffusers have it."""
    out, noise = net(**given).sample, next(iter(given.values()))
    if out.shape != noise.shape:  # the other half is the variance
        out = out.chunk(2, dim=1)[0]
    return torch.nn.functional.mse_loss(out.float(), torch.randn_like(noise).float(), reduction="mean")


def one_pass(net: Any, case: dict[str, Any], rows: int, dtype: torch.dtype) -> Any:
    """One pass without gradients: a denoising step, or the way from latents to pixels."""
    if "decoded" in case:
        return net.decode(torch.randn(rows, *case["decoded"], device="cuda", dtype=dtype)).sample
    return net(**inputs(case, rows, dtype)).sample
