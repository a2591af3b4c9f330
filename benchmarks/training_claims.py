"""Which of the usual claims about training speed hold on this GPU? Each is measured in a few seconds.

Tensor cores against fp32, sizes that are no multiples of 8, torch.compile, waiting for the loss, pinned copies,
channels-last, CUDA graphs, the cuDNN autotuner, the fused optimizer, and the curve of batch size.
Used by tuner_on_gpu.py; on a CPU the sizes are small and only show that it runs.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from tuning_jobs import LENGTH, VOCAB, Decoder, next_token_loss, small_resnet

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
TURNS = 5
# Sequences a step of the small decoder.
STEPS = {"small": 1, "large": 64}
Do = Callable[[], object]


def settle() -> None:
    """Wait for the device."""
    if ON_GPU:
        torch.cuda.synchronize()


def seconds(do: Do, least_s: float) -> float:
    """Seconds of one run, over at least so many of them."""
    runs = 1
    while True:
        settle()
        begun = time.perf_counter()
        for _ in range(runs):
            do()
        settle()
        took = time.perf_counter() - begun
        if took >= least_s:
            return took / runs
        runs = max(runs + 1, math.ceil(1.2 * runs * least_s / max(took, 1e-6)))


def versus(ways: dict[str, Do], least_s: float = 0.12) -> dict[str, Any]:
    """All ways in turns; median, lowest and highest seconds of each, and the speed of each over that of the first."""
    for do in ways.values():
        do()
        do()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(TURNS):
        for name in list(ways) if turn % 2 == 0 else reversed(ways):
            found[name].append(seconds(ways[name], least_s))
    first = found[next(iter(ways))]
    out: dict[str, Any] = {}
    for name, took in found.items():
        ratios = [a / b for a, b in zip(first, took, strict=True)]
        out[name] = {
            "seconds": statistics.median(took),
            "speedup": statistics.median(ratios),
            "speedup_low": min(ratios),
            "speedup_high": max(ratios),
        }
    return out


def products() -> dict[str, Any]:
    """Tensor cores: square products in fp32, TF32 and bf16, and one size that is no multiple of 8."""
    out: dict[str, Any] = {}
    for n in (512, 1024, 2048, 4096, 8192) if ON_GPU else (128,):
        full = [torch.randn(n, n, device=DEVICE) for _ in range(2)]
        half = [m.bfloat16() for m in full]

        def fp32(full: list[torch.Tensor] = full) -> None:
            torch.set_float32_matmul_precision("highest")
            full[0] @ full[1]

        def tf32(full: list[torch.Tensor] = full) -> None:
            torch.set_float32_matmul_precision("high")
            full[0] @ full[1]

        found = versus({"fp32": fp32, "tf32": tf32, "bf16": lambda half=half: half[0] @ half[1]}, 0.05)
        for row in found.values():
            row["tflops"] = 2 * n**3 / row["seconds"] / 1e12
        out[str(n)] = found
    torch.set_float32_matmul_precision("highest")
    n = 4096 if ON_GPU else 64
    odd = {}
    for size in (n, n + 1, n + 4, n + 8):
        a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        odd[str(size)] = lambda a=a, b=b: a @ b
    rows = versus(odd, 0.05)
    for size, row in rows.items():
        row["tflops"] = 2 * int(size) ** 3 / row["seconds"] / 1e12
    return {"square": out, "multiples_of_8": rows}


def _stepper(batch: int, *, fused: bool = False, compiled: str = "", item: bool = False) -> tuple[Do, int]:
    """One training step of the small decoder in bf16; the peak memory it took."""
    batch = batch if ON_GPU else 2
    model = Decoder().to(DEVICE)
    tokens = torch.randint(0, VOCAB, (batch, LENGTH + 1), device=DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)
    loss_of = torch.compile(next_token_loss, mode=compiled, dynamic=False) if compiled else next_token_loss
    if ON_GPU:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()

    def step() -> None:
        with torch.autocast(DEVICE.type, torch.bfloat16):
            loss = loss_of(model, tokens)
        loss.backward()
        if item:
            loss.item()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    return step, int(torch.cuda.max_memory_allocated() - before) if ON_GPU else 0


def steps() -> dict[str, Any]:
    """What each change alone does for a step whose data is there already: a small one, which waits for its launches,
    and a large one, which does not.
    """
    out: dict[str, Any] = {}
    for size, batch in STEPS.items():
        plain, _ = _stepper(batch)
        out[size] = {
            "compile": versus({"eager": plain, "torch.compile": _stepper(batch, compiled="default")[0]}, 0.25),
            "fused": versus({"default": plain, "fused": _stepper(batch, fused=True)[0]}, 0.25),
            "item": versus({"item each step": _stepper(batch, item=True)[0], "no item": plain}, 0.25),
        }
    return out


def batch_curve() -> list[dict[str, float]]:
    """Samples a second and peak memory against the batch."""
    out = []
    for batch in (1, 2, 4, 8, 16, 32, 64, 128) if ON_GPU else (1, 2):
        step, peak = _stepper(batch, fused=ON_GPU)
        step()
        took = statistics.median(seconds(step, 0.1) for _ in range(3))
        out.append({"batch": batch, "samples_per_s": (batch if ON_GPU else 2) / took, "peak_bytes": peak})
    return out


def convolutions() -> dict[str, Any]:
    """channels-last and the cuDNN autotuner on the small ResNet in bf16."""
    side, batch = (128, 128) if ON_GPU else (32, 2)
    loss_of = nn.CrossEntropyLoss()

    def way(form: torch.memory_format, tune: bool) -> Do:
        model = small_resnet().to(DEVICE, memory_format=form)
        images = torch.randn(batch, 3, side, side, device=DEVICE).to(memory_format=form)
        labels = torch.randint(0, 100, (batch,), device=DEVICE)

        def step() -> None:
            torch.backends.cudnn.benchmark = tune
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = loss_of(model(images).float(), labels)
            loss.backward()
            model.zero_grad(set_to_none=True)

        return step

    plain, last = torch.contiguous_format, torch.channels_last
    ways = {
        "channels-first": way(plain, False),
        "channels-last": way(last, False),
        "cuDNN autotuner": way(plain, True),
        "channels-last and autotuner": way(last, True),
    }
    found = versus(ways)
    torch.backends.cudnn.benchmark = False
    return found


def copies() -> dict[str, Any]:
    """A batch of images to the device: from pageable and from pinned memory, alone and beside work."""
    if not ON_GPU:
        return {}
    plain = torch.randn(256, 3, 128, 128)
    pinned = plain.pin_memory()
    work = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)

    def beside(source: torch.Tensor, non_blocking: bool) -> Do:
        side = torch.cuda.Stream()

        def do() -> None:
            with torch.cuda.stream(side):
                source.to(DEVICE, non_blocking=non_blocking)
            for _ in range(8):
                work @ work

        return do

    alone = versus({"pageable": lambda: plain.to(DEVICE), "pinned": lambda: pinned.to(DEVICE, non_blocking=True)}, 0.05)
    for row in alone.values():
        row["bytes_per_s"] = plain.numel() * 4 / row["seconds"]
    return {"alone": alone, "beside_work": versus({"pageable": beside(plain, False), "pinned": beside(pinned, True)})}


def graphs() -> dict[str, Any]:
    """CUDA graphs on a small model, where launching costs more than the work, and on a wide one."""
    if not ON_GPU:
        return {}
    out: dict[str, Any] = {}
    for name, width, rows in (("small", 256, 64), ("large", 4096, 8192)):
        layers = [m for _ in range(16) for m in (nn.Linear(width, width), nn.GELU())]
        model = nn.Sequential(*layers).to(DEVICE, torch.bfloat16)
        data = torch.randn(rows, width, device=DEVICE, dtype=torch.bfloat16)

        def step(model: nn.Module = model, data: torch.Tensor = data) -> None:
            model(data).float().square().mean().backward()

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        model.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        # Grads live in the graph's own memory now; the plain way adds to them, which is what accumulation does too.
        out[name] = versus({"launched one by one": step, "CUDA graph": graph.replay}, 0.05)
    return out


CLAIMS: dict[str, Callable[[], Any]] = {
    "products": products,
    "batch_curve": batch_curve,
    "convolutions": convolutions,
    "copies": copies,
    "graphs": graphs,
    "steps": steps,
}


def main() -> None:
    """All claims, as JSON on stdout."""
    import json

    print(json.dumps({name: claim() for name, claim in CLAIMS.items()}, indent=1))


if __name__ == "__main__":
    main()
