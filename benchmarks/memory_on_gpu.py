"""How near does the memory planner come to what torch really takes on a GPU?

    PYTHONPATH=src python benchmarks/memory_on_gpu.py --out memory.json [--seconds 140] [--tiny]

Runs the cases of memory_cases.toml: Llama-shaped models with random weights, training steps and served batches. For
each it writes torch's peak allocated and reserved memory beside the planner's breakdown, and the step's seconds. Needs
torch and transformers; --tiny runs a tiny model wherever torch is (without a GPU nothing is measured).
benchmarks/plan_errors.py prints the errors.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import tomllib
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gpuledger.catalog.models import Model, TransformerShape, get_model
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup

HERE = Path(__file__).parent
CHUNK_TOKENS = 8192
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Lora(torch.nn.Module):
    """A frozen matrix with a trained product of two thin ones beside it."""

    def __init__(self, frozen: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen
        kind = {"device": frozen.weight.device, "dtype": frozen.weight.dtype, "bias": False}
        self.down = torch.nn.Linear(frozen.in_features, rank, **kind)
        self.up = torch.nn.Linear(rank, frozen.out_features, **kind)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + self.up(self.down(x))


class Masters:
    """AdamW on fp32 masters of 16-bit weights, one weight at a time: 12 bytes a parameter and no second gradient."""

    def __init__(self, weights: list[torch.nn.Parameter]) -> None:
        self.weights = weights
        self.masters = [torch.nn.Parameter(w.detach().float()) for w in weights]
        self.steps = [torch.optim.AdamW([m], lr=1e-5, fused=DEVICE == "cuda") for m in self.masters]

    def step(self) -> None:
        for weight, master, step in zip(self.weights, self.masters, self.steps, strict=True):
            master.grad = weight.grad.float()
            step.step()
            master.grad = None
            weight.data.copy_(master.data)

    def zero_grad(self) -> None:
        for weight in self.weights:
            weight.grad = None


def shape_of(name: str, shapes: dict[str, Any]) -> Model:
    """A model of the catalog, or one of the shapes in the file of cases."""
    if name not in shapes:
        return get_model(name)
    raw = dict(shapes[name])
    shape = TransformerShape(
        **raw, head_dim=raw["hidden"] // raw["heads"], mlp_gated=True, tied_embeddings=False, max_context=131072
    )
    return Model(name=name, shape=shape)


def build(shape: TransformerShape, dtype: torch.dtype, attention: str) -> LlamaForCausalLM:
    """The model with random weights, on the device."""
    config = LlamaConfig(
        hidden_size=shape.hidden, intermediate_size=shape.mlp_hidden, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads, head_dim=shape.head_dim,
        vocab_size=shape.vocab, tie_word_embeddings=shape.tied_embeddings, max_position_embeddings=shape.max_context,
        attn_implementation="sdpa" if attention == "flash" else "eager",
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(DEVICE):
            return LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)


def adapt(model: LlamaForCausalLM, rank: int) -> None:
    """Freeze the model and put adapters on all matrices of its layers."""
    model.requires_grad_(requires_grad=False)
    for block in model.model.layers:
        for part in (block.self_attn, block.mlp):
            for name, child in list(part.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(part, name, Lora(child, rank))


def train(model: Model, setup: Setup, accumulate: int) -> dict[str, float]:
    """Three optimizer steps; seconds of the fastest of the last two."""
    shape = model.shape
    assert isinstance(shape, TransformerShape)
    net = build(shape, torch.float32 if setup.scheme == "autocast" else torch.bfloat16, setup.attention)
    net.train()
    if setup.recompute:
        net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if setup.lora_rank:
        adapt(net, setup.lora_rank)
    weights = [w for w in net.parameters() if w.requires_grad]
    fused = DEVICE == "cuda"
    step = Masters(weights) if setup.scheme == "mixed" else torch.optim.AdamW(weights, lr=1e-5, fused=fused)
    cast = torch.autocast(DEVICE, dtype=torch.bfloat16) if setup.scheme == "autocast" else nullcontext()
    took = []
    for _ in range(3):
        start = clock()
        for _ in range(accumulate):
            tokens = torch.randint(0, shape.vocab, (setup.micro_batch, setup.sequence), device=DEVICE)
            with cast:
                loss = net(input_ids=tokens, labels=tokens, use_cache=False).loss
            loss.backward()
            del loss
        step.step()
        step.zero_grad()
        took.append(clock() - start)
    seconds = min(took[1:])
    return {"step_s": seconds, "tokens_per_s": accumulate * setup.micro_batch * setup.sequence / seconds}


@torch.inference_mode()
def serve(model: Model, setup: Setup) -> dict[str, float]:
    """Read all prompts in pieces, keep their keys and values, then write one token of each."""
    shape = model.shape
    assert isinstance(shape, TransformerShape)
    net = build(shape, torch.bfloat16, "flash").eval()
    rows = max(1, CHUNK_TOKENS // setup.context)
    net(input_ids=torch.zeros(1, setup.context - 1, dtype=torch.long, device=DEVICE), logits_to_keep=1)  # warm kernels
    caches, start = [], clock()
    for first in range(0, setup.batch, rows):
        count = min(rows, setup.batch - first)
        tokens = torch.randint(0, shape.vocab, (count, setup.context - 1), device=DEVICE)
        out = net(input_ids=tokens, use_cache=True, logits_to_keep=1)
        caches.append((count, out.past_key_values))
        del out, tokens
    read = clock() - start
    for count, cache in caches:
        net(input_ids=torch.zeros(count, 1, dtype=torch.long, device=DEVICE), past_key_values=cache, use_cache=True)
    return {"prefill_s": read, "prefill_tokens_per_s": setup.batch * (setup.context - 1) / read}


def clock() -> float:
    """Now, with the device's work done."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measure(case: dict[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """One case: what was predicted and what was taken."""
    case = dict(case)
    kind, name, accumulate = case.pop("kind"), case.pop("model"), case.pop("accumulate", 2)
    model = shape_of(name, shapes)
    setup = Setup(mode=kind, precision="bf16", cache_precision="bf16", **case)
    need = memory(model, setup)
    found: dict[str, Any] = {
        "model": name, "params": model.params_total, "kind": kind, "accumulate": accumulate, "setup": asdict(setup),
        "predicted_bytes": need.parts, "predicted_total_bytes": need.total_bytes, "not_known": need.not_known,
    }  # fmt: skip
    gc.collect()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        found |= train(model, setup, accumulate) if kind == "train" else serve(model, setup)
    except torch.OutOfMemoryError as error:
        found["error"] = str(error).splitlines()[0]
    if DEVICE == "cuda":
        found["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
        found["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
        free, total = torch.cuda.mem_get_info()
        found["outside_torch_bytes"] = total - free - torch.cuda.memory_reserved()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("memory.json"), help="where the results go, as JSON")
    parser.add_argument("--seconds", type=float, default=140.0, help="begin no further case after so many")
    parser.add_argument("--tiny", action="store_true", help="run every case with the tiny model: a trial without a GPU")
    given = parser.parse_args()
    plan = tomllib.loads((HERE / "memory_cases.toml").read_text(encoding="utf-8"))
    began, found, left_out = time.perf_counter(), [], []
    facts: dict[str, Any] = {"version": 1, "device": DEVICE, "torch": torch.__version__}
    if DEVICE == "cuda":
        torch.zeros(1, device="cuda")
        free, total = torch.cuda.mem_get_info()
        facts |= {
            "device": torch.cuda.get_device_name(0), "visible_bytes": total,
            "context_bytes": total - free - torch.cuda.memory_reserved(),
        }  # fmt: skip
    for case in plan["case"]:
        words = json.dumps(case)
        if time.perf_counter() - began > given.seconds:
            left_out.append(case)
            continue
        if given.tiny:
            short = {name: min(case[name], 64) for name in ("sequence", "context") if name in case}
            case = {**case, "model": "tiny", **short}  # noqa: PLW2901
        started = time.perf_counter()
        found.append(measure(case, plan["shapes"]))
        print(f"{time.perf_counter() - started:6.1f} s  {words}", file=sys.stderr, flush=True)
        given.out.write_text(json.dumps({**facts, "cases": found, "left_out": left_out}, indent=1), encoding="utf-8")
    given.out.write_text(json.dumps({**facts, "cases": found, "left_out": left_out}, indent=1), encoding="utf-8")
    print(f"{len(found)} cases in {time.perf_counter() - began:.0f} s; kept in {given.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
