"""What do training steps of many Hugging Face families take of a GPU: memory and seconds?

    PYTHONPATH=src python benchmarks/models_on_gpu.py --out models.json [--cases FILE ...] [--seconds 500] [--only NAME]

Runs the cases of model_cases.toml with random weights and writes torch's peaks, the step's seconds and the
configuration of each: nothing is predicted here. benchmarks/plan_models.py compares them with the planner.
Needs torch, transformers and a GPU; the cases of model_cases_diffusion.toml need diffusers.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import transformers

HERE = Path(__file__).parent
STEPS = 4
LEAST_S = 1.0
# A model with such a part is given text only. What that does not reach is trained with gradients of zero, as images or
# sound would train it: it takes gradients and states, as the plan says ("all weights count").
TOWERS = ("vision_config", "audio_config")


class Masters:
    """AdamW on fp32 masters of 16-bit weights, one weight at a time: 12 bytes a parameter and no second gradient."""

    def __init__(self, weights: list[torch.nn.Parameter]) -> None:
        self.weights = weights
        self.masters = [torch.nn.Parameter(w.detach().float()) for w in weights]
        self.steps = [torch.optim.AdamW([m], lr=1e-5, fused=True) for m in self.masters]

    def step(self) -> None:
        for weight, master, step in zip(self.weights, self.masters, self.steps, strict=True):
            if weight.grad is None:
                continue
            master.grad = weight.grad.float()
            step.step()
            master.grad = None
            weight.data.copy_(master.data)

    def zero_grad(self) -> None:
        for weight in self.weights:
            weight.grad = None


def build(case: dict[str, Any], run: dict[str, Any]) -> Any:
    """The model with random weights on the GPU."""
    config = transformers.AutoConfig.for_model(**case["config"])
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0
    config._attn_implementation = "eager" if run.get("attention") == "full" else "sdpa"  # noqa: SLF001
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if run.get("scheme") == "autocast" else torch.bfloat16)
    try:
        with torch.device("cuda"):
            try:
                net = getattr(transformers, case["class"])(config)
            except ValueError:  # no fused attention in this family
                config._attn_implementation = "eager"  # noqa: SLF001
                net = getattr(transformers, case["class"])(config)
    finally:
        torch.set_default_dtype(before)
    return net.train()


def inputs(net: Any, run: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Random inputs and labels of one micro-batch."""
    config, rows, dtype = net.config, run["micro_batch"], next(net.parameters()).dtype
    name = net.main_input_name
    if name in ("pixel_values", "pixel_values_videos"):
        vision = getattr(config, "vision_config", config)
        side = getattr(vision, "image_size", None) or getattr(vision, "crop_size", None) or 224
        high, wide = (side, side) if isinstance(side, int) else side
        frames = getattr(config, "num_frames", None) or getattr(config, "frames_per_clip", None)
        clip = (frames,) if type(net).__name__.endswith("ForVideoClassification") else ()
        channels = getattr(vision, "num_channels", 3)
        image = torch.randn(rows, *clip, channels, high, wide, device="cuda", dtype=dtype)
        size = (rows, high, wide) if type(net).__name__.endswith("SemanticSegmentation") else (rows,)
        return {name: image, "labels": torch.randint(0, config.num_labels, size, device="cuda")}
    if name == "input_values":  # ten seconds of sound
        sound = torch.randn(rows, 160_000, device="cuda", dtype=dtype)
        return {"input_values": sound, "labels": torch.randint(0, config.num_labels, (rows,), device="cuda")}
    tokens = torch.randint(5, config.get_text_config().vocab_size, (rows, run["sequence"]), device="cuda")
    if name == "input_features":
        sound = torch.randn(rows, config.num_mel_bins, 2 * config.max_source_positions, device="cuda", dtype=dtype)
        return {"input_features": sound, "labels": tokens}
    return {"input_ids": tokens, "labels": tokens}


def made(case: dict[str, Any], run: dict[str, Any]) -> tuple[Any, Callable[[], Any], dict[str, Any]]:
    """The model, the loss of one micro-batch of it, and what is to be known about it."""
    if case.get("library") == "diffusers":
        import denoisers_on_gpu as denoisers

        net = denoisers.build(case, fp32=run.get("scheme") == "autocast")
        if run.get("recompute"):
            net.enable_gradient_checkpointing()
        facts = {
            "attention_used": "sdpa",
            "config": {**case["config"], "_class_name": case["class"]},
            "text_only": False,
        }
        dtype = next(net.parameters()).dtype
        return net, lambda: denoisers.loss(net, denoisers.inputs(case, run["micro_batch"], dtype)), facts
    net = build(case, run)
    if run.get("recompute"):
        net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    used = net.config._attn_implementation  # noqa: SLF001
    facts = {"attention_used": used, "config": json.loads(net.config.to_json_string(use_diff=True))}
    facts["text_only"] = net.main_input_name == "input_ids" and any(hasattr(net.config, part) for part in TOWERS)
    return net, lambda: net(**inputs(net, run)).loss, facts


def serve(case: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Some passes of a denoiser without gradients; seconds of the fastest after the first."""
    import denoisers_on_gpu as denoisers

    net = denoisers.build(case, fp32=False).eval()
    took: list[float] = []
    with torch.inference_mode():
        while len(took) < 3 or (len(took) < STEPS and sum(took[1:]) < LEAST_S):
            start = clock()
            denoisers.one_pass(net, case, run["batch"], torch.bfloat16)
            took.append(clock() - start)
    params = sum(w.numel() for w in net.parameters())
    return {"params": params, "config": {**case["config"], "_class_name": case["class"]}, "step_s": min(took[1:])}


def train(case: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Some optimizer steps; seconds of the fastest after the first."""
    net, loss_of_batch, facts = made(case, run)
    found: dict[str, Any] = {"params": sum(w.numel() for w in net.parameters()), **facts}
    weights = [w for w in net.parameters() if w.requires_grad]
    scheme, accumulate = run.get("scheme", "mixed"), run.get("accumulate", 2)
    unread = weights if found["text_only"] else []
    step = Masters(weights) if scheme == "mixed" else torch.optim.AdamW(weights, lr=1e-5, fused=True)
    took: list[float] = []
    apart: list[float] = []
    while len(took) < 3 or (len(took) < STEPS and sum(took[1:]) < LEAST_S):
        start = clock()
        for _ in range(accumulate):
            with torch.autocast("cuda", dtype=torch.bfloat16) if scheme == "autocast" else nullcontext():
                loss = loss_of_batch()
            loss.backward()
            del loss
            for weight in unread:
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        passes = clock()
        step.step()
        step.zero_grad()
        took.append(clock() - start)
        apart.append(clock() - passes)
    seconds = min(took[1:])
    found |= {"optimizer_s": min(apart[1:]), "tensors": len(weights)}
    return {**found, "step_s": seconds, "samples_per_s": accumulate * run["micro_batch"] / seconds}


def clock() -> float:
    """Now, with the device's work done."""
    torch.cuda.synchronize()
    return time.perf_counter()


def measure(case: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """One run: what it took, or why it failed."""
    found: dict[str, Any] = {"name": case["name"], "split": case["split"], "class": case["class"], "run": run}
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        found |= serve(case, run) if run.get("mode") == "serve" else train(case, run)
    except Exception as error:  # noqa: BLE001
        found["error"] = f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"
    try:
        free, total = torch.cuda.mem_get_info()
    except RuntimeError as error:  # a fault on the device: nothing further runs in this process
        return {**found, "error": found.get("error") or str(error).splitlines()[0], "device_lost": True}
    return found | {
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "outside_torch_bytes": total - free - torch.cuda.memory_reserved(),
    }


def apart(given: argparse.Namespace, names: list[str]) -> int:
    """Each case in a process of its own, once more without cuDNN's attention where the device was lost."""
    whole: dict[str, Any] = {}
    for name in names:
        for more in ([], ["--without-cudnn-attention"]):
            own = given.out.with_suffix(".part")
            cases = [str(file) for file in given.cases]
            command = [sys.executable, __file__, "--cases", *cases, "--only", name, "--out", str(own), *more]
            ended = subprocess.run(command, check=False)
            found = json.loads(own.read_text(encoding="utf-8")) if own.exists() else {"runs": []}
            own.unlink(missing_ok=True)
            whole = {**found, "runs": [*whole.get("runs", []), *found["runs"]]}
            given.out.write_text(json.dumps(whole, indent=1), encoding="utf-8")
            if ended.returncode == 0:
                break
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("models.json"), help="where the results go, as JSON")
    parser.add_argument("--seconds", type=float, default=500.0, help="begin no further case after this time")
    parser.add_argument("--cases", type=Path, nargs="+", default=[HERE / "model_cases.toml"], help="the files of cases")
    parser.add_argument("--only", nargs="*", default=[], help="names of the cases to run")
    parser.add_argument("--without-cudnn-attention", action="store_true", help="leave fused attention to other kernels")
    parser.add_argument("--apart", action="store_true", help="run each case in a process of its own")
    given = parser.parse_args()
    if given.without_cudnn_attention:
        torch.backends.cuda.enable_cudnn_sdp(False)
    cases = [case for file in given.cases for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]]
    if given.apart:
        return apart(given, [case["name"] for case in cases if not given.only or case["name"] in given.only])
    began, found = time.perf_counter(), []
    facts = {
        "version": 1, "device": torch.cuda.get_device_name(0), "torch": torch.__version__,
        "transformers": transformers.__version__,
    }  # fmt: skip
    if any(case.get("library") == "diffusers" for case in cases):
        facts["diffusers"] = importlib.metadata.version("diffusers")
    for case, run in ((one, run) for one in cases for run in one["runs"]):
        if (given.only and case["name"] not in given.only) or time.perf_counter() - began > given.seconds:
            continue
        started = time.perf_counter()
        found.append(measure(case, run) | {"cudnn_attention": torch.backends.cuda.cudnn_sdp_enabled()})
        words = found[-1].get("error") or f"{found[-1]['peak_allocated_bytes'] / 1e9:.2f} GB"
        took = f"{time.perf_counter() - started:6.1f} s  {case['name']} {json.dumps(run)}: {words}"
        print(f"{took} {found[-1].get('step_s', 0):.3f} s/step", file=sys.stderr, flush=True)
        given.out.write_text(json.dumps({**facts, "runs": found}, indent=1), encoding="utf-8")
        if "device_lost" in found[-1]:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
